//! Batch that the engine's owners read and judge.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::owner::Readings;
use crate::item::batch::{Batch, Claimed};
use crate::item::{Findings, Items};

/// Batch that several owners read and judge at the same time. The owner that finishes last merges
/// the findings.
#[derive(Debug)]
pub(super) struct Progress {
    /// Number of the batch, in the order of submission.
    pub(super) number: u64,
    batch: Batch<Claimed>,
    /// Number of parts in which the items are read.
    pub(super) parts: usize,
    owners: usize,
    keeps_seen: bool,
    /// Findings of the owners that have finished. Each owner locks this list once, at its end.
    found: Mutex<Vec<Found>>,
}

/// Findings of one owner.
#[derive(Debug)]
pub(super) struct Found {
    /// Results of the parts that this owner has read.
    pub(super) readings: Vec<(usize, Readings)>,
    /// Places of the unseen items in this owner's own shards, ascending.
    pub(super) unseen: Vec<u32>,
}

impl Progress {
    /// Starts a batch whose items are read in `parts` parts and judged by `owners` owners.
    pub(super) fn new(
        number: u64,
        batch: Batch<Claimed>,
        parts: usize,
        owners: usize,
        keeps_seen: bool,
    ) -> Self {
        Self { number, batch, parts, owners, keeps_seen, found: Mutex::default() }
    }

    /// Returns all items of the batch.
    pub(super) fn items(&self) -> &Items {
        self.batch.items()
    }

    /// Returns the places of the items of a part.
    pub(super) fn range(&self, part: usize) -> Range<usize> {
        let len = self.items().len();
        part * len / self.parts..(part + 1) * len / self.parts
    }

    /// Adds the findings of an owner that has finished the batch. If all owners have finished,
    /// returns the findings of all of them.
    pub(super) fn done(&self, found: Found) -> Option<Batch<Box<Findings>>> {
        let mut all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(found);
        (all.len() == self.owners).then(|| self.finish(std::mem::take(&mut all)))
    }

    /// Merges the findings of all owners.
    #[allow(clippy::stable_sort_primitive)] // the stable sort is fast on sorted runs
    fn finish(&self, all: Vec<Found>) -> Batch<Box<Findings>> {
        let mut unseen = Vec::new();
        let mut readings = Vec::with_capacity(self.parts);
        for found in all {
            unseen.extend(found.unseen);
            readings.extend(found.readings);
        }
        readings.sort_by_key(|&(part, _)| part);
        // Each owner lists the unseen items of its own shards in order. The joined list is not in
        // order yet.
        unseen.sort();
        let mut judged = Findings::default();
        let mut places = unseen.iter().peekable();
        for (_, reading) in readings {
            let mut lifetimes = reading.lifetimes.iter().peekable();
            for (place, fingerprint) in reading.fingerprints {
                let lifetime = lifetimes.next_if(|(other, _)| *other == place);
                if places.next_if_eq(&&place).is_some() {
                    if let Some(&(_, lifetime)) = lifetime {
                        judged.lifetimes.push(judged.added.len(), lifetime);
                    }
                    judged.added.push(fingerprint);
                } else if self.keeps_seen {
                    judged.seen.push(fingerprint);
                }
            }
            judged.onward.extend(reading.unfiltered.iter().map(|&(place, _)| place));
            judged.unfiltered.extend(reading.unfiltered);
            judged.dropped.extend(reading.dropped);
            judged.own_fingerprints += reading.own_fingerprints;
            judged.rejects.extend(reading.rejects);
            judged.emitted.extend(reading.emitted);
            judged.scores.extend(reading.scores);
        }
        judged.onward.append(&mut unseen);
        judged.onward.sort();
        self.batch.found(judged)
    }
}
