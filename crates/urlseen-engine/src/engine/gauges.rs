//! How full the filter is, for all to see while its owners work on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use urlseen_core::filter::{Fill, Gauge, SHARDS};

/// What the owners show, after every commit: a reader sees counts that are at most a batch old.
#[derive(Debug)]
pub struct Gauges {
    owners: Vec<Arc<dyn Gauge>>,
    tombstones: Arc<AtomicUsize>,
}

impl Gauges {
    /// Those of all owners; tombstones are counted elsewhere.
    pub(super) fn new(owners: Vec<Arc<dyn Gauge>>, tombstones: Arc<AtomicUsize>) -> Self {
        Self { owners, tombstones }
    }

    /// How many fingerprints were forgotten and have not passed again.
    pub fn tombstones(&self) -> usize {
        self.tombstones.load(Ordering::Relaxed)
    }

    /// How full the filter is.
    pub fn fill(&self) -> Fill {
        self.owners.iter().map(|owner| owner.fill()).sum()
    }

    /// The share of unseen fingerprints that it takes for seen now. Takes up to a millisecond.
    pub fn error_rate(&self) -> f64 {
        self.owners.iter().map(|owner| owner.error_rate()).sum()
    }

    /// How many fingerprints were set in each shard; all are in the first where the filter is in
    /// one piece.
    pub fn keys(&self) -> [u64; SHARDS] {
        let mut keys = [0; SHARDS];
        self.owners.iter().for_each(|owner| owner.keys(&mut keys));
        keys
    }
}
