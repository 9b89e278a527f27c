//! A batch on its way through the engine.

use super::owner::Readings;
use crate::batch::{Batch, Judged, Taken};
use crate::fingerprint::Fingerprint;

/// How far a batch has come.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) batch: Batch<Taken>,
    /// What was read of it, a part a thread; empty once all is read.
    pub(super) parts: Vec<Option<Readings>>,
    pub(super) judged: Judged,
    /// What was read from which item, a part a thread; those of unseen ones go on with the batch.
    pub(super) fingerprints: Vec<Vec<(u32, Fingerprint)>>,
    /// The places of the items found unseen so far.
    pub(super) unseen: Vec<u32>,
    /// Threads that have not judged their part yet.
    pub(super) judging: usize,
}

impl Progress {
    /// The batch, all of it judged.
    #[allow(clippy::stable_sort_primitive)] // the stable sort merges runs, the other one sorts them
    pub(super) fn finish(self) -> Batch<Judged> {
        let Self { batch, mut judged, fingerprints, mut unseen, .. } = self;
        // Each thread answers in order, but only for its own shards.
        unseen.sort();
        let mut places = unseen.iter().peekable();
        let added = fingerprints
            .into_iter()
            .flatten()
            .filter_map(|(place, fingerprint)| places.next_if_eq(&&place).map(|_| fingerprint));
        judged.added = added.collect();
        judged.onward.append(&mut unseen);
        judged.onward.sort();
        batch.judged(judged)
    }
}
