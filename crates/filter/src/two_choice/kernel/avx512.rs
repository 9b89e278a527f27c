//! Kernel for processors with AVX-512. A register has the windows of eight slots.

use std::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_cmpeq_epi64_mask, _mm512_permutexvar_epi8, _mm512_set1_epi64,
    _mm512_srlv_epi64, _mm512_test_epi64_mask,
};

use super::{Kernel, Work, has_bits};
use crate::region::Block;
use crate::two_choice::Format;
use crate::two_choice::slots::{OCTET, Octet};

/// Kernel with AVX-512. Only [`Avx512::detect`] makes this kernel, so the processor has the
/// instructions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512(());

impl Avx512 {
    /// Returns the kernel if the processor and the system support its instructions.
    pub(super) fn detect() -> Option<Self> {
        let has_all = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vbmi")
            && has_bits();
        has_all.then_some(Self(()))
    }
}

impl Kernel for Avx512 {
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

#[target_feature(enable = "avx512f,avx512vbmi,bmi1,bmi2,popcnt")]
fn run<W: Work>(work: W, kernel: Avx512) -> W::Done {
    work.by(kernel)
}

#[inline]
#[target_feature(enable = "avx512f,avx512vbmi")]
fn has(block: &Block, format: &Format, content: u64) -> bool {
    let content = _mm512_set1_epi64(content.cast_signed());
    let mask = _mm512_set1_epi64(format.mask.cast_signed());
    let mut found = 0;
    for octet in format.octets.used() {
        let slots = _mm512_and_si512(slots(block, octet), mask);
        found |= _mm512_cmpeq_epi64_mask(slots, content);
    }
    found != 0
}

#[inline]
#[target_feature(enable = "avx512f,avx512vbmi")]
fn empty(block: &Block, format: &Format) -> u32 {
    let mask = _mm512_set1_epi64(format.mask.cast_signed());
    let mut full = 0;
    for (number, octet) in format.octets.used().iter().enumerate() {
        let has_key = _mm512_test_epi64_mask(slots(block, octet), mask);
        full |= u32::from(has_key) << (OCTET * number);
    }
    !full & format.all_slots()
}

/// Returns the slots of an octet, each in the lowest bits of a lane. The higher bits of the lane
/// are those of other slots. A lane without a slot is 0.
// No closure here: a generic function that calls a closure with these instructions is not inlined.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi")]
fn slots(block: &Block, octet: &Octet) -> __m512i {
    let windows = bytemuck::must_cast(octet.windows);
    let windows = _mm512_permutexvar_epi8(windows, bytemuck::must_cast(*block));
    _mm512_srlv_epi64(windows, bytemuck::must_cast(octet.shifts))
}
