//! A cache line of bits.

use super::layout::native::Draw;

/// 512 bits that memory is fetched in at once. Bit `b` is bit `b % 64` of word `b / 64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub(super) struct Line([u64; 8]);

impl Line {
    /// Whether all the bits drawn are set.
    #[inline]
    pub(super) fn holds(&self, draw: Draw) -> bool {
        // All bits are looked at: they are in one line, and a branch for each would cost more.
        let mut all = 1;
        draw.for_each_bit(|bit| all &= self.0[word(bit)] >> (bit % u64::BITS));
        all == 1
    }

    /// Sets the bits drawn; how many of them were not set before.
    #[inline]
    pub(super) fn set(&mut self, draw: Draw) -> u32 {
        let mut new = 0;
        draw.for_each_bit(|bit| {
            let word = &mut self.0[word(bit)];
            new += u32::from(*word >> (bit % u64::BITS) & 1 == 0);
            *word |= 1 << (bit % u64::BITS);
        });
        new
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

/// The word that a bit is in; `bit` is below 512, and masked so that no bounds are checked.
#[inline]
fn word(bit: u32) -> usize {
    (bit / u64::BITS % 8) as usize
}
