//! Gauge of an exact filter.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::saved_form;
use super::shard::Shard;
use crate::filter::generation::Generations;
use crate::filter::local::{Fill, Gauge};
use crate::filter::table::{most_keys, slot_bytes};
use crate::filter::{SHARDS, ShardId};

/// Numbers of keys and slots in an owner's shards. All threads can read these numbers.
#[derive(Debug)]
pub(super) struct Shown {
    expires: bool,
    generations: Mutex<Generations>,
    pub(super) shards: Vec<(ShardId, ShownShard)>,
}

#[derive(Debug, Default)]
pub(super) struct ShownShard {
    keys: AtomicU64,
    slots: AtomicU64,
}

impl ShownShard {
    pub(super) fn show(&self, shard: &Shard) {
        self.keys.store(shard.live_keys(), Ordering::Relaxed);
        self.slots.store(shard.slots(), Ordering::Relaxed);
    }
}

impl Shown {
    /// Shows a new filter with these shards.
    pub(super) fn new(expires: bool, shards: impl Iterator<Item = ShardId>) -> Self {
        let shards = shards.map(|shard| (shard, ShownShard::default())).collect();
        Self { expires, generations: Mutex::default(), shards }
    }

    /// Shows the present state of the shards.
    pub(super) fn show(&self, shards: &[Shard]) {
        for ((_, shown), shard) in self.shards.iter().zip(shards) {
            shown.show(shard);
        }
        if self.expires {
            let shards = shards.iter().filter_map(Shard::generations);
            let all = shards.fold(Generations::default(), |all, shard| all.with(&shard));
            *self.generations.lock().unwrap_or_else(PoisonError::into_inner) = all;
        }
    }
}

impl Gauge for Shown {
    fn fill(&self) -> Fill {
        let shards = self.shards.iter().map(|(_, shard)| {
            let keys = shard.keys.load(Ordering::Relaxed);
            let slots = shard.slots.load(Ordering::Relaxed);
            let (capacity, bytes) = (most_keys(slots), slots * slot_bytes(self.expires));
            Fill { keys, counted: keys, capacity, bytes, ..Fill::default() }
        });
        shards.sum()
    }

    fn saved_bytes(&self) -> u64 {
        self.fill().keys * saved_form(self.expires).key() as u64
    }

    fn generations(&self) -> Option<Generations> {
        let generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        self.expires.then_some(*generations)
    }

    fn keys(&self, keys: &mut [u64; SHARDS]) {
        for (shard, shown) in &self.shards {
            keys[shard.index()] = shown.keys.load(Ordering::Relaxed);
        }
    }
}
