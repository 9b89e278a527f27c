//! Division of a block into slots.

use super::super::block::Block;

/// Number of lanes that cover the slots of a block.
pub(in crate::filter) const SLOTS_MAX: usize = 16;

/// Number of bits of a slot that name the word of its key.
const WORD_BITS: u32 = 2;

/// Number of bits of a block.
const BLOCK_BITS: usize = 8 * size_of::<Block>();

/// Format of a block: a number of slots of equal width, one after the other from the lowest bit.
///
/// A slot is a tag and two bits for the word of the key. An empty slot is 0. A slot is read through
/// a *window*: the eight bytes of the block that contain the slot.
// Kernels load the tables in whole cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub(in crate::filter) struct Format {
    /// Indices of the bytes of all windows.
    pub(super) windows: [[u8; 64]; 2],
    /// Distance of each slot from the lowest bit of its window; 64 for a lane without a slot.
    pub(super) shifts: [u64; SLOTS_MAX],
    /// The lowest `width` bits.
    pub(super) mask: u64,
    pub(super) slots: usize,
    /// Number of bits of a slot.
    width: u32,
    /// First byte of each window.
    pub(super) starts: [u8; SLOTS_MAX],
}

/// Formats by their numbers of slots, from [`Format::FEWEST`].
static FORMATS: [Format; 9] = [
    Format::with(8),
    Format::with(9),
    Format::with(10),
    Format::with(11),
    Format::with(12),
    Format::with(13),
    Format::with(14),
    Format::with(15),
    Format::with(16),
];

impl Format {
    /// Smallest number of slots of a block.
    const FEWEST: usize = 8;

    /// Returns the format with this number of slots, if there is one.
    pub(in crate::filter) fn new(slots: usize) -> Option<&'static Self> {
        FORMATS.get(slots.checked_sub(Self::FEWEST)?)
    }

    /// Iterates over all formats, from the widest slots to the narrowest ones.
    pub(super) fn all() -> impl DoubleEndedIterator<Item = &'static Self> {
        FORMATS.iter()
    }

    #[allow(clippy::cast_possible_truncation)] // A block has 64 bytes.
    const fn with(slots: usize) -> Self {
        let width = BLOCK_BITS / slots;
        let (mut starts, mut shifts) = ([0; SLOTS_MAX], [64; SLOTS_MAX]);
        let mut windows = [[0; 64]; 2];
        let mut slot = 0;
        while slot < slots {
            let bit = slot * width;
            // The window of a late slot ends with the block.
            let last = size_of::<Block>() - size_of::<u64>();
            let start = if bit / 8 < last { bit / 8 } else { last };
            starts[slot] = start as u8;
            shifts[slot] = (bit - 8 * start) as u64;
            let mut byte = 0;
            while byte < 8 {
                windows[slot / 8][slot % 8 * 8 + byte] = (start + byte) as u8;
                byte += 1;
            }
            slot += 1;
        }
        let mask = u64::MAX >> (64 - width);
        Self { slots, width: width as u32, starts, shifts, windows, mask }
    }

    /// Returns the number of slots of a block.
    pub(in crate::filter) fn slots(&self) -> usize {
        self.slots
    }

    /// Returns the number of bits of a tag.
    pub(super) fn tag_bits(&self) -> u32 {
        self.width - WORD_BITS
    }

    /// Returns the mask with one bit for each slot.
    pub(super) fn all_slots(&self) -> u32 {
        (1 << self.slots) - 1
    }

    /// Returns the content of a slot.
    #[inline]
    pub(super) fn get(&self, block: &Block, slot: usize) -> u64 {
        self.window(block, slot) >> self.shifts[slot] & self.mask
    }

    /// Returns the eight bytes that contain a slot.
    #[inline]
    pub(super) fn window(&self, block: &Block, slot: usize) -> u64 {
        let start = usize::from(self.starts[slot]);
        let window = &bytemuck::bytes_of(block)[start..start + size_of::<u64>()];
        u64::from_le_bytes(window.try_into().expect("eight bytes"))
    }

    /// Replaces the content of a slot.
    #[inline]
    pub(super) fn put(&self, block: &mut Block, slot: usize, content: u64) {
        let (start, shift) = (usize::from(self.starts[slot]), self.shifts[slot]);
        let others = self.window(block, slot) & !(self.mask << shift);
        let window = &mut bytemuck::bytes_of_mut(block)[start..start + size_of::<u64>()];
        window.copy_from_slice(&(others | content << shift).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn slots_fill_a_block_and_do_not_overlap() {
        for format in Format::all() {
            assert!(format.slots * (format.width as usize + 1) > BLOCK_BITS, "{format:?}");
            let mut seen = Block::zeroed();
            for slot in 0..format.slots {
                let mut block = Block::zeroed();
                format.put(&mut block, slot, format.mask);
                let bits = bytemuck::bytes_of(&block).iter().map(|byte| byte.count_ones());
                assert_eq!(bits.sum::<u32>(), format.width);
                for (seen, byte) in
                    bytemuck::bytes_of_mut(&mut seen).iter_mut().zip(bytemuck::bytes_of(&block))
                {
                    assert_eq!(*seen & byte, 0, "{format:?}");
                    *seen |= byte;
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_slot_has_what_was_put_into_it(
            contents in prop::collection::vec((0..SLOTS_MAX, any::<u64>()), 0..50),
        ) {
            for format in Format::all() {
                let (mut block, mut model) = (Block::zeroed(), [0; SLOTS_MAX]);
                for &(slot, content) in contents.iter().filter(|(slot, _)| *slot < format.slots) {
                    model[slot] = content & format.mask;
                    format.put(&mut block, slot, model[slot]);
                }
                for (slot, &content) in model.iter().enumerate().take(format.slots) {
                    prop_assert_eq!(format.get(&block, slot), content);
                }
            }
        }
    }
}
