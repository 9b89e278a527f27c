//! Where the blocks of keys are in the region of one owner.

// What a kernel is to be compiled for must be inlined into it, see `Work::by`.
#![allow(clippy::inline_always)]

use std::ops::Range;

use super::block::Block;
use super::layout::native::{KeyHash, Native};
use super::prefetch::prefetch;
use super::{SHARDS, ShardId};

/// How many keys are fetched ahead of the one that is visited: measured; half or twice as many do
/// about as well.
const AHEAD: usize = 64;

/// The slot of a shard that another owner has.
const FOREIGN: u16 = u16::MAX;

/// The places of one owner's shards in its region, and of keys' blocks in those.
#[derive(Debug)]
pub struct Places {
    pub(super) native: Native,
    /// The place of each shard in the region, [`FOREIGN`] for those of other owners.
    slots: [u16; SHARDS],
    shard_blocks: usize,
}

impl Places {
    /// The places of those shards that are `owner`'s, one of `owners`; and how many
    /// these shards are.
    pub(super) fn new(native: Native, owner: usize, owners: usize) -> (Self, usize) {
        let mut slots = [FOREIGN; SHARDS];
        let mine = ShardId::all().filter(|shard| shard.owner(owners) == owner);
        let held = mine.zip(0..).map(|(shard, slot)| slots[shard.index()] = slot).count();
        // Where that does not fit, the region is refused.
        let shard_blocks = usize::try_from(native.geometry().shard_blocks()).unwrap_or(usize::MAX);
        (Self { native, slots, shard_blocks }, held)
    }

    /// Whether the shard is this owner's.
    #[inline]
    pub(super) fn has(&self, shard: ShardId) -> bool {
        self.slots[shard.index()] != FOREIGN
    }

    /// The place of a shard in the region, counted in shards.
    ///
    /// # Panics
    /// If another owner has it.
    #[inline(always)]
    pub(super) fn slot(&self, shard: ShardId) -> usize {
        let slot = self.slots[shard.index()];
        assert!(slot != FOREIGN, "shard {shard} has another owner");
        usize::from(slot)
    }

    /// The places of a shard's blocks.
    ///
    /// # Panics
    /// As [`Places::slot`].
    pub(super) fn range(&self, shard: ShardId) -> Range<usize> {
        let first = self.slot(shard) * self.shard_blocks;
        first..first + self.shard_blocks
    }

    /// The places of the key's blocks, of which there must be `BLOCKS`.
    #[inline(always)]
    fn of<const BLOCKS: usize>(&self, key_hash: KeyHash) -> [usize; BLOCKS] {
        let first = self.slot(key_hash.shard()) * self.shard_blocks;
        std::array::from_fn(|part| first + self.native.block(key_hash, part))
    }

    /// Begins to fetch the key's blocks, however many they are.
    #[inline]
    pub(super) fn fetch(&self, blocks: &[Block], key_hash: KeyHash) {
        let first = self.slot(key_hash.shard()) * self.shard_blocks;
        for part in 0..self.native.geometry().blocks().get() as usize {
            prefetch(&blocks[first + self.native.block(key_hash, part)]);
        }
    }

    /// Calls `visit` with each key in turn and the places of its blocks in `blocks`, which are on
    /// their way from memory by then: the keys behind it are under way as well.
    #[inline(always)]
    pub(super) fn visit<Region: AsRef<[Block]>, const BLOCKS: usize>(
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
