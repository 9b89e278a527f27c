//! Both layouts of a shard that grows: the one before its growth, and the one after it.

use super::layout::{KeyBits, Layout, Word};

/// Layouts of the blocks of a shard. Words up to a border have the first layout, and words after it
/// have the second one. Unless the shard is growing, the layouts are the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layouts {
    both: [Layout; 2],
    /// Last word of the first layout.
    last: u64,
    /// Number of blocks of the first layout whose keys were not moved.
    unmoved: u64,
}

/// Block whose keys are due to be moved.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    pub(super) block: u64,
    /// First block to which its keys can move.
    pub(super) to: u64,
    /// Last number before its words; `None` for the first block.
    before: Option<u64>,
}

impl Layouts {
    pub(super) fn new(layout: Layout) -> Self {
        Self { both: [layout; 2], last: u64::MAX, unmoved: layout.blocks }
    }

    /// Returns the layout of a word.
    #[inline]
    pub(super) fn of(&self, word: Word) -> &Layout {
        &self.both[usize::from(word.value > self.last)]
    }

    pub(super) fn first(&self) -> &Layout {
        &self.both[0]
    }

    pub(super) fn second(&self) -> &Layout {
        &self.both[1]
    }

    pub(super) fn is_growing(&self) -> bool {
        self.both[0].blocks != self.both[1].blocks
    }

    /// Returns the first block of the second layout that may have keys.
    pub(super) fn edge(&self) -> u64 {
        self.both[1].first_after(self.last)
    }

    /// Begins the growth to the next layout.
    pub(super) fn begin(&mut self, bits: KeyBits) {
        self.both[1] = self.both[0].grown(bits);
    }

    /// Returns the next block whose keys are to be moved: the last one that was not moved. Returns
    /// `None` if the shard is not growing.
    pub(super) fn due(&self) -> Option<Due> {
        let block = self.is_growing().then(|| self.unmoved - 1)?;
        let before = self.both[0].last_before(block);
        Some(Due { block, to: before.map_or(0, |last| self.both[1].first_after(last)), before })
    }

    /// Gives the words of a block the second layout. After the first block, the growth ends.
    pub(super) fn moved(&mut self, due: Due) {
        match due.before {
            Some(before) => (self.last, self.unmoved) = (before, due.block),
            None => *self = Self::new(self.both[1]),
        }
    }

    /// Returns one of the blocks that may have keys, with its layout: the block with this number
    /// in the order of [`Layouts::live`].
    pub(super) fn nth_live(&self, number: u64) -> Option<(Layout, u64)> {
        let [first, second] = self.both;
        let Some(later) = number.checked_sub(self.unmoved) else { return Some((first, number)) };
        let block = self.edge() + later;
        (self.is_growing() && block < second.blocks).then_some((second, block))
    }

    /// Iterates over all blocks that may have keys, each with its layout.
    pub(super) fn live(&self) -> impl Iterator<Item = (Layout, u64)> + use<> {
        let [first, second] = self.both;
        let end = if self.is_growing() { second.blocks } else { 0 };
        let moved = (self.edge()..end).map(move |block| (second, block));
        (0..self.unmoved).map(move |block| (first, block)).chain(moved)
    }
}
