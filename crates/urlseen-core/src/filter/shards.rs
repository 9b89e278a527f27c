//! Bits of a native filter.

// Functions must be inlined into the kernel that they are compiled for, see `Work::by`.
#![allow(clippy::inline_always)]

use std::io::{self, Read};

use super::block::{self, Kernel, Kernels, Work};
use super::layout::native::Native;
use super::places::Places;
use super::region::{AllocationError, Region};
use super::{KeyHash, SHARDS, ShardId, Verdict};

/// All shards of a filter, in one contiguous region of memory. Each shard is contiguous, too.
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
/// let mut shards = Shards::allocate(native)?;
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
    /// Counts of each shard, in order.
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
    /// Maps the memory of the empty shards.
    ///
    /// # Errors
    /// The system has too little memory.
    pub fn allocate(native: Native) -> Result<Self, AllocationError> {
        let blocks = native.geometry.shard_blocks().saturating_mul(SHARDS as u64);
        let (places, counts) = (Places::new(native), vec![Count::default(); SHARDS]);
        Ok(Self { places, region: Region::zeroed(blocks)?, counts, kernel: Kernels::fastest() })
    }

    /// Appends a verdict on each key, in the order of the keys.
    pub fn test_all(&self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>) {
        let blocks = self.places.native.geometry.blocks();
        self.kernel.run(blocks, TestAll { shards: self, key_hashes, verdicts });
    }

    /// Sets the bits of all keys.
    pub fn set_all(&mut self, key_hashes: &[KeyHash]) {
        let blocks = self.places.native.geometry.blocks();
        self.kernel.run(blocks, SetAll { shards: self, key_hashes });
    }

    /// Returns the bits of a whole shard, for [`Shards::load`]: its blocks in order, and the words
    /// of each block in order, little endian.
    pub fn bytes(&self, shard: ShardId) -> &[u8] {
        block::bytes(&self.region.blocks()[self.places.range(shard)])
    }

    /// Returns the numbers of keys and set bits in a shard.
    pub fn count(&self, shard: ShardId) -> Count {
        self.counts[shard.index()]
    }

    /// Replaces the bits of a shard by bytes that are read from `from`. `keys` is the number of
    /// keys in these bytes.
    ///
    /// # Errors
    /// Reading fails. The shard is then empty.
    pub fn load(&mut self, shard: ShardId, keys: u64, from: &mut dyn Read) -> io::Result<()> {
        let bytes = block::bytes_mut(&mut self.region.blocks_mut()[self.places.range(shard)]);
        let read = from.read_exact(bytes);
        if read.is_err() {
            bytes.fill(0);
        }
        let ones = bytemuck::cast_slice::<_, u64>(&self.region.blocks()[self.places.range(shard)]);
        let ones = ones.iter().map(|word| u64::from(word.count_ones())).sum();
        self.counts[shard.index()] = Count { keys: if read.is_ok() { keys } else { 0 }, ones };
        read
    }

    /// Clears the bits of a shard, unless all of them are 0.
    pub fn clear(&mut self, shard: ShardId) {
        let count = &mut self.counts[shard.index()];
        // An empty shard is skipped, so that its memory is not touched.
        if *count != Count::default() {
            block::bytes_mut(&mut self.region.blocks_mut()[self.places.range(shard)]).fill(0);
            *count = Count::default();
        }
    }

    /// Clears the bits of all shards that are not empty.
    pub(crate) fn clear_all(&mut self) {
        for shard in ShardId::all() {
            self.clear(shard);
        }
    }

    /// Returns the numbers of keys and set bits of all shards, in order.
    pub fn counts(&self) -> &[Count] {
        &self.counts
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
            let count = &mut counts[key_hash.shard().index()];
            count.keys += u64::from(new > 0);
            count.ones += u64::from(new);
        });
    }
}

#[cfg(test)]
#[path = "shards_tests.rs"]
mod tests;
