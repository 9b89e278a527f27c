//! Kernel that works bit by bit, on any processor. The tests compare the other kernels with it.

use super::{Block, Kernel};
use crate::filter::layout::native::Draw;

/// Kernel that needs no special instructions.
#[derive(Debug, Clone, Copy)]
pub(in crate::filter) struct Scalar;

impl Kernel for Scalar {
    #[inline(always)]
    fn hold<'a>(self, drawn: impl Iterator<Item = (&'a Block, Draw)>) -> bool {
        // Tests all bits without a branch. The blocks are already being fetched from memory, so a
        // branch for each bit would cost more than it saves.
        let mut all = 1;
        for (block, draw) in drawn {
            draw.for_each_bit(|bit| all &= block.0[word(bit)] >> (bit % u64::BITS));
        }
        all & 1 == 1
    }

    #[inline(always)]
    fn set(self, block: &mut Block, draw: Draw) -> u32 {
        let mut new = 0;
        draw.for_each_bit(|bit| {
            let word = &mut block.0[word(bit)];
            let set = *word | 1 << (bit % u64::BITS);
            new += u32::from(*word != set);
            *word = set;
        });
        new
    }
}

/// Returns the index of the word that contains a bit. `bit` is below 512. The `% 8` lets the
/// compiler omit the bounds check.
#[inline]
fn word(bit: u32) -> usize {
    (bit / u64::BITS % 8) as usize
}
