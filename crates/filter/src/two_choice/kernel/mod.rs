//! Kernels: searches for slots of a block, in a variant for each kind of processor.

// Functions must be inlined into the kernel that they are compiled for, see `Work::by`.
#![allow(clippy::inline_always)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use super::super::region::Block;
use super::slots::Format;

#[cfg(target_arch = "x86_64")]
use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use avx512::Avx512;

/// Variant of the hot loops for a processor. All kernels find the same slots.
pub(crate) trait Kernel: Copy {
    /// Does the work in a function that is compiled for the kernel's instructions.
    fn run<W: Work>(self, work: W) -> W::Done;

    /// Returns true if a slot has this content, which is not 0.
    fn has(self, block: &Block, format: &Format, content: u64) -> bool;

    /// Returns the mask of the empty slots.
    fn empty(self, block: &Block, format: &Format) -> u32;

    /// Returns what [`Kernel::has`] and [`Kernel::empty`] return.
    #[inline(always)]
    fn search(self, block: &Block, format: &Format, content: u64) -> (bool, u32) {
        (self.has(block, format, content), self.empty(block, format))
    }
}

/// Work on the blocks of many keys. One kernel does all of the work, so that the kernel is chosen
/// only once.
pub(crate) trait Work {
    type Done;

    /// Does the work with a kernel. The method must be `inline(always)`: only functions that are
    /// inlined into [`Kernels::run`] are compiled for the kernel's instructions.
    fn by(self, kernel: impl Kernel) -> Self::Done;
}

/// Choice of a kernel for this process.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kernels {
    Plain(Plain),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

impl Kernels {
    /// Returns the fastest kernel of this processor.
    pub(crate) fn fastest() -> Self {
        Self::all().pop().expect("the plain kernel runs on every processor")
    }

    /// Returns all kernels of this processor. Each one is faster than the ones before it.
    pub(super) fn all() -> Vec<Self> {
        let mut all = vec![Self::Plain(Plain)];
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(Avx2::detect().map(Self::Avx2));
            all.extend(Avx512::detect().map(Self::Avx512));
        }
        all
    }

    /// Does the work with this kernel.
    pub(crate) fn run<W: Work>(self, work: W) -> W::Done {
        match self {
            Self::Plain(plain) => plain.run(work),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(avx2) => avx2.run(work),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(avx512) => avx512.run(work),
        }
    }
}

/// Returns true if the processor has the instructions for single bits that the kernels of x86-64
/// use: BMI1, BMI2 and POPCNT.
#[cfg(target_arch = "x86_64")]
fn has_bits() -> bool {
    is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
}

/// Kernel that needs no special instructions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plain;

impl Kernel for Plain {
    fn run<W: Work>(self, work: W) -> W::Done {
        work.by(self)
    }

    #[inline(always)]
    fn has(self, block: &Block, format: &Format, content: u64) -> bool {
        // All slots are compared without a branch, because a processor cannot predict the slot.
        (0..format.slots).fold(false, |found, slot| found | (format.get(block, slot) == content))
    }

    #[inline(always)]
    fn empty(self, block: &Block, format: &Format) -> u32 {
        let empty = |slot| u32::from(format.get(block, slot) == 0) << slot;
        (0..format.slots).map(empty).sum()
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;
    use proptest::prelude::*;

    use super::*;
    use crate::ages::Stamp;
    use crate::two_choice::slots::SLOTS_MAX;

    /// Search for one content, and for the empty slots.
    struct Search<'a>(&'a Block, &'a Format, u64);

    impl Work for Search<'_> {
        type Done = [(bool, u32); 2];

        #[inline(always)]
        fn by(self, kernel: impl Kernel) -> [(bool, u32); 2] {
            let Self(block, format, content) = self;
            let one_by_one = (kernel.has(block, format, content), kernel.empty(block, format));
            [one_by_one, kernel.search(block, format, content)]
        }
    }

    proptest! {
        #[test]
        fn every_kernel_finds_the_contents_and_the_empty_slots(
            contents: [Option<u64>; SLOTS_MAX],
            sought in 0..SLOTS_MAX,
            flipped in 0..64u32,
        ) {
            for format in Format::all(false).chain(Format::all(true)) {
                let mut block = Block::zeroed();
                let contents = contents.map(|content| content.unwrap_or(0) & format.mask);
                let slots = &contents[..format.slots];
                for (slot, &content) in slots.iter().enumerate() {
                    // A kernel does not look at the stamps.
                    format.put(&mut block, slot, content, Stamp::NONE);
                }
                let is_empty = |slot: usize| u32::from(slots[slot] == 0) << slot;
                let empty = (0..slots.len()).map(is_empty).sum::<u32>();
                let near = contents[sought] ^ (1 << flipped & format.mask);
                for content in [contents[sought], near].into_iter().filter(|&it| it != 0) {
                    let expected = (slots.contains(&content), empty);
                    for kernel in Kernels::all() {
                        let found = kernel.run(Search(&block, format, content));
                        prop_assert_eq!(found, [expected; 2], "{:?} {:?}", kernel, format);
                    }
                }
            }
        }
    }
}
