//! The machine's limit: reads and writes as many random cache lines as a filter does, in as much
//! memory, but computes nothing.

use memmap2::MmapMut;

use super::crawl::mixed;

/// Number of lines that are fetched ahead. Half or twice this number is about as fast.
const AHEAD: usize = 64;

/// Cache line of the memory.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u64; 8]);

/// Memory of the same size as a filter, in huge pages if the system has them.
pub struct Limit {
    memory: MmapMut,
    asked: u64,
}

impl Limit {
    /// Allocates memory of this size, and writes to all of it.
    pub fn new(bytes: u64) -> Self {
        let bytes = usize::try_from(bytes).expect("an address");
        let mut memory = MmapMut::map_anon(bytes).expect("memory");
        #[cfg(target_os = "linux")]
        memory.advise(memmap2::Advice::HugePage).expect("a system with huge pages");
        memory.fill(1);
        Self { memory, asked: 0 }
    }

    /// Draws the indices of `count` random lines, for [`Limit::change`].
    pub fn places(&mut self, count: usize) -> Vec<u32> {
        let lines = (self.memory.len() / size_of::<Line>()) as u64;
        let mut place = || {
            self.asked += 1;
            u32::try_from(mixed(self.asked) % lines).expect("below 256 GiB")
        };
        (0..count).map(|_| place()).collect()
    }

    /// Reads and writes each of the lines. Prefetches the lines that follow.
    pub fn change(&mut self, places: &[u32]) {
        let lines: &mut [Line] = bytemuck::cast_slice_mut(&mut self.memory);
        let (first, _) = places.split_at(AHEAD.min(places.len()));
        for &place in first {
            prefetch(&lines[place as usize]);
        }
        for (n, &place) in places.iter().enumerate() {
            if let Some(&coming) = places.get(n + AHEAD) {
                prefetch(&lines[coming as usize]);
            }
            lines[place as usize].0[0] |= u64::from(place);
        }
    }
}

/// Prefetches in the same way as the filter.
#[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is only a hint to the processor. It changes no memory.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
