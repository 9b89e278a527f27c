//! Shard of a filter of the kind `two-choice`.

// Functions must be inlined into the kernel that they are compiled for, see `Work::by`.
#![allow(clippy::inline_always)]

use super::super::ages::{ShardAges, Stamp};
use super::super::local::Full;
use super::super::region::{Block, prefetch};
use super::arena::{Arena, NONE};
use super::contents::Contents;
use super::kernel::Kernel;
use super::layout::{Key, KeyBits, Layout, Layouts, SlotPlace, Word};
use super::slots::Format;

/// Keys of a shard. Their blocks are in an [`Arena`], which the methods take.
// A test reads the first two fields, which are together in one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Shard {
    pub(super) layouts: Layouts,
    /// Chunks of the blocks, in order. The blocks of [`NONE`] are not in use yet.
    pub(super) chunks: Box<[u32]>,
    pub(super) bits: KeyBits,
    /// Number of blocks that are due to be moved, because keys were inserted.
    pub(super) due: u64,
    /// Keys that found no slot.
    pub(super) homeless: Vec<(Key, Stamp)>,
    /// Number of keys, with those that have expired and still take a slot.
    pub(crate) keys: u64,
    /// Ages of the keys, if the keys expire.
    pub(super) ages: Option<ShardAges>,
}

/// Places of both words of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Probe {
    /// Indices of the blocks in the arena.
    blocks: [usize; 2],
    formats: [&'static Format; 2],
    /// Contents of a slot with the key.
    contents: [u64; 2],
}

impl Probe {
    /// Begins to fetch both blocks from memory.
    #[inline(always)]
    pub(crate) fn fetch(&self, blocks: &[Block]) {
        prefetch(&blocks[self.blocks[0]]);
        prefetch(&blocks[self.blocks[1]]);
    }

    /// Returns true if a slot has the key.
    #[inline(always)]
    fn is_in(&self, kernel: impl Kernel, blocks: &[Block]) -> bool {
        // Both blocks are searched without a branch: they have been fetched, and a processor
        // cannot predict whether a key is seen.
        kernel.has(&blocks[self.blocks[0]], self.formats[0], self.contents[0])
            | kernel.has(&blocks[self.blocks[1]], self.formats[1], self.contents[1])
    }

    /// Returns true if a slot has the key, and the masks of the empty slots of both blocks.
    #[inline(always)]
    fn search(&self, kernel: impl Kernel, blocks: &[Block]) -> (bool, [u32; 2]) {
        let search =
            |n: usize| kernel.search(&blocks[self.blocks[n]], self.formats[n], self.contents[n]);
        let [(in_x, of_x), (in_y, of_y)] = [search(0), search(1)];
        (in_x | in_y, [of_x, of_y])
    }

    /// Iterates over the indices of both blocks, with their formats.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (usize, &'static Format)> + use<> {
        self.blocks.into_iter().zip(self.formats)
    }

    /// Returns the slot with the key: the index of its block, and its number there.
    pub(super) fn slot(&self, blocks: &[Block]) -> Option<(usize, &'static Format, usize)> {
        self.blocks().zip(self.contents).find_map(|((block, format), content)| {
            let slot = (0..format.slots).find(|&it| format.get(&blocks[block], it) == content)?;
            Some((block, format, slot))
        })
    }
}

impl Shard {
    /// Makes an empty shard with at least this number of slots. Its keys expire if `expires` is
    /// true.
    ///
    /// # Errors
    /// The process has too little memory.
    pub(crate) fn with_slots(
        slots: u64,
        bits: KeyBits,
        expires: bool,
        arena: &mut Arena,
    ) -> Result<Self, Full> {
        let layout = Layout::with_slots(slots, bits, expires);
        let mut shard = Self {
            bits,
            layouts: Layouts::new(layout),
            due: 0,
            chunks: Box::default(),
            homeless: Vec::new(),
            keys: 0,
            ages: expires.then(ShardAges::new),
        };
        shard.lengthen(layout.blocks, arena);
        let backed = shard.take(0..shard.chunks.len(), arena);
        if backed.is_err() {
            shard.free(arena);
        }
        backed.map(|()| shard)
    }

    /// Gives the memory of the shard back.
    pub(crate) fn free(&mut self, arena: &mut Arena) {
        let chunks = std::mem::take(&mut self.chunks).into_iter();
        chunks.filter(|&chunk| chunk != NONE).for_each(|chunk| arena.give(chunk));
    }

    /// Returns the number of slots that the shard has, or will have after its growth.
    pub(crate) fn slots(&self) -> u64 {
        self.layouts.second().slots()
    }

    /// Returns the number of blocks that the shard has, or will have after its growth.
    pub(crate) fn block_count(&self) -> u64 {
        self.layouts.second().blocks
    }

    /// Returns true if some keys are still to be moved to the blocks of a larger layout.
    #[cfg(test)]
    pub(crate) fn is_growing(&self) -> bool {
        self.layouts.is_growing()
    }

    /// Returns the places of a key.
    #[inline(always)]
    pub(crate) fn probe(&self, key: Key, arena: &Arena) -> Probe {
        let [x, y] = key.words();
        let [of_x, of_y] = [self.layouts.of(x), self.layouts.of(y)];
        let (x, y) = (of_x.place(x), of_y.place(y));
        Probe {
            blocks: [self.index(x.block, arena), self.index(y.block, arena)],
            formats: [of_x.format, of_y.format],
            contents: [x.content, y.content],
        }
    }

    /// Returns true if the shard has the key, which may have expired. `probe` has the places of the
    /// key.
    #[inline(always)]
    pub(crate) fn has(
        &self,
        key: Key,
        probe: &Probe,
        kernel: impl Kernel,
        blocks: &[Block],
    ) -> bool {
        probe.is_in(kernel, blocks) || self.is_homeless(key)
    }

    #[inline(always)]
    fn is_homeless(&self, key: Key) -> bool {
        !self.homeless.is_empty() && self.homeless.iter().any(|&(homeless, _)| homeless == key)
    }

    /// Returns true if the shard has the key, and the key has not expired.
    #[inline(always)]
    pub(crate) fn has_live(
        &self,
        key: Key,
        probe: &Probe,
        kernel: impl Kernel,
        blocks: &[Block],
    ) -> bool {
        let dead = self.dead();
        self.has(key, probe, kernel, blocks)
            && (dead.is_none() || self.stamp(key, probe, blocks) != dead)
    }

    /// Inserts a key, unless the shard has it. If the shard has it, the key gets this stamp.
    #[inline(always)]
    pub(crate) fn insert(
        &mut self,
        key: Key,
        stamp: Stamp,
        kernel: impl Kernel,
        arena: &mut Arena,
    ) {
        let probe = self.probe(key, arena);
        let (is_stored, mut empty) = probe.search(kernel, arena.blocks());
        if is_stored || self.is_homeless(key) {
            if self.ages.is_some() {
                self.restamp(key, stamp, &probe, arena);
            }
            return;
        }
        if let Some(dead) = self.dead() {
            self.sweep_places(dead, &probe, arena);
            empty = probe.search(kernel, arena.blocks()).1;
        }
        self.store_at(&probe, empty, key, stamp, kernel, arena);
        self.keys += 1;
        if let Some(ages) = &mut self.ages {
            ages.count(stamp);
        }
        self.grow(kernel, arena);
    }

    /// Removes a key, and frees its slot.
    pub(crate) fn remove(&mut self, key: Key, arena: &mut Arena) {
        let probe = self.probe(key, arena);
        let Some(stamp) = self.stamp(key, &probe, arena.blocks()) else { return };
        if let Some((block, format, slot)) = probe.slot(arena.blocks()) {
            format.put(&mut arena.blocks_mut()[block], slot, 0, Stamp::NONE);
        }
        self.homeless.retain(|&(homeless, _)| homeless != key);
        self.keys -= 1;
        if let Some(ages) = &mut self.ages {
            ages.discount(stamp);
        }
    }

    /// Copies the contents, with the memory of `buffer`.
    pub(crate) fn copy(&self, arena: &Arena, buffer: Vec<u8>) -> Contents {
        let mut bytes = buffer;
        bytes.clear();
        for (_, block) in self.layouts.live() {
            bytes.extend_from_slice(bytemuck::bytes_of(&arena.blocks()[self.index(block, arena)]));
        }
        let Self { bits, layouts, ages, ref homeless, .. } = *self;
        Contents { bits, keys: self.live_keys(), layouts, bytes, homeless: homeless.clone(), ages }
    }

    /// Stores a key that the shard does not have.
    #[cold]
    pub(super) fn store(&mut self, key: Key, stamp: Stamp, kernel: impl Kernel, arena: &mut Arena) {
        let probe = self.probe(key, arena);
        let (_, empty) = probe.search(kernel, arena.blocks());
        self.store_at(&probe, empty, key, stamp, kernel, arena);
    }

    /// Stores a key that the shard does not have. `probe` has the places of the key, and `empty`
    /// the masks of the empty slots there.
    #[inline(always)]
    fn store_at(
        &mut self,
        probe: &Probe,
        empty: [u32; 2],
        key: Key,
        stamp: Stamp,
        kernel: impl Kernel,
        arena: &mut Arena,
    ) {
        let word = usize::from(empty[1].count_ones() > empty[0].count_ones());
        if empty[word] != 0 {
            let block = &mut arena.blocks_mut()[probe.blocks[word]];
            let slot = empty[word].trailing_zeros() as usize;
            probe.formats[word].fill(block, slot, probe.contents[word], stamp);
        } else if !self.displace(key, stamp, kernel, arena) {
            self.homeless.push((key, stamp));
        }
    }

    /// Stores a word in its block. Returns false if the block is full.
    fn store_word(
        &mut self,
        word: Word,
        stamp: Stamp,
        kernel: impl Kernel,
        arena: &mut Arena,
    ) -> bool {
        let layout = self.layouts.of(word);
        let SlotPlace { block, content } = layout.place(word);
        let index = self.index(block, arena);
        let block = &mut arena.blocks_mut()[index];
        let empty = kernel.empty(block, layout.format);
        if empty != 0 {
            layout.format.fill(block, empty.trailing_zeros() as usize, content, stamp);
        }
        empty != 0
    }

    /// Stores a key whose blocks are full: moves another key from there to its other block. Returns
    /// false if all these other blocks are full, too.
    #[cold]
    fn displace(&mut self, key: Key, stamp: Stamp, kernel: impl Kernel, arena: &mut Arena) -> bool {
        for word in key.words() {
            let layout = *self.layouts.of(word);
            let SlotPlace { block, content } = layout.place(word);
            let index = self.index(block, arena);
            let decoder = layout.decoder(block, self.bits);
            for slot in 0..layout.format.slots {
                let full = &arena.blocks()[index];
                let moved = decoder.word(layout.format.get(full, slot));
                let moved = moved.expect("a full block has no empty slot");
                let moved_stamp = layout.format.stamp(full, slot);
                if self.store_word(moved.other(), moved_stamp, kernel, arena) {
                    layout.format.put(&mut arena.blocks_mut()[index], slot, content, stamp);
                    return true;
                }
            }
        }
        false
    }

    /// Returns the index of a block in the arena.
    #[inline]
    pub(super) fn index(&self, block: u64, arena: &Arena) -> usize {
        arena.index(&self.chunks, block)
    }
}

/// Returns the words in a block, with their stamps.
pub(super) fn words(
    layout: Layout,
    bits: KeyBits,
    block: u64,
    content: Block,
) -> impl Iterator<Item = (Word, Stamp)> {
    let decoder = layout.decoder(block, bits);
    (0..layout.format.slots).filter_map(move |slot| {
        let word = decoder.word(layout.format.get(&content, slot))?;
        Some((word, layout.format.stamp(&content, slot)))
    })
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
