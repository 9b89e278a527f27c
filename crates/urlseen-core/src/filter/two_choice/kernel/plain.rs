//! Kernel that works slot by slot, on any processor. The tests compare the other kernels with it.

use super::{Kernel, Work};
use crate::filter::block::Block;
use crate::filter::two_choice::Format;

/// Kernel that needs no special instructions.
#[derive(Debug, Clone, Copy)]
pub(in crate::filter) struct Plain;

impl Kernel for Plain {
    fn run<W: Work>(self, work: W) -> W::Done {
        work.by(self)
    }

    #[inline(always)]
    fn has(self, block: &Block, format: &Format, content: u64) -> bool {
        // All slots are compared without a branch, because a processor cannot predict the slot.
        (0..format.slots()).fold(false, |found, slot| found | (format.get(block, slot) == content))
    }

    #[inline(always)]
    fn empty(self, block: &Block, format: &Format) -> u32 {
        let empty = |slot| u32::from(format.get(block, slot) == 0) << slot;
        (0..format.slots()).map(empty).sum()
    }
}
