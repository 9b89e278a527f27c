//! Block of bits, which is one cache line, and the kernels that test and set the bits.

// Functions must be inlined into the kernel that they are compiled for, see `Work::by`.
#![allow(clippy::inline_always)]

#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;

#[cfg(target_arch = "x86_64")]
pub(super) use avx512::Avx512;
pub(super) use scalar::Scalar;

use super::Blocks;
use super::layout::native::Draw;

/// Block of 512 bits, which a processor fetches from memory in one step. Bit `b` is bit `b % 64` of
/// word `b / 64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub(super) struct Block([u64; 8]);

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

/// Returns the bytes of blocks. The words are little endian on every supported machine.
pub(super) fn bytes(blocks: &[Block]) -> &[u8] {
    bytemuck::cast_slice(blocks)
}

/// Returns the bytes of blocks, so that the caller can overwrite them.
pub(super) fn bytes_mut(blocks: &mut [Block]) -> &mut [u8] {
    bytemuck::cast_slice_mut(blocks)
}

/// On a big-endian machine, the same stored bytes would be other bits.
#[cfg(not(target_endian = "little"))]
compile_error!(
    "a filter is stored byte for byte as it is in memory: build for a little-endian machine"
);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::native::Native;
    use super::super::{Geometry, Seed};
    use super::*;
    use crate::fingerprint::Fingerprint;

    /// Returns the bits that a key draws in its first block.
    fn draw(key: [u8; 20], bits_per_block: u8) -> Draw {
        let geometry = Geometry::new(Blocks::One, bits_per_block, 1).unwrap();
        let native = Native::new(Seed::new(3), geometry);
        native.draw(native.key_hash(&Fingerprint::Raw20(key)), 0)
    }

    /// Tests whether both blocks have the bits of a draw, and then sets these bits in the second
    /// block.
    struct Look<'a> {
        blocks: [Block; 2],
        draw: Draw,
        found: &'a mut Option<(bool, Block, u32)>,
    }

    impl Work for Look<'_> {
        #[inline(always)]
        fn by<const BLOCKS: usize>(self, kernel: impl Kernel) {
            let Self { mut blocks, draw, found } = self;
            let held = kernel.hold(blocks.iter().map(|block| (block, draw)));
            let new = kernel.set(&mut blocks[1], draw);
            *found = Some((held, blocks[1], new));
        }
    }

    proptest! {
        #[test]
        fn every_kernel_finds_and_sets_the_bits_drawn(
            key: [u8; 20],
            bits_per_block in 1..=Geometry::MAX_BITS_PER_BLOCK,
            missing in prop::option::of(0..512u32),
            old: [u64; 8],
        ) {
            let draw = draw(key, bits_per_block);
            let (mut mask, mut block) = ([0; 8], [u64::MAX; 8]);
            draw.for_each_bit(|bit| mask[bit as usize / 64] |= 1 << (bit % 64));
            if let Some(bit) = missing {
                block[bit as usize / 64] ^= 1 << (bit % 64);
            }
            let holds = (0..8).all(|word| block[word] & mask[word] == mask[word]);
            let ones = |words: [u64; 8]| words.iter().map(|word| word.count_ones()).sum::<u32>();
            let set = |old: [u64; 8]| std::array::from_fn(|word| old[word] | mask[word]);
            let full = [u64::MAX; 8];
            for kernel in [Kernels::Scalar(Scalar), Kernels::fastest()] {
                for (blocks, held) in
                    [([block, mask], holds), ([full, block], holds), ([full, old], old == set(old))]
                {
                    let new = set(blocks[1]);
                    let expected = (held, Block(new), ones(new) - ones(blocks[1]));
                    let mut found = None;
                    let look = Look { blocks: blocks.map(Block), draw, found: &mut found };
                    kernel.run(Blocks::Two, look);
                    prop_assert_eq!(found, Some(expected), "{:?}", kernel);
                }
            }
        }
    }
}
