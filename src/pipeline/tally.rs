//! What a run has done so far, in numbers.

use serde::Serialize;

use urlseen_engine::item::batch::Logged;

/// Counts of items since the start; each item is in exactly one of `unseen`, `seen`, `unfiltered`
/// and `rejected`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Items committed.
    pub items: u64,
    /// Of these, unseen ones, which went on.
    pub(crate) unseen: u64,
    /// Seen before.
    pub(crate) seen: u64,
    /// Passed on unchecked, as they asked (`dont_filter`) or as a rule has it.
    pub unfiltered: u64,
    /// Not readable, and put on the rejects list.
    pub rejected: u64,
    /// Rejects dropped from a full list, as `rejects.when_full = "drop-oldest"` has it.
    pub(crate) rejects_dropped: u64,
    /// Batches committed.
    pub(crate) batches: u64,
    /// Batches that were judged, not committed, and judged again.
    pub(crate) batches_aborted: u64,
    /// Times that the filter was recovered to where Redis stood.
    pub(crate) recoveries: u64,
    /// Of these, times that Redis had come back with other data while the run went on.
    pub(crate) rollbacks: u64,
    /// Snapshots finished.
    pub snapshots: u64,
}

impl Tally {
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
        self.items += items;
        self.unseen += onward - unfiltered;
        self.seen += items - onward - rejected;
        self.unfiltered += unfiltered;
        self.rejected += rejected;
        self.batches += 1;
    }
}
