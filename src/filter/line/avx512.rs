//! A word of the draw at a time, on processors with AVX-512: a register holds a whole line, and in
//! another each of its eight lanes of 64 bits works on a position of its own.

use std::arch::x86_64::{
    __m512i, _mm512_mask_testn_epi64_mask, _mm512_or_si512, _mm512_permutexvar_epi64,
    _mm512_rorv_epi64, _mm512_set1_epi64, _mm512_setr_epi64, _mm512_setzero_si512,
    _mm512_sllv_epi64, _mm512_srli_epi64, _mm512_srlv_epi64, _mm512_sub_epi64,
};

use super::{Line, Way, Work};
use crate::filter::layout::native::Draw;

/// The way with AVX-512. Only [`Avx512::detect`] makes one: where there is one, the processor has
/// the instructions.
#[derive(Debug, Clone, Copy)]
pub(in crate::filter) struct Avx512(());

impl Avx512 {
    /// The way, where the processor and the system have what the functions below are compiled for.
    pub(in crate::filter) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vpopcntdq"))
            .then_some(Self(()))
    }

    /// Does the work this way.
    #[allow(unsafe_code)]
    pub(super) fn run<W: Work>(self, work: W) -> W::Done {
        // SAFETY: `run` needs nothing but its instructions, and `self` says that they are there.
        unsafe { run(work, self) }
    }
}

impl Way for Avx512 {
    #[inline(always)]
    #[allow(unsafe_code)]
    fn holds(self, line: &Line, draw: Draw) -> bool {
        // SAFETY: as in `run`.
        unsafe { holds(bytemuck::must_cast(*line), draw) }
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    fn mask(self, draw: Draw) -> Line {
        // SAFETY: as in `run`.
        bytemuck::must_cast(unsafe { mask(draw) })
    }
}

#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn run<W: Work>(work: W, way: Avx512) -> W::Done {
    work.by(way)
}

/// Each lane moves its position to its lowest bits. What is above them does no harm: of the word's
/// number three bits count, of the bit's number six. So a lane fetches the word of the line that
/// its position is in, and turns it until the position is its lowest bit.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn holds(line: __m512i, draw: Draw) -> bool {
    let shifts = _mm512_setr_epi64(0, 9, 18, 27, 36, 45, 54, 0);
    let lowest = _mm512_set1_epi64(1);
    let mut unset = 0;
    draw.for_each_word(|word, positions| {
        let bits = _mm512_srlv_epi64(_mm512_set1_epi64(word.cast_signed()), shifts);
        let words = _mm512_permutexvar_epi64(_mm512_srli_epi64::<6>(bits), line);
        let turned = _mm512_rorv_epi64(words, bits);
        let lanes = (1 << positions) - 1;
        unset |= _mm512_mask_testn_epi64_mask(lanes, turned, lowest);
    });
    unset == 0
}

/// Each lane is a word of the mask, and shifts a one by where the bit lies from its own first bit:
/// out of the lane, unless the bit is in its word, as a distance below zero is a very large one
/// here.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn mask(draw: Draw) -> __m512i {
    let firsts = _mm512_setr_epi64(0, 64, 128, 192, 256, 320, 384, 448);
    let lowest = _mm512_set1_epi64(1);
    let mut mask = _mm512_setzero_si512();
    draw.for_each_bit(|bit| {
        let distances = _mm512_sub_epi64(_mm512_set1_epi64(i64::from(bit)), firsts);
        mask = _mm512_or_si512(mask, _mm512_sllv_epi64(lowest, distances));
    });
    mask
}
