//! Tables by which a kernel with registers of 64 bytes reads the slots of a block.

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
