//! Kernel for processors with AVX2. Each of four registers has the windows of four slots.

use std::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_movemask_pd,
    _mm256_or_si256, _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_srlv_epi64,
    _mm256_testz_si256,
};

use super::{Kernel, Work};
use crate::filter::block::Block;
use crate::filter::two_choice::{Format, SLOTS_MAX};

/// Number of lanes of a register.
const LANES: usize = 4;

/// Kernel with AVX2. Only [`Avx2::detect`] makes this kernel, so the processor has the
/// instructions.
#[derive(Debug, Clone, Copy)]
pub(in crate::filter) struct Avx2(());

impl Avx2 {
    /// Returns the kernel if the processor and the system support its instructions.
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }
}

impl Kernel for Avx2 {
    #[allow(unsafe_code)]
    fn run<W: Work>(self, work: W) -> W::Done {
        // SAFETY: `run` only requires the instructions that it is compiled for, and `self` proves
        // that the processor has them.
        unsafe { run(work, self) }
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    fn has(self, block: &Block, format: &Format, content: u64) -> bool {
        // SAFETY: as in `run`.
        unsafe { has(block, format, content) }
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    fn empty(self, block: &Block, format: &Format) -> u32 {
        // SAFETY: as in `run`.
        unsafe { empty(block, format) }
    }
}

#[target_feature(enable = "avx2")]
fn run<W: Work>(work: W, kernel: Avx2) -> W::Done {
    work.by(kernel)
}

#[inline]
#[target_feature(enable = "avx2")]
fn has(block: &Block, format: &Format, content: u64) -> bool {
    let content = _mm256_set1_epi64x(content.cast_signed());
    let mut found = _mm256_setzero_si256();
    for group in 0..SLOTS_MAX / LANES {
        let slots = slots(block, format, group);
        found = _mm256_or_si256(found, _mm256_cmpeq_epi64(slots, content));
    }
    _mm256_testz_si256(found, found) == 0
}

#[inline]
#[target_feature(enable = "avx2")]
fn empty(block: &Block, format: &Format) -> u32 {
    let mut empty = 0;
    for group in 0..SLOTS_MAX / LANES {
        let is_empty = _mm256_cmpeq_epi64(slots(block, format, group), _mm256_setzero_si256());
        let lanes = _mm256_movemask_pd(_mm256_castsi256_pd(is_empty)).cast_unsigned();
        empty |= lanes << (LANES * group);
    }
    empty & format.all_slots()
}

/// Returns the slots of one group. A lane without a slot is 0.
#[inline]
#[target_feature(enable = "avx2")]
fn slots(block: &Block, format: &Format, group: usize) -> __m256i {
    let shifts: [__m256i; SLOTS_MAX / LANES] = bytemuck::must_cast(format.shifts);
    let mut windows = [0; LANES];
    for (lane, window) in windows.iter_mut().enumerate() {
        *window = format.window(block, LANES * group + lane);
    }
    let mask = _mm256_set1_epi64x(format.mask.cast_signed());
    _mm256_and_si256(_mm256_srlv_epi64(bytemuck::must_cast(windows), shifts[group]), mask)
}
