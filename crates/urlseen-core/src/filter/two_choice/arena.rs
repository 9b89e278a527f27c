//! Memory of the blocks of an owner's shards.

use super::super::SHARDS;
use super::super::block::Block;
use super::super::local::Full;
use super::super::memory::{self, Available, SPARE};
use super::super::region::{AllocationError, Region};

/// Number of bytes that are backed with memory at once. This takes 0.2 ms.
const STEP: usize = 2 << 20;

/// Minimum number of chunks of a filter at its first size. So chunks that are not full take little
/// memory.
const FIRST: u64 = 1 << 13;

/// Maximum number of chunks of a filter of the planned size, about. The list of the chunks of all
/// shards then fits into a cache.
const MOST: u64 = 1 << 16;

/// Chunk of blocks that are not in use yet.
pub(super) const NONE: u32 = u32::MAX;

/// Memory of an owner, divided into chunks of equal size. Each shard has some of the chunks. So the
/// lengths of the shards are independent, and one region with huge pages has them all.
#[derive(Debug)]
pub(in crate::filter) struct Arena {
    region: Region,
    /// Binary logarithm of the number of blocks of a chunk.
    shift: u32,
    /// Number of blocks that are backed with memory.
    backed: usize,
    /// Number of chunks that were taken from the region.
    taken: u32,
    /// Chunks that were given back.
    free: Vec<u32>,
    available: fn() -> Option<Available>,
}

impl Arena {
    /// Reserves addresses for at most this number of blocks. The arena takes memory as its chunks
    /// are taken. `first` is the number of blocks of an empty filter. `planned` is the number of
    /// blocks of a filter of the planned size.
    pub(in crate::filter) fn reserve(
        most: u64,
        first: u64,
        planned: u64,
    ) -> Result<Self, AllocationError> {
        let shift = (first / FIRST).max(planned / MOST).clamp(8, 8192).ilog2();
        // Each shard may have a chunk that is not full.
        let region = Region::reserved(most.saturating_add((SHARDS as u64) << shift))?;
        let available = memory::available;
        Ok(Self { region, shift, backed: 0, taken: 0, free: Vec::new(), available })
    }

    /// Returns the number of bytes that are backed with memory.
    pub(in crate::filter) fn bytes(&self) -> u64 {
        (self.backed * size_of::<Block>()) as u64
    }

    /// Returns the number of blocks of a chunk.
    pub(super) fn chunk(&self) -> usize {
        1 << self.shift
    }

    /// Returns the index in the arena of a block of a shard with these chunks.
    #[inline]
    pub(super) fn index(&self, chunks: &[u32], block: u64) -> usize {
        // A shard has at most as many blocks as the arena.
        #[allow(clippy::cast_possible_truncation)]
        let block = block as usize;
        (chunks[block >> self.shift] as usize) << self.shift | block & (self.chunk() - 1)
    }

    #[inline]
    pub(in crate::filter) fn blocks(&self) -> &[Block] {
        self.region.blocks()
    }

    #[inline]
    pub(super) fn blocks_mut(&mut self) -> &mut [Block] {
        self.region.blocks_mut()
    }

    /// Takes a chunk, whose blocks are empty.
    ///
    /// # Errors
    /// The process has too little memory.
    pub(super) fn take(&mut self) -> Result<u32, Full> {
        if let Some(chunk) = self.free.pop() {
            let start = (chunk as usize) << self.shift;
            let end = start + self.chunk();
            bytemuck::fill_zeroes(&mut self.region.blocks_mut()[start..end]);
            return Ok(chunk);
        }
        let end = (self.taken as usize + 1) << self.shift;
        while self.backed < end {
            self.back()?;
        }
        self.taken += 1;
        Ok(self.taken - 1)
    }

    /// Takes a chunk back, for another shard.
    pub(super) fn give(&mut self, chunk: u32) {
        self.free.push(chunk);
    }

    /// Backs further blocks with memory.
    fn back(&mut self) -> Result<(), Full> {
        let full = |why| {
            let full = "the filter has no memory for more fingerprints";
            Full(format!("{full}: {why}. Give the process more memory"))
        };
        let step = (STEP / size_of::<Block>()).max(self.chunk());
        let end = self.region.len().min(self.backed + step);
        if end == self.backed {
            let most = self.bytes();
            return Err(full(format!("it has the {most} bytes that were reserved for its growth")));
        }
        if let Some(Available { bytes, limit }) = (self.available)()
            && bytes < SPARE
        {
            return Err(full(format!("{SPARE} bytes must stay free, and {bytes} are, {limit}")));
        }
        self.region.back(self.backed..end).map_err(|error| full(error.to_string()))?;
        self.backed = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::memory::Limit;
    use super::*;

    #[test]
    fn chunks_have_different_empty_blocks_and_come_back_empty() {
        let mut arena = Arena::reserve(1 << 12, 1, 1 << 10).unwrap();
        let chunks = [(); 100].map(|()| arena.take().unwrap());
        let full: Block = bytemuck::cast([u64::MAX; 8]);
        for chunk in &chunks {
            let index = arena.index(&[*chunk], 3);
            assert_ne!(arena.blocks()[index], full);
            arena.blocks_mut()[index] = full;
        }
        assert_eq!(arena.blocks().iter().filter(|block| **block == full).count(), 100);
        let bytes = arena.bytes();
        for chunk in chunks {
            arena.give(chunk);
        }
        for _ in 0..100 {
            let chunk = arena.take().unwrap();
            let index = arena.index(&[chunk], 3);
            assert_ne!(arena.blocks()[index], full);
        }
        assert_eq!(arena.bytes(), bytes);
    }

    #[test]
    fn a_small_filter_that_may_grow_far_takes_little_memory() {
        // Filters for 10 million and for a billion keys, in blocks.
        let (small, large) = (740_000, 74_000_000);
        for (first, planned, bytes) in [(1, large, 16 << 20), (small, large, 16 << 20)] {
            let arena = Arena::reserve(1 << 20, first, planned).unwrap();
            let chunks = SHARDS * arena.chunk() * size_of::<Block>();
            assert!(chunks <= bytes, "{chunks} bytes");
        }
    }

    #[test]
    fn an_arena_leaves_memory_to_the_rest_of_the_process() {
        let mut arena = Arena::reserve(1 << 20, 1, 1 << 20).unwrap();
        arena.take().unwrap();
        arena.available = || Some(Available { bytes: SPARE - 1, limit: Limit::Machine });
        // The rest of the first step is there.
        let chunks = STEP / size_of::<Block>() / arena.chunk();
        for _ in 1..chunks {
            arena.take().unwrap();
        }
        let refused = arena.take().unwrap_err().to_string();
        let expected = "the filter has no memory for more fingerprints: 67108864 bytes must stay \
                        free, and 67108863 are, on this machine. Give the process more memory";
        assert_eq!(refused, expected);
    }

    #[test]
    fn an_arena_ends_at_its_reservation() {
        let mut arena = Arena::reserve(1 << 12, 1, 1 << 10).unwrap();
        let most = arena.blocks().len() / arena.chunk();
        for _ in 0..most {
            arena.take().unwrap();
        }
        assert!(arena.take().unwrap_err().to_string().contains("reserved for its growth"));
    }
}
