//! Block of bits, which is one cache line, and the kernels that test and set the bits.

// Functions must be inlined into the kernel that they are compiled for, see `Work::by`.
#![allow(clippy::inline_always)]

#[cfg(target_arch = "x86_64")]
mod avx512;

#[cfg(target_arch = "x86_64")]
pub(super) use avx512::Avx512;

use super::Blocks;
use super::native::Draw;

/// Block of 512 bits, which a processor fetches from memory in one step. Bit `b` is bit `b % 64` of
/// word `b / 64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub(super) struct Block([u64; 8]);

/// Begins to fetch the cache line in which `value` starts. This makes the next access to `value`
/// faster. Does nothing on processors other than x86-64.
#[inline]
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
pub(super) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction (SSE, which every x86-64 processor has) is a hint. It reads and
        // writes nothing that a program can see, and faults on no address. A reference is a valid
        // address anyway.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// Variant of the hot loops for a processor. All kernels test and set the same bits.
pub(super) trait Kernel: Copy {
    /// Returns true if the drawn bits are set in all of these blocks.
    fn hold<'a>(self, drawn: impl Iterator<Item = (&'a Block, Draw)>) -> bool;

    /// Sets the drawn bits of a block. Returns the number of bits that were not set before.
    fn set(self, block: &mut Block, draw: Draw) -> u32;
}

/// Work on the blocks of many keys. One kernel does all of the work, so that the kernel is chosen
/// only once.
pub(super) trait Work {
    /// Does the work with a kernel, for keys with `BLOCKS` blocks each. The method must be
    /// `inline(always)`: only functions that are inlined into [`Kernels::run`] are compiled for the
    /// kernel's instructions.
    fn by<const BLOCKS: usize>(self, kernel: impl Kernel);
}

/// Choice of a kernel for this process.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kernels {
    Scalar(Scalar),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

impl Kernels {
    /// Returns the fastest kernel of this processor.
    pub(super) fn fastest() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx512) = Avx512::detect() {
            return Self::Avx512(avx512);
        }
        Self::Scalar(Scalar)
    }

    /// Does the work with this kernel. `blocks` is the number of blocks of a key.
    pub(super) fn run(self, blocks: Blocks, work: impl Work) {
        match self {
            Self::Scalar(scalar) => run(blocks, work, scalar),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(avx512) => avx512.run(blocks, work),
        }
    }
}

/// Does the work with code that is compiled for this number of blocks.
#[inline(always)]
fn run(blocks: Blocks, work: impl Work, kernel: impl Kernel) {
    match blocks {
        Blocks::One => work.by::<1>(kernel),
        Blocks::Two => work.by::<2>(kernel),
        Blocks::Four => work.by::<4>(kernel),
        Blocks::Eight => work.by::<8>(kernel),
    }
}

/// On a big-endian machine, the same stored bytes would be other bits.
#[cfg(not(target_endian = "little"))]
compile_error!(
    "a filter is stored byte for byte as it is in memory: build for a little-endian machine"
);

/// Kernel that needs no special instructions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scalar;

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
