//! Indices of each key's blocks in an owner's region of memory.

// Functions must be inlined into the kernel that they are compiled for, see `Work::by`.
#![allow(clippy::inline_always)]

use std::ops::Range;

use super::block::Block;
use super::layout::native::{KeyHash, Native};
use super::prefetch::prefetch;
use super::{SHARDS, ShardId};

/// Number of keys whose blocks are fetched ahead of the visited key. In measurements, half or twice
/// this number was about as fast.
const AHEAD: usize = 64;

/// Marks a shard that belongs to another owner.
const FOREIGN: u16 = u16::MAX;

/// Positions of one owner's shards in the owner's region of memory.
#[derive(Debug)]
pub struct Places {
    pub(super) native: Native,
    /// Index of each shard in the region; [`FOREIGN`] for shards of other owners.
    slots: [u16; SHARDS],
    shard_blocks: usize,
}

impl Places {
    /// Computes the positions of the shards that belong to the owner with the index `owner`. There
    /// are `owners` owners. Also returns the number of these shards.
    pub(super) fn new(native: Native, owner: usize, owners: usize) -> (Self, usize) {
        let mut slots = [FOREIGN; SHARDS];
        let mine = ShardId::all().filter(|shard| shard.owner(owners) == owner);
        let held = mine.zip(0..).map(|(shard, slot)| slots[shard.index()] = slot).count();
        // If the number of blocks does not fit into a `usize`, the later allocation of the region
        // fails.
        let shard_blocks = usize::try_from(native.geometry.shard_blocks()).unwrap_or(usize::MAX);
        (Self { native, slots, shard_blocks }, held)
    }

    /// Returns true if this owner has the shard.
    #[inline]
    pub(super) fn has(&self, shard: ShardId) -> bool {
        self.slots[shard.index()] != FOREIGN
    }

    /// Returns the index of a shard in the region.
    ///
    /// # Panics
    /// Panics if another owner has the shard.
    #[inline(always)]
    pub(super) fn slot(&self, shard: ShardId) -> usize {
        let slot = self.slots[shard.index()];
        assert!(slot != FOREIGN, "shard {shard} has another owner");
        usize::from(slot)
    }

    /// Returns the indices of a shard's blocks in the region.
    ///
    /// # Panics
    /// Panics if another owner has the shard.
    pub(super) fn range(&self, shard: ShardId) -> Range<usize> {
        let first = self.slot(shard) * self.shard_blocks;
        first..first + self.shard_blocks
    }

    /// Returns the indices of a key's blocks in the region. A key must have `BLOCKS` blocks.
    #[inline(always)]
    fn of<const BLOCKS: usize>(&self, key_hash: KeyHash) -> [usize; BLOCKS] {
        let first = self.slot(key_hash.shard()) * self.shard_blocks;
        std::array::from_fn(|part| first + self.native.block(key_hash, part))
    }

    /// Calls `visit` for each key, with the indices of its blocks in `blocks`. Before each call,
    /// this function has begun to fetch the blocks of the key and of the next keys from memory.
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
