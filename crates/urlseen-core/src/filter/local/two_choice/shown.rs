//! Gauge of a filter of the kind `two-choice`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::filter::generation::Generations;
use crate::filter::local::{Fill, Gauge};
use crate::filter::two_choice::{Shard, TwoChoiceSize};
use crate::filter::{BLOCK_BYTES, SHARDS};

/// Numbers of keys and slots in each shard, for all threads.
#[derive(Debug)]
pub(super) struct Shown {
    size: TwoChoiceSize,
    generations: Mutex<Generations>,
    pub(super) shards: Vec<ShownShard>,
}

#[derive(Debug, Default)]
pub(super) struct ShownShard {
    keys: AtomicU64,
    pub(super) slots: AtomicU64,
    blocks: AtomicU64,
}

impl ShownShard {
    pub(super) fn show(&self, shard: &Shard) {
        self.keys.store(shard.live_keys(), Ordering::Relaxed);
        self.slots.store(shard.slots(), Ordering::Relaxed);
        self.blocks.store(shard.block_count(), Ordering::Relaxed);
    }
}

impl Shown {
    /// Shows a new filter of this size.
    pub(super) fn new(size: TwoChoiceSize) -> Self {
        let shards = std::iter::repeat_with(ShownShard::default).take(SHARDS).collect();
        Self { size, generations: Mutex::default(), shards }
    }

    /// Shows the present state of the shards.
    pub(super) fn show(&self, shards: &[Shard]) {
        for (shown, shard) in self.shards.iter().zip(shards) {
            shown.show(shard);
        }
        if self.size.expires {
            let shards = shards.iter().filter_map(Shard::generations);
            let all = shards.fold(Generations::default(), |all, shard| all.with(&shard));
            *self.generations.lock().unwrap_or_else(PoisonError::into_inner) = all;
        }
    }

    fn sum(&self, number: impl Fn(&ShownShard) -> &AtomicU64) -> u64 {
        self.shards.iter().map(|shard| number(shard).load(Ordering::Relaxed)).sum()
    }
}

impl Gauge for Shown {
    fn fill(&self) -> Fill {
        let keys = self.sum(|shard| &shard.keys);
        let capacity = self.sum(|shard| &shard.slots) / 10 * 9;
        let bytes = self.sum(|shard| &shard.blocks) * u64::from(BLOCK_BYTES);
        Fill { keys, counted: keys, capacity, bytes, ..Fill::default() }
    }

    fn saved_bytes(&self) -> u64 {
        self.sum(|shard| &shard.keys) * self.size.saved_form().key() as u64
    }

    fn generations(&self) -> Option<Generations> {
        let generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        self.size.expires.then_some(*generations)
    }

    fn error_rate(&self) -> f64 {
        self.size.error_rate_at(self.sum(|shard| &shard.keys))
    }
}
