//! Tables by which kernels read the slots of a block: octets for registers of 64 bytes, quads for
//! registers of 32 bytes.

use super::super::block::Block;
use super::format::{SLOTS_MAX, Window};

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
