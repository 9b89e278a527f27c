//! Batches in the engine, from their submission to their commit.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::BATCHES_MAX;
use super::in_flight::Keys;
use crate::item::Findings;
use crate::item::batch::Batch;
use urlseen_core::limit::Counted;
use urlseen_core::storage::Histogram;

/// Batches that were submitted, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Batches {
    /// Batches that are not handed back, oldest first.
    pub(super) judging: VecDeque<Judging>,
    /// Number of the oldest batch that is not handed back.
    front: u64,
    /// Batches that were handed back and are neither committed nor aborted, oldest first.
    pub(super) uncommitted: VecDeque<Uncommitted>,
    /// Durations from the submission of a batch until it is judged.
    pub(super) times: Histogram,
}

/// Batch that was submitted and is not handed back.
#[derive(Debug)]
pub(super) struct Judging {
    since: Instant,
    /// The batch; `None` while it is being judged.
    pub(super) judged: Option<Batch<Box<Findings>>>,
}

/// Decisions of the limits about a batch that is not committed.
#[derive(Debug, Default)]
pub(super) struct Uncommitted {
    /// Keys over a limit, which the filter does not get.
    pub(super) over_limit: Option<Arc<Keys>>,
    /// Changes of the counts.
    pub(super) counted: Vec<Counted>,
}

impl Batches {
    /// Returns true if another batch may be submitted.
    pub(super) fn has_room(&self) -> bool {
        self.judging.len() + self.uncommitted.len() < BATCHES_MAX
    }

    /// Adds a batch, and returns its number.
    pub(super) fn submit(&mut self) -> u64 {
        self.judging.push_back(Judging { since: Instant::now(), judged: None });
        self.front + self.judging.len() as u64 - 1
    }

    /// Stores a judged batch, unless the batch was dropped before.
    pub(super) fn judged(&mut self, number: u64, batch: Batch<Box<Findings>>) {
        let place = usize::try_from(number - self.front).ok();
        if let Some(judging) = place.and_then(|place| self.judging.get_mut(place)) {
            self.times.observe(judging.since.elapsed());
            judging.judged = Some(batch);
        }
    }

    /// Drops the unjudged batch with this number, and all later batches.
    pub(super) fn drop_from(&mut self, number: u64) {
        self.judging.truncate(usize::try_from(number - self.front).unwrap_or(0));
    }

    /// Returns true if all batches before this one were handed back, or will never be.
    pub(super) fn are_handed_back(&self, number: u64) -> bool {
        number <= self.front || self.judging.is_empty()
    }

    /// Hands back the oldest batch, if it is judged. `limit` applies the limits to the batch.
    pub(super) fn hand_back(
        &mut self,
        limit: impl FnOnce(&mut Batch<Box<Findings>>) -> Uncommitted,
    ) -> Option<Batch<Box<Findings>>> {
        let judged = self.judging.pop_front_if(|front| front.judged.is_some())?;
        let mut batch = judged.judged?;
        self.front += 1;
        self.uncommitted.push_back(limit(&mut batch));
        Some(batch)
    }

    /// Records the commit of the oldest batch that was handed back, and returns it.
    ///
    /// # Panics
    /// If no batch was handed back.
    pub(super) fn commit(&mut self) -> Uncommitted {
        self.uncommitted.pop_front().expect("only judged batches commit")
    }

    /// Drops the batches that were handed back and are not committed.
    ///
    /// # Panics
    /// If a batch is in progress: its judgement depends on the dropped batches.
    pub(super) fn abort(&mut self) {
        assert!(self.judging.is_empty(), "no batch may be in progress during an abort");
        self.uncommitted.clear();
    }
}
