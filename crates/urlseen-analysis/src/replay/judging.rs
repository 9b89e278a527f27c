//! Effect of a replay: counts the judged items, and passes their fingerprints to the lanes.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Sender, bounded};
use urlseen_core::filter::Seed;
use urlseen_core::fingerprint::FingerprintSpec;
use urlseen_core::fingerprint::same::TrackingList;
use urlseen_engine::flow::driver::{Audience, Effect, Progress};
use urlseen_engine::flow::feed::{Bad, Page};
use urlseen_engine::item::batch::{Batch, Judged};
use urlseen_engine::item::{Form, Options, Reader};

use super::lane::{Judgable, Lane, LaneSpec};
use super::no_thread;
use super::report::{LaneReport, Ruled, Tally};
use crate::explain::DROP_TRACKING;
use crate::hash;

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
        let (tally, merging) = (Tally::new(items), Merging::start(items));
        Ok(Self { lanes, tally, merging, form: items.form, is_given: false })
    }

    /// Returns true if a lane needs the fingerprints that were already seen.
    pub(super) fn needs_seen(&self) -> bool {
        self.lanes.iter().any(|lane| lane.needs_seen)
    }

    /// Waits until all lanes have ended. Returns the counts and the lanes' reports.
    pub(super) fn end(self) -> (Tally, Vec<LaneReport>) {
        let tally = Tally { merges: self.merging.map(Merging::end), ..self.tally };
        (tally, self.lanes.into_iter().map(Running::end).collect())
    }
}

impl Effect for Judging {
    fn apply(&mut self, page: &Page, batch: &Batch<Judged>) -> io::Result<()> {
        if self.is_given {
            self.tally.add_given(page, batch);
        } else {
            self.tally.add(page, batch, self.form);
            if let Some(merging) = &mut self.merging {
                merging.add(batch);
            }
        }
        let judgable = Arc::new(Judgable {
            items: self.tally.items,
            new: batch.added().to_vec(),
            again: batch.seen_len() as u64,
            seen: batch.seen_fingerprints().to_vec(),
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
        let thread = thread::Builder::new().name(name).spawn(life).map_err(no_thread)?;
        Ok(Self { hand_in, thread, needs_seen })
    }

    fn end(self) -> LaneReport {
        drop(self.hand_in);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Audience of one feed of the replay. `Part` forwards all messages to `audience`. For a feed of
/// fingerprints that count as seen, it does not forward the progress.
pub(super) struct Part<'a> {
    pub(super) audience: &'a mut dyn Audience,
    pub(super) is_given: bool,
}

impl Audience for Part<'_> {
    fn say(&mut self, words: &str) {
        self.audience.say(words);
    }

    fn bad(&mut self, bad: &Bad) {
        self.audience.bad(bad);
    }

    fn progress(&mut self, progress: &Progress) {
        if !self.is_given {
            self.audience.progress(progress);
        }
    }
}

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
    pub(super) fn start(items: &Options) -> Option<Self> {
        let FingerprintSpec { same, drop_tracking, .. } = &items.fingerprint;
        let list = (*drop_tracking != TrackingList::None).then(|| Ruled::new(DROP_TRACKING));
        let rules = (0..same.len()).map(|number| Ruled::new(&same.name(number)));
        let merges = Merges { links: 0, by_rule: rules.chain(list).collect() };
        let is_empty = merges.by_rule.is_empty();
        let started =
            || Self { reader: Reader::new(items.clone()), spellings: HashSet::new(), merges };
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
