//! The native kind, in memory.

use std::io::{self, Read};
use std::sync::Arc;

use super::shown::Shown;
use super::{Blob, Fill, FilterKind, Full, Gauge, Saved};
use crate::filter::generation::Generation;
use crate::filter::layout::native::Native;
use crate::filter::region::AllocationError;
use crate::filter::{Count, KeyHash, SHARDS, ShardId, Shards, Sizing, Verdict};

/// Shards of a native filter.
#[derive(Debug)]
pub(crate) struct NativeFilter {
    shards: Shards,
    gauge: Arc<Counts>,
}

impl NativeFilter {
    /// Maps memory for the empty shards.
    ///
    /// # Errors
    /// The system has too little memory.
    pub(in crate::filter) fn allocate(
        sizing: &Sizing,
        native: Native,
    ) -> Result<Self, AllocationError> {
        let gauge = Arc::new(Counts { sizing: *sizing, shown: Shown::default() });
        Ok(Self { shards: Shards::allocate(native)?, gauge })
    }

    /// Returns the numbers for the gauge.
    fn numbers(&self, shard: usize) -> [u64; 2] {
        let Count { keys, ones } = self.shards.counts()[shard];
        [keys, ones]
    }

    fn show(&self) {
        self.gauge.shown.show(|shard| self.numbers(shard));
    }
}

impl FilterKind for NativeFilter {
    fn test(&self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>) {
        self.shards.test_all(key_hashes, verdicts);
    }

    fn insert(&mut self, _: Generation, key_hashes: &[KeyHash]) -> Result<(), Full> {
        self.shards.set_all(key_hashes);
        self.gauge.shown.show_shards_of(key_hashes, |shard| self.numbers(shard));
        Ok(())
    }

    fn gauge(&self) -> Arc<dyn Gauge> {
        Arc::clone(&self.gauge) as Arc<dyn Gauge>
    }

    fn save(&self, shard: ShardId, mut bytes: Vec<u8>) -> Box<dyn Blob> {
        let count = self.shards.count(shard);
        bytes.clear();
        if count.ones > 0 {
            bytes.extend_from_slice(self.shards.bytes(shard));
        }
        Box::new(Saved::bits(count.keys, bytes))
    }

    fn load(&mut self, shard: ShardId, keys: u64, len: u64, from: &mut dyn Read) -> io::Result<()> {
        let loaded = if len == 0 {
            self.shards.clear(shard);
            Ok(())
        } else if len == self.shards.bytes(shard).len() as u64 {
            self.shards.load(shard, keys, from)
        } else {
            Err(io::ErrorKind::InvalidData.into())
        };
        self.show();
        loaded
    }

    fn clear(&mut self) {
        self.shards.clear_all();
        self.show();
    }
}

/// Numbers of keys and of set bits.
#[derive(Debug)]
struct Counts {
    sizing: Sizing,
    shown: Shown<2>,
}

impl Counts {
    /// Estimates the number of keys in each shard.
    fn estimates(&self) -> [u64; SHARDS] {
        let mut keys = [0; SHARDS];
        for (keys, [_, ones]) in keys.iter_mut().zip(self.shown.shards()) {
            *keys = self.sizing.geometry.keys_from_ones(ones);
        }
        keys
    }
}

impl Gauge for Counts {
    fn fill(&self) -> Fill {
        let keys = self.estimates();
        let [counted, _] = self.shown.sums();
        Fill {
            keys: keys.iter().sum(),
            counted,
            capacity: self.sizing.capacity.get(),
            bytes: SHARDS as u64 * self.sizing.geometry.shard_bits() / 8,
            ..Fill::default()
        }
    }

    fn error_rate(&self) -> f64 {
        self.sizing.geometry.error_rate_of(&self.estimates())
    }
}
