//! The native kind, in memory.

// Functions must be inlined into the kernel that they are compiled for, see `BitWork::by`.
#![allow(clippy::inline_always)]

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use super::kernel::{BitKernel, BitKernels, BitWork};
use crate::local::shown::Shown;
use crate::local::{Blob, Fill, FilterKind, Full, Gauge, Saved};
use crate::native::Native;
use crate::region::{AllocationError, Region};
use crate::region::{Block, prefetch};
use crate::{Geometry, KeyHash, SHARDS, ShardId, Verdict};

/// All shards of a filter, in one contiguous region of memory. Each shard is contiguous, too.
///
/// Each block that a test reads is usually not in the processor's caches. So keys are tested and
/// set in batches: while a kernel works on the blocks of one key, the blocks of the next keys are
/// fetched.
///
/// ```
/// # use urlseen_filter::{Capacity, ErrorRate, Seed, Shards, Sizing, Verdict};
/// # use urlseen_filter::Native;
/// # use urlseen_fingerprint::Fingerprint;
/// # let sizing = Sizing::new("1000".parse()?, "1e-6".parse()?);
/// let native = Native::new(Seed::new(7), sizing.geometry);
/// let mut shards = Shards::allocate(native, 1000)?;
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
    kernel: BitKernels,
    gauge: Arc<NativeGauge>,
}

/// Numbers of keys and of set bits in a shard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Number of keys that set at least one new bit. Keys that were reported as seen set none.
    pub keys: u64,
    /// Number of bits of the shard that are 1.
    pub ones: u64,
}

impl Shards {
    /// Maps the memory of the empty shards of a filter that is made for this number of keys.
    ///
    /// # Errors
    /// The system has too little memory.
    pub fn allocate(native: Native, capacity: u64) -> Result<Self, AllocationError> {
        let geometry = native.geometry;
        let region = Region::zeroed(geometry.shard_blocks().saturating_mul(SHARDS as u64))?;
        let (places, counts) = (Places::new(native), vec![Count::default(); SHARDS]);
        let gauge = Arc::new(NativeGauge { geometry, capacity, shown: Shown::default() });
        Ok(Self { places, region, counts, kernel: BitKernels::fastest(), gauge })
    }

    /// Appends a verdict on each key, in the order of the keys.
    pub fn test_all(&self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>) {
        let blocks = self.places.native.geometry.blocks;
        self.kernel.run(blocks, TestKeys { shards: self, key_hashes, verdicts });
    }

    /// Sets the bits of all keys.
    pub fn set_all(&mut self, key_hashes: &[KeyHash]) {
        let blocks = self.places.native.geometry.blocks;
        self.kernel.run(blocks, SetAll { shards: self, key_hashes });
    }

    fn blocks(&self, shard: ShardId) -> &[Block] {
        &self.region.blocks()[self.places.range(shard)]
    }

    fn blocks_mut(&mut self, shard: ShardId) -> &mut [Block] {
        &mut self.region.blocks_mut()[self.places.range(shard)]
    }

    /// Clears the bits of a shard, unless all of them are 0.
    fn empty(&mut self, shard: ShardId) {
        // An empty shard is skipped, so that its memory is not touched.
        if self.counts[shard.index()] != Count::default() {
            bytemuck::fill_zeroes(self.blocks_mut(shard));
            self.counts[shard.index()] = Count::default();
        }
    }

    /// Reads the bits of a shard, which has this number of keys.
    fn read(&mut self, shard: ShardId, keys: u64, from: &mut dyn Read) -> io::Result<()> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(self.blocks_mut(shard));
        let read = from.read_exact(bytes);
        if read.is_err() {
            bytes.fill(0);
        }
        let words = bytemuck::cast_slice::<_, u64>(self.blocks(shard));
        let ones = words.iter().map(|word| u64::from(word.count_ones())).sum();
        self.counts[shard.index()] = Count { keys: if read.is_ok() { keys } else { 0 }, ones };
        read
    }

    /// Returns the numbers for the gauge.
    fn numbers(&self, shard: usize) -> [u64; 2] {
        let Count { keys, ones } = self.counts[shard];
        [keys, ones]
    }

    fn show(&self) {
        self.gauge.shown.show(|shard| self.numbers(shard));
    }

    /// Returns the numbers of keys and set bits of all shards, in order.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> &[Count] {
        &self.counts
    }
}

impl FilterKind for Shards {
    fn test(&self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>) {
        self.test_all(key_hashes, verdicts);
    }

    fn insert(&mut self, key_hashes: &[KeyHash]) -> Result<(), Full> {
        self.set_all(key_hashes);
        self.gauge.shown.show_shards_of(key_hashes, |shard| self.numbers(shard));
        Ok(())
    }

    fn gauge(&self) -> Arc<dyn Gauge> {
        Arc::clone(&self.gauge) as Arc<dyn Gauge>
    }

    /// Saves the blocks in order, and the words of each block in order, little endian. An empty
    /// shard has no bytes.
    fn save(&self, shard: ShardId, mut bytes: Vec<u8>) -> Box<dyn Blob> {
        let Count { keys, ones } = self.counts[shard.index()];
        bytes.clear();
        if ones > 0 {
            bytes.extend_from_slice(bytemuck::cast_slice(self.blocks(shard)));
        }
        Box::new(Saved::bits(keys, bytes))
    }

    fn load(&mut self, shard: ShardId, keys: u64, len: u64, from: &mut dyn Read) -> io::Result<()> {
        let loaded = if len == 0 {
            self.empty(shard);
            Ok(())
        } else if len == size_of_val(self.blocks(shard)) as u64 {
            self.read(shard, keys, from)
        } else {
            Err(io::ErrorKind::InvalidData.into())
        };
        self.show();
        loaded
    }

    fn clear(&mut self) {
        ShardId::all().for_each(|shard| self.empty(shard));
        self.show();
    }
}

/// Numbers of keys and of set bits.
#[derive(Debug)]
struct NativeGauge {
    geometry: Geometry,
    /// Number of keys that the filter is made for.
    capacity: u64,
    shown: Shown<2>,
}

impl NativeGauge {
    /// Estimates the number of keys in each shard.
    fn estimates(&self) -> [u64; SHARDS] {
        let mut keys = [0; SHARDS];
        for (keys, [_, ones]) in keys.iter_mut().zip(self.shown.shards()) {
            *keys = self.geometry.keys_from_ones(ones);
        }
        keys
    }
}

impl Gauge for NativeGauge {
    fn fill(&self) -> Fill {
        let (keys, [counted, _]) = (self.estimates().iter().sum(), self.shown.sums());
        let (capacity, bytes) = (self.capacity, self.geometry.bytes());
        Fill { keys, counted, capacity, bytes, ..Fill::default() }
    }

    fn error_rate(&self) -> f64 {
        self.geometry.error_rate_of(&self.estimates())
    }
}

/// Work of [`Shards::test_all`].
struct TestKeys<'a> {
    shards: &'a Shards,
    key_hashes: &'a [KeyHash],
    verdicts: &'a mut Vec<Verdict>,
}

impl BitWork for TestKeys<'_> {
    #[inline(always)]
    fn by<const BLOCKS: usize>(self, kernel: impl BitKernel) {
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

impl BitWork for SetAll<'_> {
    #[inline(always)]
    fn by<const BLOCKS: usize>(self, kernel: impl BitKernel) {
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

/// Number of keys whose blocks are fetched ahead of the visited key. In measurements, half or twice
/// this number was about as fast.
const AHEAD: usize = 64;

/// Positions of the blocks of shards and keys in the filter's region of memory.
#[derive(Debug)]
struct Places {
    native: Native,
    shard_blocks: usize,
}

impl Places {
    fn new(native: Native) -> Self {
        // If the number of blocks does not fit into a `usize`, the later allocation of the region
        // fails.
        let shard_blocks = usize::try_from(native.geometry.shard_blocks()).unwrap_or(usize::MAX);
        Self { native, shard_blocks }
    }

    /// Returns the indices of a shard's blocks in the region.
    fn range(&self, shard: ShardId) -> Range<usize> {
        let first = shard.index() * self.shard_blocks;
        first..first + self.shard_blocks
    }

    /// Returns the indices of a key's blocks in the region. A key must have `BLOCKS` blocks.
    #[inline(always)]
    fn of<const BLOCKS: usize>(&self, key_hash: KeyHash) -> [usize; BLOCKS] {
        let first = key_hash.shard().index() * self.shard_blocks;
        std::array::from_fn(|part| first + self.native.block(key_hash, part))
    }

    /// Calls `visit` for each key, with the indices of its blocks in `blocks`. Before each call,
    /// this function has begun to fetch the blocks of the key and of the next keys from memory.
    #[inline(always)]
    fn visit<Region: AsRef<[Block]>, const BLOCKS: usize>(
        &self,
        mut blocks: Region,
        key_hashes: &[KeyHash],
        mut visit: impl FnMut(&mut Region, KeyHash, [usize; BLOCKS]),
    ) {
        let fetch = |blocks: &[Block], key_hash| {
            let places = self.of(key_hash);
            for place in places {
                prefetch(&blocks[place]);
            }
            places
        };
        let mut coming = key_hashes.iter();
        let mut under_way = [[0; BLOCKS]; AHEAD];
        for (places, &key_hash) in under_way.iter_mut().zip(&mut coming) {
            *places = fetch(blocks.as_ref(), key_hash);
        }
        for (number, &key_hash) in key_hashes.iter().enumerate() {
            let under_way = &mut under_way[number % AHEAD];
            let places = *under_way;
            if let Some(&key_hash) = coming.next() {
                *under_way = fetch(blocks.as_ref(), key_hash);
            }
            visit(&mut blocks, key_hash, places);
        }
    }
}

#[cfg(test)]
#[path = "shards_tests.rs"]
mod tests;
