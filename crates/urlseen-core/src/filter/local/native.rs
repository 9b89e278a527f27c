//! The native kind, in memory.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
        let shards = std::iter::repeat_with(Shown::default).take(SHARDS).collect();
        let gauge = Arc::new(Counts { sizing: *sizing, shards });
        Ok(Self { shards: Shards::allocate(native)?, gauge })
    }

    fn show(&self) {
        for (shown, &count) in self.gauge.shards.iter().zip(self.shards.counts()) {
            shown.show(count);
        }
    }

    /// Shows the shards of these keys, after a change of these shards alone.
    fn show_shards_of(&self, key_hashes: &[KeyHash]) {
        if key_hashes.len() >= self.gauge.shards.len() {
            return self.show();
        }
        for shard in key_hashes.iter().map(KeyHash::shard) {
            self.gauge.shards[shard.index()].show(self.shards.count(shard));
        }
    }
}

impl FilterKind for NativeFilter {
    fn test(&self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>) {
        self.shards.test_all(key_hashes, verdicts);
    }

    fn insert(&mut self, _: Generation, key_hashes: &[KeyHash]) -> Result<(), Full> {
        self.shards.set_all(key_hashes);
        self.show_shards_of(key_hashes);
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

/// Numbers of keys and set bits in each shard. All threads can read these numbers.
#[derive(Debug)]
struct Counts {
    sizing: Sizing,
    shards: Vec<Shown>,
}

#[derive(Debug, Default)]
struct Shown {
    keys: AtomicU64,
    ones: AtomicU64,
}

impl Shown {
    fn show(&self, count: Count) {
        self.keys.store(count.keys, Ordering::Relaxed);
        self.ones.store(count.ones, Ordering::Relaxed);
    }
}

impl Counts {
    /// Estimates the number of keys in each shard.
    fn estimates(&self) -> [u64; SHARDS] {
        let mut keys = [0; SHARDS];
        for (keys, shown) in keys.iter_mut().zip(&self.shards) {
            let ones = shown.ones.load(Ordering::Relaxed);
            *keys = self.sizing.geometry.keys_from_ones(ones);
        }
        keys
    }
}

impl Gauge for Counts {
    fn fill(&self) -> Fill {
        let keys = self.estimates();
        let counted = self.shards.iter().map(|shown| shown.keys.load(Ordering::Relaxed));
        Fill {
            keys: keys.iter().sum(),
            counted: counted.sum(),
            capacity: self.sizing.capacity.get(),
            bytes: SHARDS as u64 * self.sizing.geometry.shard_bits() / 8,
            ..Fill::default()
        }
    }

    fn error_rate(&self) -> f64 {
        self.sizing.geometry.error_rate_of(&self.estimates())
    }
}
