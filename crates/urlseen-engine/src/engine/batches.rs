//! Batches in the engine, from their submission to their commit.

use std::collections::VecDeque;
use std::time::Instant;

use super::BATCHES_MAX;
use urlseen_core::storage::Histogram;

/// Batches that were submitted and are not committed.
#[derive(Debug, Default)]
pub(super) struct Batches {
    /// Times at which the batches were submitted that are not handed back, oldest first.
    pub(super) judging: VecDeque<Instant>,
    /// Number of batches that were handed back and are neither committed nor aborted.
    pub(super) uncommitted: usize,
    /// Durations from the submission of a batch until it is judged.
    pub(super) times: Histogram,
}

impl Batches {
    /// Returns true if another batch may be submitted.
    pub(super) fn has_room(&self) -> bool {
        self.judging.len() + self.uncommitted < BATCHES_MAX
    }

    /// Counts a batch that is submitted.
    pub(super) fn submit(&mut self) {
        self.judging.push_back(Instant::now());
    }

    /// Counts the oldest batch as judged and handed back.
    pub(super) fn hand_back(&mut self) {
        let since = self.judging.pop_front().expect("a batch is judged after it was submitted");
        self.times.observe(since.elapsed());
        self.uncommitted += 1;
    }

    /// Records the commit of the oldest batch that was handed back.
    ///
    /// # Panics
    /// If no batch was handed back.
    pub(super) fn commit(&mut self) {
        let left = self.uncommitted.checked_sub(1);
        self.uncommitted = left.expect("only judged batches commit");
    }

    /// Drops the batches that were handed back and are not committed.
    ///
    /// # Panics
    /// If a batch is in progress: its judgement depends on the dropped batches.
    pub(super) fn abort(&mut self) {
        assert!(self.judging.is_empty(), "no batch may be in progress during an abort");
        self.uncommitted = 0;
    }
}
