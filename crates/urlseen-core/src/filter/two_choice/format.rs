//! Division of a block into slots.

use super::super::ages::Stamp;
use super::super::block::Block;
use super::lanes::Lanes;

/// Number of lanes that cover the slots of a block.
pub(in crate::filter) const SLOTS_MAX: usize = 16;

/// Number of bits of a slot that name the word of its key.
const WORD_BITS: u32 = 2;

/// Number of bits of a slot that name the generation of its key, if the keys expire.
const STAMP_BITS: u32 = 3;

/// Number of bits of a block.
const BLOCK_BITS: usize = 8 * size_of::<Block>();

/// Format of a block: a number of slots of equal width, one after the other from the lowest bit.
///
/// A slot is a tag and two bits for the word of the key, which are its *content*. If the keys
/// expire, the highest three bits are the stamp of the key. The content of an empty slot is 0. A
/// slot is read through a *window*: the eight bytes of the block that contain the slot.
// Kernels load the tables in whole cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub(in crate::filter) struct Format {
    /// Indices of the bytes of all windows.
    pub(super) windows: [[u8; 64]; 2],
    /// Distance of each slot from the lowest bit of its window; 64 for a lane without a slot.
    pub(super) shifts: [u64; SLOTS_MAX],
    /// The bits of the content of a slot.
    pub(super) mask: u64,
    /// The bits of a stamp: three or none.
    stamp_mask: u64,
    pub(super) slots: usize,
    /// Number of bits of a slot.
    slot_bits: usize,
    /// Number of bits of the content of a slot.
    width: u32,
    /// First byte of each window.
    starts: [u8; SLOTS_MAX],
    /// Tables for kernels with registers of 32 bytes.
    pub(super) lanes: Lanes,
}

/// Formats, from the widest slots to the narrowest.
type Formats = [Format; 9];

static WITHOUT_STAMPS: Formats = formats(0);

static WITH_STAMPS: Formats = formats(STAMP_BITS);

const fn formats(stamp_bits: u32) -> Formats {
    [
        Format::with(8, stamp_bits),
        Format::with(9, stamp_bits),
        Format::with(10, stamp_bits),
        Format::with(11, stamp_bits),
        Format::with(12, stamp_bits),
        Format::with(13, stamp_bits),
        Format::with(14, stamp_bits),
        Format::with(15, stamp_bits),
        Format::with(16, stamp_bits),
    ]
}

impl Format {
    /// Iterates over all formats with or without stamps, from the widest slots to the narrowest.
    pub(super) fn all(has_stamps: bool) -> impl DoubleEndedIterator<Item = &'static Self> {
        if has_stamps { WITH_STAMPS.iter() } else { WITHOUT_STAMPS.iter() }
    }

    /// Returns the format with one slot more, if there is one.
    pub(super) fn denser(&self) -> Option<&'static Self> {
        Self::all(self.has_stamps()).find(|other| other.slots == self.slots + 1)
    }

    fn has_stamps(&self) -> bool {
        self.stamp_mask != 0
    }

    #[allow(clippy::cast_possible_truncation)] // A block has 64 bytes.
    const fn with(slots: usize, stamp_bits: u32) -> Self {
        let slot_bits = BLOCK_BITS / slots;
        let (mut starts, mut shifts) = ([0; SLOTS_MAX], [64; SLOTS_MAX]);
        let mut windows = [[0; 64]; 2];
        let mut slot = 0;
        while slot < slots {
            let bit = slot * slot_bits;
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
        let width = slot_bits as u32 - stamp_bits;
        let (mask, stamp_mask) = (u64::MAX >> (u64::BITS - width), (1 << stamp_bits) - 1);
        let lanes = Lanes::new(slots, &starts, &shifts, mask);
        Self { windows, shifts, mask, stamp_mask, slots, slot_bits, width, starts, lanes }
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
    fn window(&self, block: &Block, slot: usize) -> u64 {
        let start = usize::from(self.starts[slot]);
        let window = &bytemuck::bytes_of(block)[start..start + size_of::<u64>()];
        u64::from_le_bytes(window.try_into().expect("eight bytes"))
    }

    /// Returns the stamp of a slot; [`Stamp::NONE`] if the format has no stamps.
    pub(super) fn stamp(&self, block: &Block, slot: usize) -> Stamp {
        // With 8 slots and no stamps, no bits are left.
        let slot = self.window(block, slot) >> self.shifts[slot];
        let stamp = slot.checked_shr(self.width).unwrap_or(0) & self.stamp_mask;
        // At most three bits.
        #[allow(clippy::cast_possible_truncation)]
        Stamp(stamp as u8)
    }

    /// Writes a content and a stamp into an empty slot.
    #[inline]
    pub(super) fn fill(&self, block: &mut Block, slot: usize, content: u64, stamp: Stamp) {
        let new = content | u64::from(stamp.0).wrapping_shl(self.width);
        let bit = slot * self.slot_bits;
        let new = u128::from(new) << (bit % 64);
        // A slot may end in the next word.
        let words: &mut [u64; 8] = bytemuck::must_cast_mut(block);
        #[allow(clippy::cast_possible_truncation)]
        let [low, high] = [new as u64, (new >> 64) as u64];
        words[bit / 64 % 8] |= low;
        words[(bit / 64 + 1) % 8] |= high;
    }

    /// Replaces the content and the stamp of a slot.
    #[inline]
    pub(super) fn put(&self, block: &mut Block, slot: usize, content: u64, stamp: Stamp) {
        let (start, shift) = (usize::from(self.starts[slot]), self.shifts[slot]);
        // The shift of a stamp is below 64: a format with stamps has at most 61 bits of content.
        let stamps = |bits: u64| bits.wrapping_shl(self.width);
        let all = self.mask | stamps(self.stamp_mask);
        let others = self.window(block, slot) & !(all << shift);
        let window = &mut bytemuck::bytes_of_mut(block)[start..start + size_of::<u64>()];
        window
            .copy_from_slice(&(others | (content | stamps(stamp.0.into())) << shift).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;
    use proptest::prelude::*;

    use super::*;

    /// Iterates over all formats, with the number of bits of a stamp.
    fn every() -> impl Iterator<Item = (&'static Format, u32)> {
        let without = Format::all(false).map(|format| (format, 0));
        without.chain(Format::all(true).map(|format| (format, STAMP_BITS)))
    }

    fn mask(format: &Format) -> u8 {
        format.stamp_mask.try_into().unwrap()
    }

    #[test]
    fn slots_fill_a_block_and_do_not_overlap() {
        for (format, stamp_bits) in every() {
            let width = format.width + stamp_bits;
            assert!(format.slots * (width as usize + 1) > BLOCK_BITS, "{format:?}");
            let mut seen = Block::zeroed();
            for slot in 0..format.slots {
                let mut block = Block::zeroed();
                format.put(&mut block, slot, format.mask, Stamp(mask(format)));
                let mut filled = Block::zeroed();
                format.fill(&mut filled, slot, format.mask, Stamp(mask(format)));
                assert_eq!(filled, block, "{format:?}");
                let bits = bytemuck::bytes_of(&block).iter().map(|byte| byte.count_ones());
                assert_eq!(bits.sum::<u32>(), width);
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
            contents in prop::collection::vec((0..SLOTS_MAX, any::<u64>(), any::<u8>()), 0..50),
        ) {
            for (format, _) in every() {
                let (mut block, mut model) = (Block::zeroed(), [(0, 0); SLOTS_MAX]);
                for &(slot, content, stamp) in contents.iter().filter(|it| it.0 < format.slots) {
                    model[slot] = (content & format.mask, stamp & mask(format));
                    format.put(&mut block, slot, model[slot].0, Stamp(model[slot].1));
                }
                for (slot, &(content, stamp)) in model.iter().enumerate().take(format.slots) {
                    prop_assert_eq!(format.get(&block, slot), content);
                    prop_assert_eq!(format.stamp(&block, slot), Stamp(stamp));
                }
            }
        }
    }
}
