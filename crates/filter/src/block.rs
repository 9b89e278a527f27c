//! Block of bits, which is one cache line.

/// Block of 512 bits, which a processor fetches from memory in one step. Bit `b` is bit `b % 64` of
/// word `b / 64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub(super) struct Block(pub(super) [u64; 8]);

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

/// On a big-endian machine, the same stored bytes would be other bits.
#[cfg(not(target_endian = "little"))]
compile_error!(
    "a filter is stored byte for byte as it is in memory: build for a little-endian machine"
);
