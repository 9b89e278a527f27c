//! Gauge of a filter of the kind `two-choice`.

use std::sync::{Mutex, PoisonError};

use crate::filter::BLOCK_BYTES;
use crate::filter::generation::Generations;
use crate::filter::local::shown::Shown;
use crate::filter::local::{Fill, Gauge};
use crate::filter::two_choice::{Shard, TwoChoiceSize};

/// Numbers of keys, slots and blocks, and the generations of the keys.
#[derive(Debug)]
pub(super) struct Sizes {
    size: TwoChoiceSize,
    generations: Mutex<Generations>,
    pub(super) shown: Shown<3>,
}

impl Sizes {
    /// Shows a new filter of this size.
    pub(super) fn new(size: TwoChoiceSize) -> Self {
        Self { size, generations: Mutex::default(), shown: Shown::default() }
    }

    /// Shows the present state of the shards.
    pub(super) fn show(&self, shards: &[Shard]) {
        self.shown.show(|shard| numbers(&shards[shard]));
        if self.size.expires {
            let shards = shards.iter().filter_map(Shard::generations);
            let all = shards.fold(Generations::default(), |all, shard| all.with(&shard));
            *self.generations.lock().unwrap_or_else(PoisonError::into_inner) = all;
        }
    }
}

/// Returns the numbers of a shard.
pub(super) fn numbers(shard: &Shard) -> [u64; 3] {
    [shard.live_keys(), shard.slots(), shard.block_count()]
}

impl Gauge for Sizes {
    fn fill(&self) -> Fill {
        let [keys, slots, blocks] = self.shown.sums();
        let (capacity, bytes) = (slots / 10 * 9, blocks * u64::from(BLOCK_BYTES));
        Fill { keys, counted: keys, capacity, bytes, ..Fill::default() }
    }

    fn saved_bytes(&self) -> u64 {
        self.fill().keys * self.size.saved_form().key() as u64
    }

    fn generations(&self) -> Option<Generations> {
        let generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        self.size.expires.then_some(*generations)
    }

    fn error_rate(&self) -> f64 {
        self.size.error_rate_at(self.fill().keys)
    }
}
