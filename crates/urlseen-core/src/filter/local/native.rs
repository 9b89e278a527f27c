//! The native kind, in memory.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Blob, Fill, FilterKind, Full, Gauge, Saved};
use crate::filter::layout::native::{KeyHash, Native};
use crate::filter::region::AllocationError;
use crate::filter::{Count, SHARDS, ShardId, Shards, Sizing, Verdict};

/// Shards of a native filter that belong to one owner.
#[derive(Debug)]
pub struct NativeFilter {
    shards: Shards,
    gauge: Arc<Counts>,
}

impl NativeFilter {
    /// Maps memory for the shards of one owner. The shards are empty. `owner` is the index of the
    /// owner, and `owners` is the number of all owners.
    ///
    /// # Errors
    /// The system has too little memory.
    pub(in crate::filter) fn allocate(
        sizing: &Sizing,
        native: Native,
        owner: usize,
        owners: usize,
    ) -> Result<Self, AllocationError> {
        let shards = Shards::allocate(native, owner, owners)?;
        let own = shards.counts().map(|(shard, _)| (shard, Shown::default())).collect();
        Ok(Self { shards, gauge: Arc::new(Counts { sizing: *sizing, shards: own }) })
    }

    fn show(&self) {
        for ((_, shown), (_, count)) in self.gauge.shards.iter().zip(self.shards.counts()) {
            shown.show(count);
        }
    }

    /// Shows the shards of these keys, after a change of these shards alone.
    fn show_shards_of(&self, key_hashes: &[KeyHash]) {
        if key_hashes.len() >= self.gauge.shards.len() {
            return self.show();
        }
        for shard in key_hashes.iter().map(KeyHash::shard) {
            self.gauge.shards[self.shards.slot(shard)].1.show(self.shards.count(shard));
        }
    }
}

impl FilterKind for NativeFilter {
    fn test(&self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>) {
        self.shards.test_all(key_hashes, verdicts);
    }

    fn insert(&mut self, key_hashes: &[KeyHash]) -> Result<(), Full> {
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
        Box::new(Saved { keys: count.keys, bytes })
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

/// Numbers of keys and set bits in an owner's shards. All threads can read these numbers.
#[derive(Debug)]
struct Counts {
    sizing: Sizing,
    shards: Vec<(ShardId, Shown)>,
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
        for (shard, shown) in &self.shards {
            let ones = shown.ones.load(Ordering::Relaxed);
            keys[shard.index()] = self.sizing.geometry.keys_from_ones(ones);
        }
        keys
    }
}

impl Gauge for Counts {
    fn fill(&self) -> Fill {
        let keys = self.estimates();
        let counted = self.shards.iter().map(|(_, shown)| shown.keys.load(Ordering::Relaxed));
        let own = self.shards.iter().map(|(shard, _)| shard.share(self.sizing.capacity.get()));
        Fill {
            keys: keys.iter().sum(),
            counted: counted.sum(),
            capacity: own.sum(),
            bytes: self.shards.len() as u64 * self.sizing.geometry.shard_bits() / 8,
            ..Fill::default()
        }
    }

    fn error_rate(&self) -> f64 {
        self.sizing.geometry.error_rate_of(&self.estimates())
    }
}
