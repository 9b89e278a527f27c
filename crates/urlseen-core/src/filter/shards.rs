//! The bits of the shards that one thread owns.

// Functions must be inlined into the kernel that they are compiled for, see `Work::by`.
#![allow(clippy::inline_always)]

use std::io::{self, Read};

use super::block::{self, Kernel, Kernels, Work};
use super::layout::native::{KeyHash, Native};
use super::places::Places;
use super::region::{AllocationError, Region};
use super::{Blocks, SHARDS, ShardId, Verdict};

/// The shards of one owner, in one contiguous region; each shard is contiguous in it. There is no
/// lock: only the thread that has this value works on these shards.
///
/// A test misses the processor's caches once per block, so keys are tested and set in batches.
/// While a kernel works on one key's blocks, those of the next are fetched.
///
/// ```
/// # use urlseen_core::filter::{Capacity, ErrorRate, Seed, Shards, Sizing, Verdict};
/// # use urlseen_core::filter::native::Native;
/// # use urlseen_core::fingerprint::Fingerprint;
/// # let sizing = Sizing::new("1000".parse()?, "1e-6".parse()?);
/// let native = Native::new(Seed::new(7), sizing.geometry());
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

/// Counts of keys and bits in a shard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Keys that set at least one new bit. Keys that the filter took for seen are not counted.
    pub keys: u64,
    /// Bits of the shard that are 1.
    pub ones: u64,
}

impl Shards {
    /// Maps the memory of the shards that `owner`, one of `owners`, has (see [`ShardId::owner`]).
    /// They are empty.
    ///
    /// # Panics
    /// If `owner` is not below `owners`, or there are more owners than shards.
    pub fn allocate(native: Native, owner: usize, owners: usize) -> Result<Self, AllocationError> {
        assert!(owner < owners && owners <= SHARDS, "owner {owner} of {owners}");
        let (places, held) = Places::new(native, owner, owners);
        let region = Region::zeroed(native.geometry().shard_blocks().saturating_mul(held as u64))?;
        let counts = vec![Count::default(); held];
        Ok(Self { places, region, counts, kernel: Kernels::fastest() })
    }

    /// Returns true if a shard is one of these.
    pub fn has(&self, shard: ShardId) -> bool {
        self.places.has(shard)
    }

    /// Begins to fetch the blocks of a key that is tested soon, if its shard is one of these.
    #[inline]
    pub fn fetch(&self, key_hash: KeyHash) {
        if self.has(key_hash.shard()) {
            self.places.fetch(self.region.blocks(), key_hash);
        }
    }

    /// Appends a verdict on each of the keys, in their order.
    ///
    /// # Panics
    /// If a key's shard has another owner.
    pub fn test_all(&self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>) {
        self.kernel.run(TestAll { shards: self, key_hashes, verdicts });
    }

    /// Sets the bits of all keys.
    ///
    /// # Panics
    /// If a key's shard has another owner.
    pub fn set_all(&mut self, key_hashes: &[KeyHash]) {
        self.kernel.run(SetAll { shards: self, key_hashes });
    }

    /// Returns a whole shard's bits, for [`Shards::load`]: its blocks in order, and the words of a
    /// block in order, each little endian.
    ///
    /// # Panics
    /// If the shard has another owner.
    pub fn bytes(&self, shard: ShardId) -> &[u8] {
        block::bytes(&self.region.blocks()[self.places.range(shard)])
    }

    /// Returns the counts of a shard.
    ///
    /// # Panics
    /// If the shard has another owner.
    pub fn count(&self, shard: ShardId) -> Count {
        self.counts[self.places.slot(shard)]
    }

    /// Replaces a shard's bits by the bytes that `from` gives. `keys` is the number of keys in
    /// them.
    ///
    /// # Errors
    /// If reading fails: the shard is empty then.
    ///
    /// # Panics
    /// If the shard has another owner.
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

    /// Adds the bits of the same shards of another owner. The number of keys is then an estimate.
    pub(super) fn unite(&mut self, other: &Self) {
        let geometry = self.places.native.geometry();
        let own: Vec<ShardId> = self.counts().map(|(shard, _)| shard).collect();
        for shard in own {
            let bytes = block::bytes_mut(&mut self.region.blocks_mut()[self.places.range(shard)]);
            let mut ones = 0;
            for (byte, other) in bytes.iter_mut().zip(other.bytes(shard)) {
                *byte |= other;
                ones += u64::from(byte.count_ones());
            }
            let keys = geometry.keys_from_ones(ones);
            self.counts[self.places.slot(shard)] = Count { keys, ones };
        }
    }

    /// Empties a shard.
    ///
    /// # Panics
    /// If the shard has another owner.
    pub fn clear(&mut self, shard: ShardId) {
        let count = &mut self.counts[self.places.slot(shard)];
        // Memory of an empty shard may never have been touched, and stays so.
        if *count != Count::default() {
            block::bytes_mut(&mut self.region.blocks_mut()[self.places.range(shard)]).fill(0);
            *count = Count::default();
        }
    }

    /// Empties all owned shards.
    pub fn clear_all(&mut self) {
        let own: Vec<ShardId> = self.counts().map(|(shard, _)| shard).collect();
        for shard in own {
            self.clear(shard);
        }
    }

    /// Iterates over the counts of all owned shards.
    pub fn counts(&self) -> impl Iterator<Item = (ShardId, Count)> {
        let owned = ShardId::all().filter(|&shard| self.has(shard));
        owned.zip(self.counts.iter().copied())
    }
}

/// Work of [`Shards::test_all`] for a kernel.
struct TestAll<'a> {
    shards: &'a Shards,
    key_hashes: &'a [KeyHash],
    verdicts: &'a mut Vec<Verdict>,
}

impl Work for TestAll<'_> {
    type Done = ();

    #[inline(always)]
    fn by(self, kernel: impl Kernel) {
        match self.shards.places.native.geometry().blocks() {
            Blocks::One => self.of_blocks::<1>(kernel),
            Blocks::Two => self.of_blocks::<2>(kernel),
            Blocks::Four => self.of_blocks::<4>(kernel),
            Blocks::Eight => self.of_blocks::<8>(kernel),
        }
    }
}

impl TestAll<'_> {
    #[inline(always)]
    fn of_blocks<const BLOCKS: usize>(self, kernel: impl Kernel) {
        let Self { shards: Shards { places, region, .. }, key_hashes, verdicts } = self;
        let native = places.native;
        verdicts.reserve(key_hashes.len());
        places.visit(region.blocks(), key_hashes, |blocks, key_hash, places: [usize; BLOCKS]| {
            let drawn = places.into_iter().enumerate();
            let drawn = drawn.map(|(part, place)| (&blocks[place], native.draw(key_hash, part)));
            // Looks at all blocks. They have been fetched, and no processor can predict unseen
            // keys, so a branch would cost more.
            verdicts.push(Verdict::of(kernel.hold(drawn)));
        });
    }
}

/// Work of [`Shards::set_all`] for a kernel.
struct SetAll<'a> {
    shards: &'a mut Shards,
    key_hashes: &'a [KeyHash],
}

impl Work for SetAll<'_> {
    type Done = ();

    #[inline(always)]
    fn by(self, kernel: impl Kernel) {
        match self.shards.places.native.geometry().blocks() {
            Blocks::One => self.of_blocks::<1>(kernel),
            Blocks::Two => self.of_blocks::<2>(kernel),
            Blocks::Four => self.of_blocks::<4>(kernel),
            Blocks::Eight => self.of_blocks::<8>(kernel),
        }
    }
}

impl SetAll<'_> {
    #[inline(always)]
    fn of_blocks<const BLOCKS: usize>(self, kernel: impl Kernel) {
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
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::block::Scalar;
    use super::super::{Blocks, Geometry, Seed};
    use super::*;
    use crate::fingerprint::Fingerprint;

    fn shards(owner: usize, owners: usize) -> Shards {
        let geometry = Geometry::new(Blocks::Four, 9, 5).unwrap();
        Shards::allocate(Native::new(Seed::new(3), geometry), owner, owners).unwrap()
    }

    /// Operations on one key.
    impl Shards {
        fn test_one(&self, key_hash: KeyHash) -> Verdict {
            let mut verdicts = Vec::new();
            self.test_all(&[key_hash], &mut verdicts);
            verdicts[0]
        }

        /// Sets a key, and returns the number of new bits.
        fn set_one(&mut self, key_hash: KeyHash) -> u64 {
            let before = self.count(key_hash.shard()).ones;
            self.set_all(&[key_hash]);
            self.count(key_hash.shard()).ones - before
        }
    }

    fn key(leading: u8, rest: u8) -> Fingerprint {
        let mut raw = [rest; 20];
        raw[0] = leading;
        Fingerprint::Raw20(raw)
    }

    /// Returns all positions of a shard that are set, read from memory.
    fn ones(shards: &Shards, shard: usize) -> BTreeSet<u64> {
        let shard = ShardId::all().nth(shard).unwrap();
        let blocks = &shards.region.blocks()[shards.places.range(shard)];
        let words: &[u64] = bytemuck::cast_slice(blocks);
        let bits = (0u64..).zip(words.iter().flat_map(|word| (0..64).map(move |b| word >> b & 1)));
        bits.filter(|&(_, bit)| bit == 1).map(|(position, _)| position).collect()
    }

    #[test]
    fn setting_sets_the_positions_of_the_key_and_no_others() {
        let mut shards = shards(1, 3);
        let mut expected = BTreeSet::new();
        for (keys, rest) in (1..).zip(0..20) {
            let key_hash = shards.places.native.key_hash(&key(7, rest));
            let before = expected.len();
            expected.extend(shards.places.native.positions(key_hash));
            assert_eq!(shards.set_one(key_hash), (expected.len() - before) as u64);
            assert_eq!(ones(&shards, 7), expected);
            let count = Count { keys, ones: expected.len() as u64 };
            assert_eq!(shards.counts().find(|(id, _)| id.index() == 7).unwrap().1, count);
            assert_eq!(shards.set_one(key_hash), 0, "set again, it adds nothing");
        }
        assert!(
            (0..256)
                .filter(|&shard| shard % 3 == 1 && shard != 7)
                .all(|shard| { ones(&shards, shard).is_empty() })
        );
    }

    #[test]
    fn a_key_of_one_shard_is_unseen_in_all_others() {
        let mut shards = shards(0, 1);
        let set = shards.places.native.key_hash(&key(0, 9));
        shards.set_one(set);
        for leading in 0..=255 {
            let key_hash = shards.places.native.key_hash(&key(leading, 9));
            assert_eq!(shards.test_one(key_hash), Verdict::of(leading == 0), "{leading}");
        }
    }

    #[test]
    fn a_shard_is_taken_out_put_back_and_emptied() {
        let mut full = shards(1, 3);
        let set = |shards: &mut Shards, leading| {
            (0..20).for_each(|rest| {
                shards.set_one(shards.places.native.key_hash(&key(leading, rest)));
            });
        };
        set(&mut full, 7);
        set(&mut full, 10);
        let id = ShardId::all().nth(7).unwrap();
        let mut other = shards(1, 3);
        set(&mut other, 10);
        other.load(id, full.count(id).keys, &mut full.bytes(id)).unwrap();
        assert!(other.region.blocks() == full.region.blocks());
        assert_eq!(other.counts, full.counts);
        // Bit 9 of the first block is bit 1 of its second byte.
        let first = ones(&full, 7).into_iter().next().unwrap();
        let (byte, bits) = (0..).zip(full.bytes(id)).find(|(_, bits)| **bits != 0).unwrap();
        assert_eq!(byte * 8 + u64::from(bits.trailing_zeros()), first);

        other.clear(id);
        assert!(ones(&other, 7).is_empty());
        assert_eq!(other.count(id), Count::default());
        assert_eq!(ones(&other, 10), ones(&full, 10));
    }

    proptest! {
        #[test]
        fn every_kernel_sets_and_finds_the_same(
            blocks in prop::sample::select(Blocks::ALL.as_slice()),
            bits_per_block in 1..=Geometry::MAX_BITS_PER_BLOCK,
            blocks_per_part in 1..4u32,
            keys in prop::collection::vec((0..3u8, any::<u8>()), 0..200),
        ) {
            let geometry = Geometry::new(blocks, bits_per_block, blocks_per_part).unwrap();
            let native = Native::new(Seed::new(3), geometry);
            let key_hashes: Vec<KeyHash> =
                keys.iter().map(|&(leading, rest)| native.key_hash(&key(leading, rest))).collect();
            let set = &key_hashes[..key_hashes.len() / 2];
            let by = |kernel| {
                let mut shards = Shards::allocate(native, 0, 1).unwrap();
                shards.kernel = kernel;
                shards.set_all(set);
                let mut verdicts = Vec::new();
                shards.test_all(&key_hashes, &mut verdicts);
                (shards.region.blocks().to_vec(), shards.counts, verdicts)
            };
            let scalar = by(Kernels::Scalar(Scalar));
            prop_assert!(scalar.2[..set.len()].iter().all(|verdict| *verdict == Verdict::Seen));
            prop_assert_eq!(by(Kernels::fastest()), scalar);
        }
    }

    #[test]
    fn every_shard_has_one_owner() {
        for owners in [1, 2, 3, 7, 255, 256] {
            let all = (0..owners).flat_map(|owner| {
                shards(owner, owners).counts().map(|(id, _)| id).collect::<Vec<_>>()
            });
            let mut all: Vec<_> = all.collect();
            all.sort();
            assert_eq!(all, ShardId::all().collect::<Vec<_>>());
        }
    }

    #[test]
    #[should_panic(expected = "shard 06 has another owner")]
    fn the_shard_of_another_is_refused() {
        let shards = shards(1, 3);
        shards.test_one(shards.places.native.key_hash(&key(6, 0)));
    }

    #[test]
    fn memory_that_no_machine_has_is_an_error() {
        let geometry = Geometry::new(Blocks::Eight, 9, u32::MAX).unwrap();
        let refused = Shards::allocate(Native::new(Seed::new(3), geometry), 0, 1);
        assert!(matches!(refused, Err(AllocationError::Refused { .. })));
    }
}
