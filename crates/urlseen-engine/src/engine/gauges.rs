//! How full each shard is, for all to see while its owner works on.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use urlseen_core::filter::{SHARDS, Shards};

/// Two counts a shard. Each is written by the shard's owner alone, after every commit, so a reader
/// sees counts that are at most a batch old.
#[derive(Debug)]
pub struct Gauges {
    keys: [AtomicU64; SHARDS],
    ones: [AtomicU64; SHARDS],
    whole: Mutex<Option<Whole>>,
    tombstones: Arc<AtomicUsize>,
}

/// What a filter in one piece says of itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Whole {
    /// Fingerprints that were new when they were set.
    pub(crate) keys: u64,
    /// How many its layers are made for.
    pub capacity: u64,
    /// Its layers.
    pub layers: usize,
    /// The memory that they take.
    pub bytes: u64,
    /// The share of unseen ones that it takes for seen now.
    pub(crate) error_rate: f64,
}

impl Gauges {
    /// All zero; `forgotten` is counted elsewhere.
    pub(super) fn new(tombstones: Arc<AtomicUsize>) -> Self {
        let zeros = || std::array::from_fn(|_| AtomicU64::new(0));
        Self { keys: zeros(), ones: zeros(), whole: Mutex::default(), tombstones }
    }

    /// How many fingerprints were forgotten and have not passed again.
    pub fn tombstones(&self) -> usize {
        self.tombstones.load(Ordering::Relaxed)
    }

    /// What a filter in one piece says of itself; `None` for one that is not.
    pub fn whole(&self) -> Option<Whole> {
        *self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many fingerprints were set in each shard; all are in the first where the filter is in
    /// one piece.
    pub fn keys(&self) -> [u64; SHARDS] {
        std::array::from_fn(|shard| self.keys[shard].load(Ordering::Relaxed))
    }

    /// How many bits of each shard are 1.
    pub(crate) fn ones(&self) -> [u64; SHARDS] {
        std::array::from_fn(|shard| self.ones[shard].load(Ordering::Relaxed))
    }

    pub(super) fn store_whole(&self, whole: Whole) {
        self.keys[0].store(whole.keys, Ordering::Relaxed);
        *self.whole.lock().unwrap_or_else(PoisonError::into_inner) = Some(whole);
    }

    pub(super) fn store(&self, shards: &Shards) {
        for (shard, count) in shards.counts() {
            self.keys[shard.index()].store(count.keys, Ordering::Relaxed);
            self.ones[shard.index()].store(count.ones, Ordering::Relaxed);
        }
    }
}
