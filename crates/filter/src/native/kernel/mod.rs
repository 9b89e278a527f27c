//! Kernels that test and set the bits of a block.

// Functions must be inlined into the kernel that they are compiled for, see `BitWork::by`.
#![allow(clippy::inline_always)]

#[cfg(target_arch = "x86_64")]
mod avx512;

#[cfg(target_arch = "x86_64")]
use avx512::BitAvx512;

use super::Draw;
use crate::Blocks;
use crate::region::Block;

/// Variant of the hot loops for a processor. All kernels test and set the same bits.
pub(super) trait BitKernel: Copy {
    /// Returns true if the drawn bits are set in all of these blocks.
    fn hold<'a>(self, drawn: impl Iterator<Item = (&'a Block, Draw)>) -> bool;

    /// Sets the drawn bits of a block. Returns the number of bits that were not set before.
    fn set(self, block: &mut Block, draw: Draw) -> u32;
}

/// Work on the blocks of many keys. One kernel does all of the work, so that the kernel is chosen
/// only once.
pub(super) trait BitWork {
    /// Does the work with a kernel, for keys with `BLOCKS` blocks each. The method must be
    /// `inline(always)`: only functions that are inlined into [`BitKernels::run`] are compiled for
    /// the kernel's instructions.
    fn by<const BLOCKS: usize>(self, kernel: impl BitKernel);
}

/// Choice of a kernel for this process.
#[derive(Debug, Clone, Copy)]
pub(super) enum BitKernels {
    Scalar(Scalar),
    #[cfg(target_arch = "x86_64")]
    Avx512(BitAvx512),
}

impl BitKernels {
    /// Returns the fastest kernel of this processor.
    pub(super) fn fastest() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx512) = BitAvx512::detect() {
            return Self::Avx512(avx512);
        }
        Self::Scalar(Scalar)
    }

    /// Does the work with this kernel. `blocks` is the number of blocks of a key.
    pub(super) fn run(self, blocks: Blocks, work: impl BitWork) {
        match self {
            Self::Scalar(scalar) => run(blocks, work, scalar),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(avx512) => avx512.run(blocks, work),
        }
    }
}

/// Does the work with code that is compiled for this number of blocks.
#[inline(always)]
fn run(blocks: Blocks, work: impl BitWork, kernel: impl BitKernel) {
    match blocks {
        Blocks::One => work.by::<1>(kernel),
        Blocks::Two => work.by::<2>(kernel),
        Blocks::Four => work.by::<4>(kernel),
        Blocks::Eight => work.by::<8>(kernel),
    }
}

/// Kernel that needs no special instructions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scalar;

impl BitKernel for Scalar {
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
