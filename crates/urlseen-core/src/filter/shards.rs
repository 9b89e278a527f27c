//! Bits of the shards that one thread owns.

// Functions must be inlined into the kernel that they are compiled for, see `Work::by`.
#![allow(clippy::inline_always)]

use std::io::{self, Read};

use super::block::{self, Kernel, Kernels, Work};
use super::layout::native::{KeyHash, Native};
use super::places::Places;
use super::region::{AllocationError, Region};
use super::{SHARDS, ShardId, Verdict};

/// Shards of one owner, in one contiguous region of memory. Each shard is contiguous, too. Only the
/// thread that owns this value works on these shards, so they need no lock.
///
/// Each block that a test reads is usually not in the processor's caches. So keys are tested and
/// set in batches: while a kernel works on the blocks of one key, the blocks of the next keys are
/// fetched.
///
/// ```
/// # use urlseen_core::filter::{Capacity, ErrorRate, Seed, Shards, Sizing, Verdict};
/// # use urlseen_core::filter::native::Native;
/// # use urlseen_core::fingerprint::Fingerprint;
/// # let sizing = Sizing::new("1000".parse()?, "1e-6".parse()?);
/// let native = Native::new(Seed::new(7), sizing.geometry);
/// let mut shards = Shards::allocate(native, 0, 1)?;
/// # let batch = [Fingerprint::Raw20([1; 20]), Fingerprint::Raw20([2; 20])];
/// let key_hashes: Vec<_> = batch.iter().map(|fingerprint| native.key_hash(fingerprint)).collect();
/// let mut verdicts = Vec::new();
/// shards.test_all(&key_hashes, &mut verdicts);
/// # assert_eq!(verdicts, [Verdict::Unseen, Verdict::Unseen]);
/// let mut unseen = key_hashes.clone();
/// let mut judged = verdicts.drain(..);
/// unseen.retain(|_| judged.next() == Some(Verdict::Unseen));
/// # drop(judged);
/// shards.set_all(&unseen);
/// # shards.test_all(&key_hashes, &mut verdicts);
/// # assert_eq!(verdicts, [Verdict::Seen, Verdict::Seen]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Shards {
    places: Places,
    region: Region,
    /// Counts of each owned shard, in the region's order.
    counts: Vec<Count>,
    kernel: Kernels,
}

/// Numbers of keys and of set bits in a shard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of keys that set at least one new bit. Keys that were reported as seen set none.
    pub keys: u64,
    /// Number of bits of the shard that are 1.
    pub ones: u64,
}

impl Shards {
    /// Maps the memory of the empty shards that belong to `owner`, the index of one of `owners`
    /// owners (see [`ShardId::owner`]).
    ///
    /// # Errors
    /// The system has too little memory.
    ///
    /// # Panics
    /// Panics if `owner` is not below `owners`, or if there are more owners than shards.
    pub fn allocate(native: Native, owner: usize, owners: usize) -> Result<Self, AllocationError> {
        assert!(owner < owners && owners <= SHARDS, "owner {owner} of {owners}");
        let (places, held) = Places::new(native, owner, owners);
        let region = Region::zeroed(native.geometry.shard_blocks().saturating_mul(held as u64))?;
        let counts = vec![Count::default(); held];
        Ok(Self { places, region, counts, kernel: Kernels::fastest() })
    }

    /// Returns true if the owner has a shard.
    pub fn has(&self, shard: ShardId) -> bool {
        self.places.has(shard)
    }

    /// Appends a verdict on each key, in the order of the keys.
    ///
    /// # Panics
    /// Panics if another owner has the shard of a key.
    pub fn test_all(&self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>) {
        let blocks = self.places.native.geometry.blocks();
        self.kernel.run(blocks, TestAll { shards: self, key_hashes, verdicts });
    }

    /// Sets the bits of all keys.
    ///
    /// # Panics
    /// Panics if another owner has the shard of a key.
    pub fn set_all(&mut self, key_hashes: &[KeyHash]) {
        let blocks = self.places.native.geometry.blocks();
        self.kernel.run(blocks, SetAll { shards: self, key_hashes });
    }

    /// Returns the bits of a whole shard, for [`Shards::load`]: its blocks in order, and the words
    /// of each block in order, little endian.
    ///
    /// # Panics
    /// Panics if another owner has the shard.
    pub fn bytes(&self, shard: ShardId) -> &[u8] {
        block::bytes(&self.region.blocks()[self.places.range(shard)])
    }

    /// Returns the numbers of keys and set bits in a shard.
    ///
    /// # Panics
    /// Panics if another owner has the shard.
    pub fn count(&self, shard: ShardId) -> Count {
        self.counts[self.slot(shard)]
    }

    /// Returns the index of a shard among the shards of the owner.
    ///
    /// # Panics
    /// Panics if another owner has the shard.
    pub(super) fn slot(&self, shard: ShardId) -> usize {
        self.places.slot(shard)
    }

    /// Replaces the bits of a shard by bytes that are read from `from`. `keys` is the number of
    /// keys in these bytes.
    ///
    /// # Errors
    /// Reading fails. The shard is then empty.
    ///
    /// # Panics
    /// Panics if another owner has the shard.
    pub fn load(&mut self, shard: ShardId, keys: u64, from: &mut dyn Read) -> io::Result<()> {
        let slot = self.places.slot(shard);
        let bytes = block::bytes_mut(&mut self.region.blocks_mut()[self.places.range(shard)]);
        let read = from.read_exact(bytes);
        if read.is_err() {
            bytes.fill(0);
        }
        let ones = bytemuck::cast_slice::<_, u64>(&self.region.blocks()[self.places.range(shard)]);
        let ones = ones.iter().map(|word| u64::from(word.count_ones())).sum();
        self.counts[slot] = Count { keys: if read.is_ok() { keys } else { 0 }, ones };
        read
    }

    /// Empties one shard of the owner.
    ///
    /// # Panics
    /// Panics if another owner has the shard.
    pub fn clear(&mut self, shard: ShardId) {
        let count = &mut self.counts[self.places.slot(shard)];
        // An empty shard is skipped, so that its memory is not touched.
        if *count != Count::default() {
            block::bytes_mut(&mut self.region.blocks_mut()[self.places.range(shard)]).fill(0);
            *count = Count::default();
        }
    }

    /// Empties all owned shards.
    pub fn clear_all(&mut self) {
        for shard in ShardId::all() {
            if self.has(shard) {
                self.clear(shard);
            }
        }
    }

    /// Iterates over all shards of the owner, with their numbers of keys and set bits.
    pub fn counts(&self) -> impl Iterator<Item = (ShardId, Count)> {
        let owned = ShardId::all().filter(|&shard| self.has(shard));
        owned.zip(self.counts.iter().copied())
    }
}

/// Work of [`Shards::test_all`].
struct TestAll<'a> {
    shards: &'a Shards,
    key_hashes: &'a [KeyHash],
    verdicts: &'a mut Vec<Verdict>,
}

impl Work for TestAll<'_> {
    #[inline(always)]
    fn by<const BLOCKS: usize>(self, kernel: impl Kernel) {
        let Self { shards: Shards { places, region, .. }, key_hashes, verdicts } = self;
        let native = places.native;
        verdicts.reserve(key_hashes.len());
        places.visit(region.blocks(), key_hashes, |blocks, key_hash, places: [usize; BLOCKS]| {
            let drawn = places.into_iter().enumerate();
            let drawn = drawn.map(|(part, place)| (&blocks[place], native.draw(key_hash, part)));
            // Tests all blocks without a branch: they have been fetched, and a processor cannot
            // predict whether a key is seen.
            verdicts.push(Verdict::of(kernel.hold(drawn)));
        });
    }
}

/// Work of [`Shards::set_all`].
struct SetAll<'a> {
    shards: &'a mut Shards,
    key_hashes: &'a [KeyHash],
}

impl Work for SetAll<'_> {
    #[inline(always)]
    fn by<const BLOCKS: usize>(self, kernel: impl Kernel) {
        let Self { shards: Shards { places: map, region, counts, .. }, key_hashes } = self;
        let native = map.native;
        map.visit(region.blocks_mut(), key_hashes, |blocks, key_hash, places: [usize; BLOCKS]| {
            let mut new = 0;
            for (part, place) in places.into_iter().enumerate() {
                new += kernel.set(&mut blocks[place], native.draw(key_hash, part));
            }
            let count = &mut counts[map.slot(key_hash.shard())];
            count.keys += u64::from(new > 0);
            count.ones += u64::from(new);
        });
    }
}

#[cfg(test)]
#[path = "shards_tests.rs"]
mod tests;
