//! Links that rules `[[same]]` merge with other links.

use std::collections::HashSet;

use urlseen_core::fingerprint::FingerprintSpec;
use urlseen_core::fingerprint::same::TrackingList;
use urlseen_engine::item::batch::{Batch, Judged};
use urlseen_engine::item::{Options, Reader};

use super::report::Ruled;
use crate::explain::DROP_TRACKING;
use crate::hash;

/// Links that the rules of a crawl merge: they count as seen, and would be new without the rules.
#[derive(Debug, Clone)]
pub struct Merges {
    /// Number of these links. A link that several rules change together counts once.
    pub links: u64,
    /// Links that each rule changes, in the order of the rules. If the crawl has a list of tracking
    /// parameters, it is the last one.
    pub by_rule: Vec<Ruled>,
}

/// Search for links that the rules merge.
pub(super) struct Merging {
    reader: Reader,
    /// Hashes of the canonical URLs that the rules have changed so far.
    spellings: HashSet<u64>,
    merges: Merges,
}

impl Merging {
    /// Starts a search. Returns `None` if there are no rules.
    pub(super) fn start(items: Options) -> Option<Self> {
        let FingerprintSpec { same, drop_tracking, .. } = items.fingerprint;
        let list = (drop_tracking != TrackingList::None).then(|| Ruled::new(DROP_TRACKING));
        let rules = (0..same.len()).map(|number| Ruled::new(&same.name(number)));
        let merges = Merges { links: 0, by_rule: rules.chain(list).collect() };
        let is_empty = merges.by_rule.is_empty();
        let started = || Self { reader: Reader::new(items), spellings: HashSet::new(), merges };
        (!is_empty).then(started)
    }

    /// Adds the items of a batch.
    pub(super) fn add(&mut self, batch: &Batch<Judged>) {
        batch.onward().for_each(|item| self.add_item(item, false));
        batch.seen().for_each(|item| self.add_item(item, true));
    }

    fn add_item(&mut self, item: &[u8], is_seen: bool) {
        let steps = self.reader.same_steps(item);
        let Some(first) = steps.first() else { return };
        let is_new = self.spellings.insert(hash(first.before.as_bytes()));
        if !is_new || !is_seen {
            return;
        }
        self.merges.links += 1;
        let last = self.merges.by_rule.len() - 1;
        let mut rules: Vec<_> = steps.iter().map(|step| step.rule.unwrap_or(last)).collect();
        rules.sort_unstable();
        rules.dedup();
        for rule in rules {
            self.merges.by_rule[rule].add(item);
        }
    }

    /// Ends the search, and returns the counts.
    pub(super) fn end(self) -> Merges {
        self.merges
    }
}
