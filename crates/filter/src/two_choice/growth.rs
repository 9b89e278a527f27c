//! Growth of a shard, a few blocks at a time.
//!
//! A shard with 90 % of its slots full grows to 1.25 times its slots. While keys are inserted,
//! the keys of the last blocks move first, two to four blocks for each inserted key. They move
//! to at most three blocks, of which only the last one can have keys already. When tags need
//! fewer bits, a block gets one slot more. The first lengths of the shards differ by up to a
//! quarter, so the shards do not grow at the same time.
//!
//! The keys of a batch in flight must fit below 95 % of the slots before the batch is passed
//! on.

// Functions must be inlined into the kernel that they are compiled for, see `Work::by`.
#![allow(clippy::inline_always)]

use std::ops::Range;

use bytemuck::Zeroable;

use super::super::local::Full;
use super::super::region::{Block, prefetch};
use super::arena::{Arena, NONE};
use super::kernel::{Kernel, Work};
use super::shard::{Shard, words};
use super::slots::SLOTS_MAX;

/// Number of blocks that are moved together, so that the processor reads them in order.
const STEP: u64 = 32;

/// Largest number of blocks to which the keys of one block move. Their words take up at most one
/// and a half blocks of the second layout, which can be parts of three.
const TARGETS: usize = 3;

/// Number of blocks that are fetched ahead of the moved block.
const AHEAD: u64 = 8;

impl Shard {
    /// Continues the growth after the insertion of a key. A shard begins to grow when 90 % of its
    /// slots have keys. Then the growth ends before 94.1 % have keys.
    #[inline(always)]
    pub(super) fn grow(&mut self, kernel: impl Kernel, arena: &mut Arena) {
        if self.layouts.is_growing() {
            // This moves all blocks while 4 % of the slots get keys.
            self.due += 25_u64.div_ceil(self.layouts.first().format.slots as u64);
            if self.due >= STEP {
                // Without memory, growth stops. Then `make_room` fails before the slots are full.
                let _ = self.advance(self.due, kernel, arena);
                self.due = 0;
            }
        } else if self.keys >= self.slots() / 10 * 9 {
            self.sweep(STEP, arena);
            if self.dead().is_none() && self.keys >= self.slots() / 10 * 9 {
                self.begin_growth(arena);
            }
        }
    }

    /// Returns true if this number of further keys fits without growth.
    pub(crate) fn has_room(&self, keys: u64) -> bool {
        self.keys + keys <= self.layouts.first().slots() * 19 / 20
    }

    /// Makes room for further keys. If the usual sweep and growth do not suffice, sweeps or moves
    /// all blocks.
    ///
    /// # Errors
    /// The process has too little memory.
    pub(crate) fn make_room(
        &mut self,
        keys: u64,
        kernel: impl Kernel,
        arena: &mut Arena,
    ) -> Result<(), Full> {
        while !self.has_room(keys) {
            if self.dead().is_some() {
                self.sweep(u64::MAX, arena);
                continue;
            }
            if !self.layouts.is_growing() {
                self.begin_growth(arena);
            }
            self.advance(u64::MAX, kernel, arena)?;
        }
        Ok(())
    }

    fn begin_growth(&mut self, arena: &Arena) {
        self.layouts.begin(self.bits);
        self.due = 0;
        self.lengthen(self.layouts.second().blocks, arena);
    }

    /// Makes entries for the chunks of this number of blocks.
    pub(super) fn lengthen(&mut self, blocks: u64, arena: &Arena) {
        let chunks = blocks.div_ceil(arena.chunk() as u64);
        let mut all = std::mem::take(&mut self.chunks).into_vec();
        all.resize(usize::try_from(chunks).expect("the arena has them"), NONE);
        self.chunks = all.into();
    }

    /// Moves the keys of at most `most` blocks, from the last block to the first.
    fn advance(&mut self, most: u64, kernel: impl Kernel, arena: &mut Arena) -> Result<(), Full> {
        kernel.run(Advance { shard: self, most, arena })?;
        if !self.layouts.is_growing() {
            for (key, stamp) in std::mem::take(&mut self.homeless) {
                self.store(key, stamp, kernel, arena);
            }
        }
        Ok(())
    }

    /// Takes the missing chunks of the blocks from `block` on, to which keys move.
    fn back_from(&mut self, block: u64, arena: &mut Arena) -> Result<(), Full> {
        let chunk = |block: u64| usize::try_from(block).expect("the arena has it") / arena.chunk();
        // The chunk of the last block before the growth is there.
        let from = chunk(block).max(chunk(self.layouts.first().blocks - 1) + 1);
        let later = self.chunks.get(from..).unwrap_or_default();
        let missing = later.iter().take_while(|&&chunk| chunk == NONE).count();
        if missing > 0 {
            self.take(from..from + missing, arena)?;
            arena.back_ahead();
        }
        Ok(())
    }

    /// Takes chunks, the last one first. So if one fails, all missing ones are together.
    pub(super) fn take(&mut self, chunks: Range<usize>, arena: &mut Arena) -> Result<(), Full> {
        for chunk in self.chunks[chunks].iter_mut().rev() {
            *chunk = arena.take()?;
        }
        Ok(())
    }

    /// Begins to fetch a block, if the shard has it.
    fn fetch(&self, block: u64, arena: &Arena) {
        if let Some(block) = arena.blocks().get(self.index(block, arena)) {
            prefetch(block);
        }
    }

    /// Returns the blocks from `first` to `edge`, to which the keys of one block move. Of these
    /// blocks, only `edge` may have keys.
    #[inline(always)]
    fn targets(&self, first: u64, edge: u64, kernel: impl Kernel, arena: &Arena) -> Targets {
        let later = self.layouts.second();
        let mut targets = Targets { first, blocks: [0; TARGETS], empty: 0 };
        for (target, block) in (first..later.blocks.min(edge + 1)).enumerate() {
            let index = self.index(block, arena);
            let empty = if block == edge {
                kernel.empty(&arena.blocks()[index], later.format)
            } else {
                debug_assert_eq!(arena.blocks()[index], Block::zeroed());
                later.format.all_slots()
            };
            targets.blocks[target] = index;
            targets.empty |= u64::from(empty) << (SLOTS_MAX * target);
        }
        targets
    }
}

/// Work of [`Shard::advance`].
struct Advance<'a> {
    shard: &'a mut Shard,
    most: u64,
    arena: &'a mut Arena,
}

impl Work for Advance<'_> {
    type Done = Result<(), Full>;

    #[inline(always)]
    fn by(self, kernel: impl Kernel) -> Result<(), Full> {
        let Self { shard, most, arena } = self;
        let mut moved = 0;
        while moved < most
            && let Some(due) = shard.layouts.due()
        {
            moved += 1;
            shard.back_from(due.to, arena)?;
            let index = shard.index(due.block, arena);
            shard.fetch(due.block.saturating_sub(AHEAD), arena);
            shard.fetch(due.to.saturating_sub(AHEAD), arena);
            let content = std::mem::replace(&mut arena.blocks_mut()[index], Block::zeroed());
            let layout = *shard.layouts.first();
            let edge = shard.layouts.edge();
            shard.layouts.moved(due);
            let later = *shard.layouts.second();
            let mut targets = shard.targets(due.to, edge, kernel, arena);
            let blocks = arena.blocks_mut();
            // Keys whose target is full.
            let mut others = Vec::new();
            for (word, stamp) in words(layout, shard.bits, due.block, content) {
                let place = later.place(word);
                if let Some((block, slot)) = targets.next_slot(place.block) {
                    later.format.fill(&mut blocks[block], slot, place.content, stamp);
                } else {
                    others.push((word.key(), stamp));
                }
            }
            for (key, stamp) in others {
                shard.store(key, stamp, kernel, arena);
            }
        }
        Ok(())
    }
}

/// Blocks to which the keys of one block move.
// The masks are in one word, so that the processor keeps them in a register.
#[derive(Debug)]
struct Targets {
    /// Number of the first of the blocks.
    first: u64,
    /// Indices of the blocks in the arena.
    blocks: [usize; TARGETS],
    /// Masks of the empty slots of the blocks, from the lowest bit.
    empty: u64,
}

impl Targets {
    /// Returns the next empty slot of a block: the index of the block in the arena, and the number
    /// of the slot. Returns `None` if the block is full.
    #[inline(always)]
    fn next_slot(&mut self, block: u64) -> Option<(usize, usize)> {
        // A number below three.
        #[allow(clippy::cast_possible_truncation)]
        let target = (block - self.first) as usize;
        let empty = self.empty >> (SLOTS_MAX * target);
        let slot = empty.trailing_zeros() as usize;
        if slot >= SLOTS_MAX {
            return None;
        }
        self.empty &= !(1 << (SLOTS_MAX * target + slot));
        Some((self.blocks[target], slot))
    }
}
