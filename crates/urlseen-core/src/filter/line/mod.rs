//! A cache line of bits, and the ways to test and set it.

// What a way is to be compiled for must be inlined into it, see `Work::by`.
#![allow(clippy::inline_always)]

#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;

#[cfg(target_arch = "x86_64")]
pub(super) use avx512::Avx512;
pub(super) use scalar::Scalar;

use super::layout::native::Draw;

/// 512 bits that memory is fetched in at once. Bit `b` is bit `b % 64` of word `b / 64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub(super) struct Line([u64; 8]);

/// A way to find the bits of a draw in a line. All ways find the same.
pub(super) trait Way: Copy {
    /// Whether all the bits drawn are set, each draw in its line.
    fn hold<'a>(self, drawn: impl Iterator<Item = (&'a Line, Draw)>) -> bool;

    /// Sets the bits drawn; how many of them were not set before.
    fn set(self, line: &mut Line, draw: Draw) -> u32;
}

/// Work on many lines. It is done as a whole by one way, so that nothing is asked about the
/// processor for each line.
pub(super) trait Work {
    /// What it comes to.
    type Done;

    /// Does it. Must be `inline(always)`: only what is inlined into [`Ways::run`] is compiled for
    /// the instructions of the way.
    fn by(self, way: impl Way) -> Self::Done;
}

/// The ways there are, one of which is chosen.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ways {
    Scalar(Scalar),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

impl Ways {
    /// The fastest that this processor knows.
    pub(super) fn fastest() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx512) = Avx512::detect() {
            return Self::Avx512(avx512);
        }
        Self::Scalar(Scalar)
    }

    /// Does the work this way.
    pub(super) fn run<W: Work>(self, work: W) -> W::Done {
        match self {
            Self::Scalar(scalar) => work.by(scalar),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(avx512) => avx512.run(work),
        }
    }
}

/// Lines as they are kept. Words are little endian in memory wherever this builds.
pub(super) fn bytes(lines: &[Line]) -> &[u8] {
    bytemuck::cast_slice(lines)
}

/// The same to be written to.
pub(super) fn bytes_mut(lines: &mut [Line]) -> &mut [u8] {
    bytemuck::cast_slice_mut(lines)
}

/// What is kept of a filter would read as something else.
#[cfg(not(target_endian = "little"))]
compile_error!("the bytes of a filter are kept as they are in memory, which must be little endian");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::native::Native;
    use super::super::{Geometry, Lines, Seed};
    use super::*;
    use crate::fingerprint::Fingerprint;

    /// What a key draws in its first line.
    fn draw(key: [u8; 20], bits_per_line: u8) -> Draw {
        let geometry = Geometry::new(Lines::One, bits_per_line, 1).unwrap();
        let native = Native::new(Seed::new(3), geometry);
        native.draw(native.key_hash(&Fingerprint::Raw20(key)), 0)
    }

    /// Whether two lines hold a draw, and what setting it in the second does.
    struct Look {
        lines: [Line; 2],
        draw: Draw,
    }

    impl Work for Look {
        type Done = (bool, Line, u32);

        #[inline(always)]
        fn by(self, way: impl Way) -> (bool, Line, u32) {
            let Self { mut lines, draw } = self;
            let held = way.hold(lines.iter().map(|line| (line, draw)));
            let new = way.set(&mut lines[1], draw);
            (held, lines[1], new)
        }
    }

    proptest! {
        #[test]
        fn every_way_finds_and_sets_the_bits_drawn(
            key: [u8; 20],
            bits_per_line in 1..=Geometry::MAX_BITS_PER_LINE,
            missing in prop::option::of(0..512u32),
            old: [u64; 8],
        ) {
            let draw = draw(key, bits_per_line);
            let (mut mask, mut line) = ([0; 8], [u64::MAX; 8]);
            draw.for_each_bit(|bit| mask[bit as usize / 64] |= 1 << (bit % 64));
            if let Some(bit) = missing {
                line[bit as usize / 64] ^= 1 << (bit % 64);
            }
            let holds = (0..8).all(|word| line[word] & mask[word] == mask[word]);
            let ones = |words: [u64; 8]| words.iter().map(|word| word.count_ones()).sum::<u32>();
            let set = |old: [u64; 8]| std::array::from_fn(|word| old[word] | mask[word]);
            let full = [u64::MAX; 8];
            for way in [Ways::Scalar(Scalar), Ways::fastest()] {
                for (lines, held) in
                    [([line, mask], holds), ([full, line], holds), ([full, old], old == set(old))]
                {
                    let new = set(lines[1]);
                    let expected = (held, Line(new), ones(new) - ones(lines[1]));
                    let look = Look { lines: lines.map(Line), draw };
                    prop_assert_eq!(way.run(look), expected, "{:?}", way);
                }
            }
        }
    }
}
