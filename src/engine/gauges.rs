//! How full each shard is, for all to see while its owner works on.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::filter::{SHARDS, Shards};

/// Two counts a shard. Each is written by the shard's owner alone, after every commit, so a reader
/// sees counts that are at most a batch old.
#[derive(Debug)]
pub struct Gauges {
    keys: [AtomicU64; SHARDS],
    ones: [AtomicU64; SHARDS],
}

impl Default for Gauges {
    fn default() -> Self {
        let zeros = || std::array::from_fn(|_| AtomicU64::new(0));
        Self { keys: zeros(), ones: zeros() }
    }
}

impl Gauges {
    /// How many fingerprints were set in each shard.
    pub fn keys(&self) -> [u64; SHARDS] {
        std::array::from_fn(|shard| self.keys[shard].load(Ordering::Relaxed))
    }

    /// How many bits of each shard are 1.
    pub fn ones(&self) -> [u64; SHARDS] {
        std::array::from_fn(|shard| self.ones[shard].load(Ordering::Relaxed))
    }

    pub(super) fn store(&self, shards: &Shards) {
        for (shard, count) in shards.counts() {
            self.keys[shard.index()].store(count.keys, Ordering::Relaxed);
            self.ones[shard.index()].store(count.ones, Ordering::Relaxed);
        }
    }
}
