//! Bit by bit, on any processor: what the other ways are held to.

use super::{Line, Way};
use crate::filter::layout::native::Draw;

/// The way that needs nothing of a processor.
#[derive(Debug, Clone, Copy)]
pub(in crate::filter) struct Scalar;

impl Way for Scalar {
    #[inline(always)]
    fn holds(self, line: &Line, draw: Draw) -> bool {
        // All bits are looked at: they are in one line, and a branch for each would cost more.
        let mut all = 1;
        draw.for_each_bit(|bit| all &= line.0[word(bit)] >> (bit % u64::BITS));
        all & 1 == 1
    }

    #[inline(always)]
    fn mask(self, draw: Draw) -> Line {
        let mut mask = Line([0; 8]);
        draw.for_each_bit(|bit| mask.0[word(bit)] |= 1 << (bit % u64::BITS));
        mask
    }
}

/// The word that a bit is in; `bit` is below 512, and masked so that no bounds are checked.
#[inline]
fn word(bit: u32) -> usize {
    (bit / u64::BITS % 8) as usize
}
