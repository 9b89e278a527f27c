//! Kernel for processors with AVX2. A register has the windows of four slots.

use std::arch::x86_64::{
    __m128i, __m256i, _mm256_and_si256, _mm256_castsi256_pd, _mm256_cmpeq_epi64,
    _mm256_movemask_pd, _mm256_or_si256, _mm256_set_m128i, _mm256_set1_epi64x,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_sllv_epi64, _mm256_testz_si256,
};

use super::{Kernel, Work, has_bits};
use crate::region::Block;
use crate::two_choice::Format;
use crate::two_choice::slots::{QUAD, Quad};

/// Kernel with AVX2. Only [`Avx2::detect`] makes this kernel, so the processor has the
/// instructions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// Returns the kernel if the processor and the system support its instructions.
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && has_bits()).then_some(Self(()))
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
        unsafe { search(block, format, 0).1 }
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    fn search(self, block: &Block, format: &Format, content: u64) -> (bool, u32) {
        // SAFETY: as in `run`.
        unsafe { search(block, format, content) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn run<W: Work>(work: W, kernel: Avx2) -> W::Done {
    work.by(kernel)
}

#[inline]
#[target_feature(enable = "avx2")]
fn has(block: &Block, format: &Format, content: u64) -> bool {
    let mut found = _mm256_setzero_si256();
    for quad in format.quads.used() {
        let equal = _mm256_cmpeq_epi64(slots(block, quad), sought(quad, content));
        found = _mm256_or_si256(found, equal);
    }
    _mm256_testz_si256(found, found) == 0
}

#[inline]
#[target_feature(enable = "avx2")]
fn search(block: &Block, format: &Format, content: u64) -> (bool, u32) {
    let (mut found, mut empty) = (_mm256_setzero_si256(), 0);
    for (number, quad) in format.quads.used().iter().enumerate() {
        let slots = slots(block, quad);
        found = _mm256_or_si256(found, _mm256_cmpeq_epi64(slots, sought(quad, content)));
        empty |= is_empty(slots) << (QUAD * number);
    }
    (_mm256_testz_si256(found, found) == 0, empty & format.all_slots())
}

/// Returns the slots of a quad, each where it is in its window. The other bits are 0.
#[inline]
#[target_feature(enable = "avx2")]
fn slots(block: &Block, quad: &Quad) -> __m256i {
    let pair = |pair: usize| -> __m128i {
        let start = usize::from(quad.pairs[pair]);
        let bytes = &bytemuck::bytes_of(block)[start..start + size_of::<__m128i>()];
        bytemuck::pod_read_unaligned(bytes)
    };
    let pairs = _mm256_set_m128i(pair(1), pair(0));
    let windows = _mm256_shuffle_epi8(pairs, bytemuck::must_cast(quad.windows));
    _mm256_and_si256(windows, bytemuck::must_cast(quad.masks))
}

/// Returns what [`slots`] has in the lane of each slot with this content.
#[inline]
#[target_feature(enable = "avx2")]
fn sought(quad: &Quad, content: u64) -> __m256i {
    let content = _mm256_set1_epi64x(content.cast_signed());
    _mm256_sllv_epi64(content, bytemuck::must_cast(quad.shifts))
}

/// Returns the mask of the lanes that are 0.
#[inline]
#[target_feature(enable = "avx2")]
fn is_empty(slots: __m256i) -> u32 {
    let is_empty = _mm256_cmpeq_epi64(slots, _mm256_setzero_si256());
    _mm256_movemask_pd(_mm256_castsi256_pd(is_empty)).cast_unsigned()
}
