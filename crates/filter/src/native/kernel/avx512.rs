//! Kernel for processors with AVX-512. It handles one word of the draw at a time. One register
//! holds a whole block. In another register, each of the eight lanes of 64 bits holds one position.

use std::arch::x86_64::{
    __m512i, _mm512_andnot_si512, _mm512_mask_and_epi64, _mm512_or_si512, _mm512_permutexvar_epi64,
    _mm512_popcnt_epi64, _mm512_reduce_add_epi64, _mm512_rorv_epi64, _mm512_set1_epi64,
    _mm512_setr_epi64, _mm512_setzero_si512, _mm512_sllv_epi64, _mm512_srli_epi64,
    _mm512_srlv_epi64, _mm512_sub_epi64, _mm512_testn_epi64_mask,
};

use super::{BitKernel, BitWork};
use crate::Blocks;
use crate::native::Draw;
use crate::region::Block;

/// Kernel with AVX-512. Only [`BitAvx512::detect`] makes this kernel, so the processor has the
/// instructions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BitAvx512(());

impl BitAvx512 {
    /// Returns the kernel if the processor and the system support its instructions.
    pub(crate) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vpopcntdq"))
            .then_some(Self(()))
    }

    /// Does the work with this kernel.
    #[allow(unsafe_code)]
    pub(super) fn run(self, blocks: Blocks, work: impl BitWork) {
        // SAFETY: `run` only requires the instructions that it is compiled for, and `self` proves
        // that the processor has them.
        unsafe { run(blocks, work, self) }
    }
}

impl BitKernel for BitAvx512 {
    #[inline(always)]
    #[allow(unsafe_code)]
    fn hold<'a>(self, drawn: impl Iterator<Item = (&'a Block, Draw)>) -> bool {
        // SAFETY: as in `run`.
        unsafe { hold(drawn) }
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    fn set(self, block: &mut Block, draw: Draw) -> u32 {
        // SAFETY: as in `run`.
        unsafe { set(block, draw) }
    }
}

#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn run(blocks: Blocks, work: impl BitWork, kernel: BitAvx512) {
    super::run(blocks, work, kernel);
}

/// Tests draws in their blocks. Each lane shifts its position to the lowest bits. Higher bits do no
/// harm, because the instructions read only three bits for the word and six for the bit. Then each
/// lane fetches the word of its position, and rotates the word until the tested bit is the lowest.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn hold<'a>(drawn: impl Iterator<Item = (&'a Block, Draw)>) -> bool {
    let lowest = _mm512_set1_epi64(1);
    let mut all = lowest;
    for (block, draw) in drawn {
        let block = bytemuck::must_cast(*block);
        draw.for_each_word(|word, positions| {
            let bits = _mm512_srlv_epi64(_mm512_set1_epi64(word.cast_signed()), shifts());
            let words = _mm512_permutexvar_epi64(_mm512_srli_epi64::<6>(bits), block);
            let turned = _mm512_rorv_epi64(words, bits);
            all = _mm512_mask_and_epi64(all, lanes(positions), all, turned);
        });
    }
    _mm512_testn_epi64_mask(all, lowest) == 0
}

/// Sets a draw in a block. Each lane is a word of the block. The lane shifts a 1 by the distance of
/// the drawn bit from the first bit of the lane. If the drawn bit is in another word, the 1 leaves
/// the lane. A negative distance counts as a very large one.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn set(block: &mut Block, draw: Draw) -> u32 {
    let firsts = _mm512_setr_epi64(0, 64, 128, 192, 256, 320, 384, 448);
    let lowest = _mm512_set1_epi64(1);
    let mut mask = _mm512_setzero_si512();
    draw.for_each_bit(|bit| {
        let distances = _mm512_sub_epi64(_mm512_set1_epi64(i64::from(bit)), firsts);
        mask = _mm512_or_si512(mask, _mm512_sllv_epi64(lowest, distances));
    });
    let old: __m512i = bytemuck::must_cast(*block);
    *block = bytemuck::must_cast(_mm512_or_si512(old, mask));
    let new = _mm512_popcnt_epi64(_mm512_andnot_si512(old, mask));
    // A block has 512 bits.
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation)]
    let new = _mm512_reduce_add_epi64(new) as u32;
    new
}

/// Returns the shifts that bring each position of a word to the lowest bits.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn shifts() -> __m512i {
    _mm512_setr_epi64(0, 9, 18, 27, 36, 45, 54, 0)
}

/// Returns the mask of the lanes that this number of positions uses.
#[inline]
fn lanes(positions: u8) -> u8 {
    (1 << positions) - 1
}
