//! Effect of a replay: counts the judged items, and passes their fingerprints to the lanes.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Sender, bounded};
use urlseen_core::filter::Seed;
use urlseen_engine::flow::driver::{Audience, Effect, Progress};
use urlseen_engine::flow::feed::{Bad, Page};
use urlseen_engine::item::batch::{Batch, Judged};
use urlseen_engine::item::{Form, Options};

use super::error::ReplayError;
use super::lane::{Judgable, Lane, LaneSpec};
use super::merging::Merging;
use super::report::{LaneReport, Tally};

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
    pub(super) fn start(
        specs: Vec<LaneSpec>,
        seed: Seed,
        items: Options,
    ) -> Result<Self, ReplayError> {
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
    fn start(mut lane: Lane) -> Result<Self, ReplayError> {
        let (hand_in, work) = bounded::<Arc<Judgable>>(WAITING);
        let (name, needs_seen) = (format!("lane-{}", lane.kind()), lane.needs_seen());
        let life = move || {
            work.iter().for_each(|judgable| lane.judge(&judgable));
            lane.end()
        };
        let thread = thread::Builder::new().name(name).spawn(life).map_err(ReplayError::Thread)?;
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
