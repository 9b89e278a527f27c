//! Slots of a block: how a block is divided, how a slot is written, and the tables by which kernels
//! read them: octets for registers of 64 bytes, quads for registers of 32 bytes.

use std::ops::Range;

use super::super::ages::Stamp;
use super::super::region::Block;

/// Largest number of slots of a block.
pub(crate) const SLOTS_MAX: usize = 20;

/// Number of bits of a slot that name the word of its key.
const WORD_BITS: u32 = 2;

/// Number of bits of a slot that are the stamp of its key, if the keys expire.
const STAMP_BITS: u32 = 3;

/// Number of bits of a block.
const BLOCK_BITS: usize = 8 * size_of::<Block>();

/// Format of a block: a number of slots of equal width, one after the other from the lowest bit.
///
/// A slot is a tag and two bits for the word of the key, which are its *content*. If the keys
/// expire, the highest three bits are the stamp of the key. The content of an empty slot is 0. A
/// slot is read through a [`Window`].
#[derive(Debug)]
pub(crate) struct Format {
    windows: [Window; SLOTS_MAX],
    /// Tables by which kernels read all slots.
    pub(super) octets: Octets,
    pub(super) quads: Quads,
    /// The bits of the content of a slot.
    pub(super) mask: u64,
    /// The bits of a stamp: three or none.
    stamp_mask: u64,
    pub(super) slots: usize,
    /// Number of bits of a slot.
    slot_bits: usize,
    /// Number of bits of the content of a slot.
    width: u32,
}

/// Eight bytes of a block that contain a slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// Index of the first byte.
    pub(super) start: u8,
    /// Distance of the slot from the lowest bit of the bytes.
    pub(super) shift: u8,
}

/// Formats, from the widest slots to the narrowest.
type Formats = [Format; SLOTS_MAX - 7];

static WITHOUT_STAMPS: Formats = formats(0);

static WITH_STAMPS: Formats = formats(STAMP_BITS);

const fn formats(stamp_bits: u32) -> Formats {
    let mut all = [const { Format::with(8, 0) }; SLOTS_MAX - 7];
    let mut format = 0;
    while format < all.len() {
        all[format] = Format::with(8 + format, stamp_bits);
        format += 1;
    }
    all
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
        let mut windows = [Window { start: 0, shift: 0 }; SLOTS_MAX];
        let mut slot = 0;
        while slot < slots {
            let bit = slot * slot_bits;
            // The window of a late slot ends with the block.
            let last = size_of::<Block>() - size_of::<u64>();
            let start = if bit / 8 < last { bit / 8 } else { last };
            windows[slot] = Window { start: start as u8, shift: (bit - 8 * start) as u8 };
            slot += 1;
        }
        let width = slot_bits as u32 - stamp_bits;
        let (mask, stamp_mask) = (u64::MAX >> (u64::BITS - width), (1 << stamp_bits) - 1);
        let (octets, quads) = {
            let (used, _) = windows.split_at(slots);
            (Octets::new(used), Quads::new(used, mask))
        };
        Self { windows, octets, quads, mask, stamp_mask, slots, slot_bits, width }
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
        self.windows[slot].read(block) & self.mask
    }

    /// Returns the stamp of a slot; [`Stamp::NONE`] if the format has no stamps.
    pub(super) fn stamp(&self, block: &Block, slot: usize) -> Stamp {
        // With 8 slots and no stamps, no bits are left.
        let slot = self.windows[slot].read(block);
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
        // The shift of a stamp is below 64: a format with stamps has at most 61 bits of content.
        let stamps = |bits: u64| bits.wrapping_shl(self.width);
        let all = self.mask | stamps(self.stamp_mask);
        self.windows[slot].write(block, content | stamps(stamp.0.into()), all);
    }
}

impl Window {
    /// Returns the bits from the lowest one of the slot on.
    #[inline]
    fn read(self, block: &Block) -> u64 {
        let bytes = &bytemuck::bytes_of(block)[self.range()];
        u64::from_le_bytes(bytes.try_into().expect("eight bytes")) >> self.shift
    }

    /// Replaces the bits of the mask, from the lowest bit of the slot on.
    #[inline]
    fn write(self, block: &mut Block, bits: u64, mask: u64) {
        let bytes = &mut bytemuck::bytes_of_mut(block)[self.range()];
        let old = u64::from_le_bytes((&*bytes).try_into().expect("eight bytes"));
        let new = old & !(mask << self.shift) | bits << self.shift;
        bytes.copy_from_slice(&new.to_le_bytes());
    }

    #[inline]
    fn range(self) -> Range<usize> {
        let start = usize::from(self.start);
        start..start + size_of::<u64>()
    }
}

/// Number of slots of an octet.
pub(super) const OCTET: usize = 8;

/// Table of all slots of a block, in octets.
#[derive(Debug)]
pub(super) struct Octets {
    all: [Octet; SLOTS_MAX.div_ceil(OCTET)],
    /// Number of octets with a slot.
    used: usize,
}

/// Eight slots. A kernel loads their windows at once.
// Kernels load the tables in whole registers.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Octet {
    /// Indices of the bytes of all windows.
    pub(super) windows: [u8; size_of::<Block>()],
    /// Distance of each slot from the lowest bit of its window; 64 for a lane without a slot.
    pub(super) shifts: [u64; OCTET],
}

impl Octets {
    /// Returns the octets of slots with these windows.
    #[allow(clippy::cast_possible_truncation)] // A window has 8 bytes.
    pub(super) const fn new(slots: &[Window]) -> Self {
        let empty = Octet { windows: [0; size_of::<Block>()], shifts: [64; OCTET] };
        let mut all = [empty; SLOTS_MAX.div_ceil(OCTET)];
        let mut slot = 0;
        while slot < slots.len() {
            let (octet, lane) = (&mut all[slot / OCTET], slot % OCTET);
            let Window { start, shift } = slots[slot];
            let mut byte = 0;
            while byte < size_of::<u64>() {
                octet.windows[size_of::<u64>() * lane + byte] = start + byte as u8;
                byte += 1;
            }
            octet.shifts[lane] = shift as u64;
            slot += 1;
        }
        Self { all, used: slots.len().div_ceil(OCTET) }
    }

    /// Returns the octets with a slot, from the lowest slots to the highest.
    #[inline]
    pub(super) fn used(&self) -> &[Octet] {
        &self.all[..self.used]
    }
}

/// Number of slots of a quad.
pub(super) const QUAD: usize = 4;

/// Number of bytes of a pair.
const PAIR_BYTES: usize = 16;

/// Table of all slots of a block, in quads.
#[derive(Debug)]
pub(super) struct Quads {
    all: [Quad; SLOTS_MAX.div_ceil(QUAD)],
    /// Number of quads with a slot.
    used: usize,
}

/// Four slots. A kernel loads the bytes of two slots, which are a *pair*, at once.
// Kernels load the tables in whole registers.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct Quad {
    /// Bytes of the windows of each pair, counted from its first byte.
    pub(super) windows: [u8; 2 * PAIR_BYTES],
    /// Bits of the content of each slot in its window; 0 for a lane without a slot.
    pub(super) masks: [u64; QUAD],
    /// Distance of each slot from the lowest bit of its window.
    pub(super) shifts: [u64; QUAD],
    /// First byte of each pair.
    pub(super) pairs: [u8; 2],
}

impl Quads {
    /// Returns the quads of slots with these windows. `mask` has the bits of a content.
    #[allow(clippy::cast_possible_truncation)] // A window has 8 bytes.
    pub(super) const fn new(slots: &[Window], mask: u64) -> Self {
        let empty = Quad {
            windows: [0; 2 * PAIR_BYTES],
            masks: [0; QUAD],
            shifts: [0; QUAD],
            pairs: [0; 2],
        };
        let mut all = [empty; SLOTS_MAX.div_ceil(QUAD)];
        let mut slot = 0;
        while slot < slots.len() {
            let (quad, lane) = (&mut all[slot / QUAD], slot % QUAD);
            let Window { start, shift } = slots[slot];
            let pair = &mut quad.pairs[lane / 2];
            if lane.is_multiple_of(2) {
                // A late pair ends with the block.
                let last = (size_of::<Block>() - PAIR_BYTES) as u8;
                *pair = if start < last { start } else { last };
            }
            let mut byte = 0;
            while byte < size_of::<u64>() {
                quad.windows[size_of::<u64>() * lane + byte] = start - *pair + byte as u8;
                byte += 1;
            }
            quad.masks[lane] = mask << shift;
            quad.shifts[lane] = shift as u64;
            slot += 1;
        }
        Self { all, used: slots.len().div_ceil(QUAD) }
    }

    /// Returns the quads with a slot, from the lowest slots to the highest.
    #[inline]
    pub(super) fn used(&self) -> &[Quad] {
        &self.all[..self.used]
    }
}

#[cfg(test)]
#[path = "slots_tests.rs"]
mod tests;
