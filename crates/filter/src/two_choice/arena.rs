//! Memory of the blocks of the shards.
//!
//! The filter reserves addresses for four times the blocks of `grow_to`, or as many as the
//! limits of the process leave. The first chunk of each shard has memory once it is touched, so
//! an idle filter takes little. The other blocks are backed in steps of 2 MiB. While the filter
//! grows, a short-lived thread backs the next step. If the step is not ready when it is needed,
//! the filter does not wait for the thread, and backs the step itself. 64 MiB of the machine's
//! memory stay free.

use std::ops::Range;
use std::thread::{self, JoinHandle};

use super::super::SHARDS;
use super::super::local::Full;
use super::super::memory::{self, Available, SPARE};
use super::super::region::Block;
use super::super::region::{AllocationError, Region};

/// Number of bytes that are backed with memory at once. This takes 0.2 ms to some milliseconds.
const STEP: usize = 2 << 20;

/// Minimum number of chunks of a filter at its first size. So chunks that are not full take little
/// memory.
const FIRST: u64 = 1 << 13;

/// Maximum number of chunks of a filter of the planned size, about. The list of the chunks of all
/// shards then fits into a cache.
const MOST: u64 = 1 << 16;

/// Chunk of blocks that are not in use yet.
pub(super) const NONE: u32 = u32::MAX;

/// Memory of a filter, divided into chunks of equal size. Each shard has some of the chunks. So the
/// lengths of the shards are independent, and one region with huge pages has them all.
#[derive(Debug)]
pub(crate) struct Arena {
    region: Region,
    /// True if the system has granted fewer addresses than the filter may need.
    is_limited: bool,
    /// Binary logarithm of the number of blocks of a chunk.
    shift: u32,
    /// Number of blocks at the start that are backed when they are touched: a chunk of each shard.
    /// So a small or idle filter takes little memory.
    pub(super) touched: usize,
    /// Number of blocks that are backed with memory.
    backed: usize,
    /// Number of chunks that were taken from the region.
    taken: u32,
    /// Chunks that were given back.
    free: Vec<u32>,
    /// Thread that backs the next step. It returns true if it could.
    ahead: Option<JoinHandle<bool>>,
    available: fn() -> Option<Available>,
}

impl Arena {
    /// Reserves addresses for the shards. The arena takes memory as its chunks are taken. `first`
    /// is the number of blocks of an empty filter, and `planned` that of a filter of the planned
    /// size, which it may outgrow.
    pub(crate) fn reserve(first: u64, planned: u64) -> Result<Self, AllocationError> {
        let shift = (first / FIRST).max(planned / MOST).clamp(8, 8192).ilog2();
        // Each shard may have a chunk that is not full.
        let chunks = (SHARDS as u64 + 1) << shift;
        // A small filter may outgrow `planned` by far.
        let [least, wanted] = [2 * first, 4 * planned + (1 << 16)].map(|it| it + chunks);
        // The rest of the process needs addresses, too.
        let limit = memory::addressable().unwrap_or(u64::MAX) / size_of::<Block>() as u64 / 2;
        let mut most = wanted.min(limit.max(least));
        let region = loop {
            match Region::reserved(most) {
                // The system may grant less, as with `vm.overcommit_memory = 2`.
                Err(AllocationError::Refused { .. }) if most > least => most = least.max(most / 2),
                done => break done?,
            }
        };
        let is_limited = most < wanted;
        Ok(Self {
            region,
            is_limited,
            shift,
            touched: usize::try_from(chunks).unwrap_or(usize::MAX),
            backed: 0,
            taken: 0,
            free: Vec::new(),
            ahead: None,
            available: memory::available,
        })
    }

    /// Returns the number of blocks that are backed with memory, or are being backed.
    #[cfg(test)]
    pub(super) fn backed(&self) -> usize {
        if self.ahead.is_some() { self.step().end } else { self.backed }
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
    pub(crate) fn blocks(&self) -> &[Block] {
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

    /// Returns the blocks that are backed with memory next.
    fn step(&self) -> Range<usize> {
        let step = (STEP / size_of::<Block>()).max(self.chunk());
        let end = if self.backed < self.touched { self.touched } else { self.backed + step };
        self.backed..end.min(self.region.len())
    }

    /// Backs the next blocks with memory, unless this was done ahead.
    fn back(&mut self) -> Result<(), Full> {
        let step = self.step();
        if !self.is_backed_ahead() {
            self.back_now(step.clone())?;
        }
        self.backed = step.end;
        Ok(())
    }

    fn is_backed_ahead(&mut self) -> bool {
        // A thread that has not ended is not waited for: in a forked process, it would never end.
        let ended = self.ahead.take().filter(JoinHandle::is_finished);
        ended.is_some_and(|thread| thread.join().unwrap_or_default())
    }

    fn back_now(&mut self, step: Range<usize>) -> Result<(), Full> {
        if step.is_empty() {
            let most = self.backed * size_of::<Block>();
            let why = if self.is_limited {
                "the system grants it no more addresses. Raise the limits of ulimit -v and ulimit \
                 -d, or set vm.overcommit_memory = 1"
            } else {
                "that was reserved for its growth beyond filter.grow_to. Raise filter.grow_to"
            };
            return Err(Full(format!(
                "the filter has no room for more fingerprints: it has {most} bytes, and {why}"
            )));
        }
        let full = |why| {
            let full = "the filter has no memory for more fingerprints";
            Full(format!("{full}: {why}. Give the process more memory"))
        };
        if let Some(Available { bytes, limit }) = too_little(self.available) {
            return Err(full(format!("{SPARE} bytes must stay free, and {bytes} are, {limit}")));
        }
        if step.start < self.touched {
            self.region.prefer_small_pages();
            return Ok(());
        }
        if step.start == self.touched {
            self.region.prefer_huge_pages();
        }
        self.region.back(step).map_err(|error| full(error.to_string()))
    }

    /// Begins to back the next blocks with memory, if they are needed soon. If this fails,
    /// [`Arena::take`] tries it again, and reports the error.
    pub(super) fn back_ahead(&mut self) {
        let left = self.backed - ((self.taken as usize) << self.shift);
        let step = self.step();
        if self.ahead.is_some() || left > step.len() / 4 || step.is_empty() {
            return;
        }
        let (backing, available) = (self.region.backing(), self.available);
        let back = move || too_little(available).is_none() && backing.back(step).is_ok();
        self.ahead = thread::Builder::new().name("filter-memory".to_owned()).spawn(back).ok();
    }
}

/// Returns the available memory if it is too little for a step.
fn too_little(available: fn() -> Option<Available>) -> Option<Available> {
    available().filter(|available| available.bytes < SPARE)
}

#[cfg(test)]
mod tests {
    use super::super::super::memory::Limit;
    use super::*;

    #[test]
    fn chunks_have_different_empty_blocks_and_come_back_empty() {
        let mut arena = Arena::reserve(1, 1 << 10).unwrap();
        let chunks = [(); 100].map(|()| arena.take().unwrap());
        let full: Block = bytemuck::cast([u64::MAX; 8]);
        for chunk in &chunks {
            let index = arena.index(&[*chunk], 3);
            assert_ne!(arena.blocks()[index], full);
            arena.blocks_mut()[index] = full;
        }
        assert_eq!(arena.blocks().iter().filter(|block| **block == full).count(), 100);
        for chunk in chunks {
            arena.give(chunk);
        }
        for _ in 0..100 {
            let chunk = arena.take().unwrap();
            let index = arena.index(&[chunk], 3);
            assert_ne!(arena.blocks()[index], full);
        }
        assert_eq!(arena.taken, 100);
    }

    #[test]
    fn a_small_filter_that_may_grow_far_takes_little_memory() {
        // Filters for 10 million and for a billion keys, in blocks.
        let (small, large) = (740_000, 74_000_000);
        for (first, planned, bytes) in [(1, large, 16 << 20), (small, large, 16 << 20)] {
            let arena = Arena::reserve(first, planned).unwrap();
            let chunks = SHARDS * arena.chunk() * size_of::<Block>();
            assert!(chunks <= bytes, "{chunks} bytes");
        }
    }

    #[test]
    fn an_arena_leaves_memory_to_the_rest_of_the_process() {
        let mut arena = Arena::reserve(1, 1 << 20).unwrap();
        arena.take().unwrap();
        arena.available = || Some(Available { bytes: SPARE - 1, limit: Limit::Machine });
        // The rest of the first step is there.
        for _ in 1..arena.touched / arena.chunk() {
            arena.take().unwrap();
        }
        let refused = arena.take().unwrap_err().to_string();
        let expected = "the filter has no memory for more fingerprints: 67108864 bytes must stay \
                        free, and 67108863 are, on this machine. Give the process more memory";
        assert_eq!(refused, expected);
    }

    #[test]
    fn a_growing_arena_has_its_next_memory_before_it_needs_it() {
        let mut arena = Arena::reserve(1, 1 << 20).unwrap();
        arena.touched = 0;
        let step = STEP / size_of::<Block>() / arena.chunk();
        for _ in 0..step * 3 / 4 - 1 {
            arena.take().unwrap();
            arena.back_ahead();
        }
        assert!(arena.ahead.is_none());
        arena.take().unwrap();
        arena.back_ahead();
        while !arena.ahead.as_ref().unwrap().is_finished() {
            thread::yield_now();
        }
        arena.available = || Some(Available { bytes: 0, limit: Limit::Machine });
        for _ in step * 3 / 4..2 * step {
            arena.take().unwrap();
        }
        arena.back_ahead();
        arena.take().unwrap_err();
    }

    #[test]
    fn an_arena_ends_at_its_reservation() {
        for (is_limited, words) in [(false, "Raise filter.grow_to"), (true, "ulimit -v")] {
            let mut arena = Arena { is_limited, ..Arena::reserve(1, 1 << 10).unwrap() };
            for _ in 0..arena.blocks().len() / arena.chunk() {
                arena.take().unwrap();
            }
            assert!(arena.take().unwrap_err().to_string().contains(words));
        }
    }
}
