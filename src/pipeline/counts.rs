//! What a run has done so far, in numbers.

use serde::{Deserialize, Serialize};

use urlseen_engine::item::batch::Logged;

/// What was done since the daemon was started. None of these ever goes down.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Items committed that were unseen, and went on.
    pub unseen: u64,
    /// Items committed that had been seen before.
    pub seen: u64,
    /// Items passed on unchecked, as they asked (`dont_filter`) or as a rule has it.
    pub unfiltered: u64,
    /// Items that could not be read.
    pub rejected: u64,
    /// Rejects dropped from a full list (`rejects.when_full = "drop-oldest"`).
    pub rejects_dropped: u64,
    /// Batches committed.
    pub batches: u64,
    /// Batches judged, not committed, and judged again.
    pub batches_aborted: u64,
    /// Times that the filter was loaded from the storage folder.
    pub recoveries: u64,
    /// Times that it went back because Redis had come back with older data.
    pub rollbacks: u64,
    /// Snapshots finished.
    pub snapshots: u64,
    /// Bytes written to the log.
    pub log_bytes: u64,
}

impl Counts {
    /// All items committed.
    pub fn items(&self) -> u64 {
        self.unseen + self.seen + self.unfiltered + self.rejected
    }

    /// Adds committed batches. `unseen` says how many of their items were, where Redis has judged
    /// them.
    pub(crate) fn add<'a>(
        &mut self,
        batches: impl IntoIterator<Item = &'a Logged>,
        unseen: Option<u64>,
    ) {
        let before = *self;
        batches.into_iter().for_each(|batch| self.add_batch(batch));
        if let Some(unseen) = unseen {
            let judged = self.unseen - before.unseen + (self.seen - before.seen);
            self.unseen = before.unseen + unseen.min(judged);
            self.seen = before.seen + judged.saturating_sub(unseen);
        }
    }

    fn add_batch(&mut self, batch: &Logged) {
        let count = |number: usize| number as u64;
        let (items, onward) = (count(batch.items().len()), count(batch.onward_len()));
        let rejected = count(batch.rejects().len());
        let unfiltered = count(batch.unfiltered_len());
        self.unseen += onward - unfiltered;
        self.seen += items - onward - rejected;
        self.unfiltered += unfiltered;
        self.rejected += rejected;
        self.batches += 1;
    }
}
