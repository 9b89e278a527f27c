//! Indices of each key's blocks in the region of memory.

// Functions must be inlined into the kernel that they are compiled for, see `Work::by`.
#![allow(clippy::inline_always)]

use std::ops::Range;

use super::block::{Block, prefetch};
use super::native::Native;
use super::{KeyHash, ShardId};

/// Number of keys whose blocks are fetched ahead of the visited key. In measurements, half or twice
/// this number was about as fast.
const AHEAD: usize = 64;

/// Positions of the blocks of shards and keys in the filter's region of memory.
#[derive(Debug)]
pub struct Places {
    pub(super) native: Native,
    shard_blocks: usize,
}

impl Places {
    pub(super) fn new(native: Native) -> Self {
        // If the number of blocks does not fit into a `usize`, the later allocation of the region
        // fails.
        let shard_blocks = usize::try_from(native.geometry.shard_blocks()).unwrap_or(usize::MAX);
        Self { native, shard_blocks }
    }

    /// Returns the indices of a shard's blocks in the region.
    pub(super) fn range(&self, shard: ShardId) -> Range<usize> {
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
