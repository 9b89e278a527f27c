//! Prefetch of memory ahead of its use, with `unsafe` code.

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
