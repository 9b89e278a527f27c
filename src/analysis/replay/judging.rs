//! Effect of a replay: counts the judged items, and passes their fingerprints to the lanes.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Sender, bounded};
use urlseen_engine::flow::driver::Effect;
use urlseen_engine::flow::feed::{FeedError, Page};
use urlseen_engine::item::batch::{Batch, Judged};
use urlseen_engine::item::{Form, Options, Reader};
use urlseen_filter::Seed;
use urlseen_fingerprint::FingerprintSpec;
use urlseen_fingerprint::same::TrackingList;

use super::lane::{Judgable, Lane, LaneSpec};
use super::report::{LaneReport, Ruled, Tally};
use crate::analysis::explain::DROP_TRACKING;
use crate::analysis::hash;

/// Maximum number of batches that wait for a lane.
const WAITING: usize = 16;

/// Running lanes, and the counts of all items.
pub(super) struct Judging {
    lanes: Vec<Running>,
    tally: Tally,
    merging: Option<Merging>,
    form: Form,
    /// True while the batches contain fingerprints that count as seen from the start.
    pub(super) is_given: bool,
}

impl Judging {
    /// Starts a thread for each lane.
    pub(super) fn start(specs: Vec<LaneSpec>, seed: Seed, items: &Options) -> anyhow::Result<Self> {
        let lanes: Result<Vec<_>, _> =
            specs.into_iter().map(|spec| Lane::start(spec, seed)).collect();
        let lanes = lanes?.into_iter().map(Running::start).collect::<Result<_, _>>()?;
        let mut tally = Tally::new(items);
        let merging = Merging::start(items, &mut tally);
        Ok(Self { lanes, tally, merging, form: items.form, is_given: false })
    }

    /// Returns true if a lane needs the fingerprints that were already seen.
    pub(super) fn needs_seen(&self) -> bool {
        self.lanes.iter().any(|lane| lane.needs_seen)
    }

    /// Waits until all lanes have ended. Returns the counts and the lanes' reports.
    pub(super) fn end(self) -> (Tally, Vec<LaneReport>) {
        (self.tally, self.lanes.into_iter().map(Running::end).collect())
    }
}

impl Effect for Judging {
    fn apply(&mut self, page: &Page, batch: &Batch<Judged>) -> io::Result<()> {
        if self.is_given {
            self.tally.given += batch.findings.added.len() as u64;
            self.tally.given_bad += page.bad_count;
        } else {
            self.tally.add(page, batch, self.form);
            if let Some(merging) = &mut self.merging {
                merging.add(batch, &mut self.tally);
            }
        }
        let judgable = Arc::new(Judgable {
            items: self.tally.items,
            new: batch.findings.added.clone(),
            again: batch.seen_len() as u64,
            seen: batch.findings.seen.clone(),
            is_given: self.is_given,
        });
        for lane in &self.lanes {
            // Sending fails only if the lane has panicked. `Running::end` then raises the panic
            // again.
            let _ = lane.hand_in.send(Arc::clone(&judgable));
        }
        Ok(())
    }
}

/// Lane that runs on a thread of its own.
struct Running {
    hand_in: Sender<Arc<Judgable>>,
    thread: JoinHandle<LaneReport>,
    needs_seen: bool,
}

impl Running {
    fn start(mut lane: Lane) -> anyhow::Result<Self> {
        let (hand_in, work) = bounded::<Arc<Judgable>>(WAITING);
        let (name, needs_seen) = (format!("lane-{}", lane.kind()), lane.needs_seen());
        let life = move || {
            work.iter().for_each(|judgable| lane.judge(&judgable));
            lane.end()
        };
        let thread = thread::Builder::new().name(name).spawn(life).map_err(FeedError::Thread)?;
        Ok(Self { hand_in, thread, needs_seen })
    }

    fn end(self) -> LaneReport {
        drop(self.hand_in);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Search for links that the rules of a crawl merge: they count as seen, and would be new without
/// the rules.
pub(super) struct Merging {
    reader: Reader,
    /// Hashes of the canonical URLs that the rules have changed so far.
    spellings: HashSet<u64>,
}

impl Merging {
    /// Starts a search. Returns `None` if there are no rules.
    fn start(items: &Options, tally: &mut Tally) -> Option<Self> {
        let FingerprintSpec { same, drop_tracking, .. } = &items.fingerprint;
        let list = (*drop_tracking != TrackingList::None).then(|| Ruled::new(DROP_TRACKING));
        let rules = (0..same.len()).map(|number| Ruled::new(&same.name(number)));
        tally.merged_by_rule = rules.chain(list).collect();
        tally.merged = (!tally.merged_by_rule.is_empty()).then_some(0);
        let reader = Reader::new(items.clone());
        tally.merged.map(|_| Self { reader, spellings: HashSet::new() })
    }

    /// Adds the items of a batch.
    fn add(&mut self, batch: &Batch<Judged>, tally: &mut Tally) {
        batch.onward().for_each(|item| self.add_item(item, None));
        batch.seen().for_each(|item| self.add_item(item, Some(tally)));
    }

    /// Adds an item, which was seen if there is a tally.
    fn add_item(&mut self, item: &[u8], tally: Option<&mut Tally>) {
        let steps = self.reader.same_steps(item);
        let Some(first) = steps.first() else { return };
        let is_new = self.spellings.insert(hash(first.before.as_bytes()));
        let Some(tally) = tally.filter(|_| is_new) else { return };
        tally.merged = tally.merged.map(|links| links + 1);
        let last = tally.merged_by_rule.len() - 1;
        let mut rules: Vec<_> = steps.iter().map(|step| step.rule.unwrap_or(last)).collect();
        rules.sort_unstable();
        rules.dedup();
        for rule in rules {
            tally.merged_by_rule[rule].add(item);
        }
    }
}
