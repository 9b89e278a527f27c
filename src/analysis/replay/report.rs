//! Report of a replay, as numbers without text.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::curve::CurvePoint;
use crate::analysis::hash;
use urlseen_engine::flow::feed::Page;
use urlseen_engine::flow::reasons::{Reasons, SHOWN};
use urlseen_engine::item::batch::{Batch, Judged};
use urlseen_engine::item::{Form, ItemSummary, Options};
use urlseen_filter::Kind;
use urlseen_filter::choice::ItemForm;

/// Maximum number of items that the report keeps as examples of a rule.
const EXAMPLES: usize = 10;

/// Results of a whole replay.
#[derive(Debug, Serialize)]
pub(crate) struct ReplayReport {
    /// Counts of the items, independent of the kinds.
    #[serde(flatten)]
    pub(crate) tally: Tally,
    /// Results of each kind, in the order in which the user named the kinds.
    pub(crate) kinds: Vec<LaneReport>,
    /// Redis keys that were read, if the input was Redis keys.
    pub(crate) keys: Vec<KeyRead>,
    /// Number of fingerprints in the exact set.
    pub(crate) exact_keys: u64,
    /// Memory of the exact set, in bytes.
    pub(crate) exact_bytes: u64,
    /// Duration of the replay in seconds.
    pub(crate) seconds: f64,
    /// Reason why the replay ended.
    pub(crate) ending: ReplayEnding,
}

/// End of a replay, and the reason.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReplayEnding {
    /// The whole input was read.
    Whole,
    /// The replay was asked to stop.
    Stopped,
    /// The machine's memory was nearly used up.
    OutOfMemory,
    /// An error ended the replay before the end of the input.
    Failed(#[serde(skip)] anyhow::Error),
}

/// Counts of the items, independent of the kinds.
#[derive(Debug, Default, Clone, Serialize)]
pub(crate) struct Tally {
    /// Number of items that were read.
    pub(crate) items: u64,
    /// Number of items of each form; an empty item has no form.
    pub(crate) forms: BTreeMap<&'static str, u64>,
    /// Number of items that are passed on unchecked.
    pub(crate) unfiltered: u64,
    /// Items that each rule of `[[pass]]` lets pass unchecked, in the order of the rules.
    pub(crate) passed: Vec<Ruled>,
    /// Number of items that rules of `[[drop]]` drop.
    pub(crate) dropped: u64,
    /// The same items by their rules, in the order of the rules.
    pub(crate) dropped_by_rule: Vec<Ruled>,
    /// Number of unseen items that are over a limit.
    pub(crate) over_limit: u64,
    /// The same items by their rules, in the order of the rules.
    pub(crate) over_limit_by_rule: Vec<Ruled>,
    /// Number of links that count as seen, and would be new without rules `[[same]]`, if there are
    /// such rules. A link that several rules change together counts once.
    pub(crate) merged: Option<u64>,
    /// Links that each of these rules changes, in the order of the rules. If the crawl has a list
    /// of tracking parameters, it is the last one.
    pub(crate) merged_by_rule: Vec<Ruled>,
    /// Number of items whose fingerprint was already seen.
    pub(crate) again: u64,
    /// Number of items whose fingerprint was not seen before.
    pub(crate) new: u64,
    /// Number of items that cannot be read.
    pub(crate) rejected: u64,
    /// Reasons why items cannot be read, each with its number of items.
    pub(crate) rejects: Reasons,
    /// Number of different fingerprints that counted as seen from the start.
    pub(crate) given: u64,
    /// Number of malformed entries among the fingerprints that count as seen from the start.
    pub(crate) given_bad: u64,
}

/// Items that a rule decides about.
#[derive(Debug, Default, Clone, Serialize)]
pub(crate) struct Ruled {
    /// Name of the rule in the configuration.
    pub(crate) rule: String,
    /// Number of these items.
    pub(crate) items: u64,
    /// Different items with the lowest hashes, by their hashes. So these examples are random, and
    /// the same in each replay of the same items.
    #[serde(serialize_with = "summaries")]
    examples: BTreeMap<u64, Vec<u8>>,
}

fn summaries<S: Serializer>(items: &BTreeMap<u64, Vec<u8>>, to: S) -> Result<S::Ok, S::Error> {
    let text = |item: &Vec<u8>| String::from_utf8_lossy(&ItemSummary::of(item).text).into_owned();
    to.collect_seq(items.values().map(text))
}

impl Ruled {
    /// Makes a tally of no items.
    pub(super) fn new(rule: &str) -> Self {
        Self { rule: rule.to_owned(), ..Self::default() }
    }

    pub(super) fn add(&mut self, item: &[u8]) {
        self.items += 1;
        let hash = hash(item);
        if self.examples.len() < EXAMPLES || self.examples.range(hash..).next().is_some() {
            self.examples.entry(hash).or_insert_with(|| item[..item.len().min(SHOWN)].to_vec());
        }
        if self.examples.len() > EXAMPLES {
            self.examples.pop_last();
        }
    }

    /// Returns the first bytes of up to ten different items, which are chosen at random.
    pub(crate) fn examples(&self) -> impl Iterator<Item = &[u8]> {
        self.examples.values().map(Vec::as_slice)
    }
}

/// Key in Redis that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct KeyRead {
    /// Name of the Redis key.
    pub(crate) key: String,
    /// Type of the key in Redis.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Length of the key before the replay.
    pub(crate) before: u64,
    /// Length of the key after the replay; `None` if the key was not read to its end.
    pub(crate) after: Option<u64>,
    /// Number of items that were read from the key.
    pub(crate) read: u64,
}

/// Results of one kind of filter.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
pub(crate) struct LaneReport {
    /// Name of the kind in the configuration.
    #[serde(rename = "kind")]
    pub(crate) name: &'static str,
    /// Kind as a value, for programs.
    #[serde(skip)]
    pub(crate) kind: Kind,
    /// Number of items that the filter judged.
    pub(crate) items: u64,
    /// Number of items that the filter judged unseen.
    pub(crate) unseen: u64,
    /// Number of items that the filter judged seen.
    pub(crate) seen: u64,
    /// Number of new items that the filter wrongly judged seen. The crawl would lose them.
    pub(crate) wrong: u64,
    /// Number of items for which the kind has no bit positions. A daemon would reject them.
    pub(crate) no_place: u64,
    /// Expected value of `wrong`, by the computed error rates.
    pub(crate) wrong_computed: f64,
    /// Measured error rate: the share of new fingerprints that the filter reported as seen.
    pub(crate) error_rate: f64,
    /// The computed error rate at the end.
    pub(crate) error_rate_now: f64,
    /// Number of fingerprints in the filter, including those given at the start.
    pub(crate) keys: u64,
    /// Number of fingerprints that the filter is made for, if its kind has a capacity.
    pub(crate) capacity: Option<u64>,
    /// Number of items after which the filter reached its capacity.
    pub(crate) full_after: Option<u64>,
    /// Minimum of the filter's memory, in bytes.
    pub(crate) filter_bytes: u64,
    /// Memory that a daemon needs with this filter, in bytes.
    pub(crate) daemon_bytes: u64,
    /// Minimum and maximum of the memory in Redis, if the filter is there.
    pub(crate) redis_bytes: Option<[u64; 2]>,
    /// Reason why the filter stopped judging, if it did. A daemon would have stopped at the same
    /// item.
    pub(crate) stopped: Option<String>,
    /// Reason why the filter cannot have the requested error rate.
    pub(crate) warning: Option<String>,
    /// Points of the curve that shows the results by the number of items.
    pub(crate) curve: Vec<CurvePoint>,
}

impl Tally {
    /// Makes a tally of no items, which are read with these options.
    pub(super) fn new(options: &Options) -> Self {
        Self {
            passed: options.pass.iter().map(|rule| Ruled::new(&rule.name)).collect(),
            dropped_by_rule: options.drop.iter().map(|rule| Ruled::new(&rule.name)).collect(),
            over_limit_by_rule: options.limits.iter().map(|rule| Ruled::new(&rule.name)).collect(),
            ..Self::default()
        }
    }

    /// Adds a batch of items. `form` is the configured form of items.
    pub(super) fn add(&mut self, page: &Page, batch: &Batch<Judged>, form: Form) {
        self.items += batch.items.len() as u64;
        self.new += batch.findings.added.len() as u64;
        self.again += batch.seen_len() as u64;
        self.unfiltered += batch.findings.unfiltered.len() as u64;
        add(&mut self.passed, batch.passed());
        self.dropped += add(&mut self.dropped_by_rule, batch.dropped());
        let over = batch.findings.over_limit.iter();
        let over = over.map(|it| (batch.items.get(it.index as usize), it.rule));
        self.over_limit += add(&mut self.over_limit_by_rule, over);
        // An empty item has no form.
        let items = batch.items.iter().filter(|item| !item.is_empty());
        let forms: Vec<ItemForm> = items.filter_map(|item| form.of(item)).collect();
        for run in forms.chunk_by(PartialEq::eq) {
            *self.forms.entry(run[0].name()).or_default() += run.len() as u64;
        }
        self.rejected += batch.rejects().len() as u64;
        self.rejects.add(page, batch, |_| ());
    }
}

/// Adds items to the tallies of their rules. Returns the number of items.
fn add<'a>(tallies: &mut [Ruled], items: impl Iterator<Item = (&'a [u8], u16)>) -> u64 {
    items.map(|(item, rule)| tallies[usize::from(rule)].add(item)).count() as u64
}
