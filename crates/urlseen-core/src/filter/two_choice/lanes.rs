//! Tables by which a kernel reads the slots of a block in groups of four lanes.

use super::super::block::Block;
use super::format::SLOTS_MAX;

/// Number of lanes of a group.
pub(super) const LANES: usize = 4;

/// Number of groups that cover the slots of a block.
pub(super) const GROUPS: usize = SLOTS_MAX / LANES;

/// Number of bytes of a pair.
const PAIR_BYTES: usize = 16;

/// Lanes of a format, one for each slot. A kernel loads the bytes of two slots, which are a *pair*,
/// at once. Two pairs are a group.
// Kernels load the tables in whole registers.
#[derive(Debug)]
#[repr(C, align(32))]
pub(super) struct Lanes {
    /// Bytes of the windows of each group, counted from the first byte of the slot's pair.
    pub(super) windows: [[u8; 2 * PAIR_BYTES]; GROUPS],
    /// Bits of the content of each slot in its window; 0 for a lane without a slot.
    pub(super) masks: [[u64; LANES]; GROUPS],
    /// Distance of each slot from the lowest bit of its window.
    pub(super) shifts: [[u64; LANES]; GROUPS],
    /// First byte of each pair.
    pub(super) pairs: [u8; SLOTS_MAX / 2],
}

impl Lanes {
    /// Returns the lanes of slots with these windows. `starts` has the first byte of each window,
    /// `shifts` the distance of each slot from the lowest bit of its window, and `mask` the bits of
    /// a content.
    #[allow(clippy::cast_possible_truncation)] // A block has 64 bytes.
    pub(super) const fn new(
        slots: usize,
        starts: &[u8; SLOTS_MAX],
        shifts: &[u64; SLOTS_MAX],
        mask: u64,
    ) -> Self {
        let mut lanes = Self {
            windows: [[0; 2 * PAIR_BYTES]; GROUPS],
            masks: [[0; LANES]; GROUPS],
            shifts: [[0; LANES]; GROUPS],
            pairs: [0; SLOTS_MAX / 2],
        };
        let mut slot = 0;
        while slot < slots {
            let (group, lane) = (slot / LANES, slot % LANES);
            if slot.is_multiple_of(2) {
                // A late pair ends with the block.
                let last = size_of::<Block>() - PAIR_BYTES;
                let start = starts[slot] as usize;
                lanes.pairs[slot / 2] = if start < last { start } else { last } as u8;
            }
            let mut byte = 0;
            while byte < size_of::<u64>() {
                let in_pair = starts[slot] - lanes.pairs[slot / 2] + byte as u8;
                lanes.windows[group][size_of::<u64>() * lane + byte] = in_pair;
                byte += 1;
            }
            lanes.masks[group][lane] = mask << shifts[slot];
            lanes.shifts[group][lane] = shifts[slot];
            slot += 1;
        }
        lanes
    }
}
