//! Blocks of bits, each one cache line, and zeroed memory for them, mapped directly from the
//! system.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::Zeroable;
use memmap2::{MmapOptions, MmapRaw};

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

/// Contiguous region of blocks, which are zeroed at first. Blocks are backed with memory before
/// their use, so that no page fault comes later. The region uses huge pages if the system has them.
/// With small pages, a random access to a large region would also miss the address cache (TLB).
#[derive(Debug)]
pub(super) struct Region {
    map: Arc<MmapRaw>,
}

/// Handle of a region's memory. It backs blocks with memory while another thread uses the region.
#[derive(Debug, Clone)]
pub(super) struct Backing(#[cfg_attr(not(target_os = "linux"), allow(dead_code))] Arc<MmapRaw>);

/// Error of a filter whose blocks get no memory.
#[derive(Debug, thiserror::Error)]
pub enum AllocationError {
    /// The size exceeds the address space.
    #[error(
        "{bytes} bytes of filter cannot be addressed on this machine; \
         lower the capacity or raise the error rate"
    )]
    Unaddressable {
        /// Bytes that the filter needs.
        bytes: u64,
    },
    /// The system refused the memory.
    #[error(
        "the system refused {bytes} bytes of memory for the filter ({source}); free some memory, \
         lower the capacity or raise the error rate"
    )]
    Refused {
        /// Bytes that this part of the filter needs.
        bytes: usize,
        /// Error that the system gave.
        source: std::io::Error,
    },
}

impl Region {
    /// Maps the memory of `blocks` zeroed blocks.
    pub(super) fn zeroed(blocks: u64) -> Result<Self, AllocationError> {
        let bytes = bytes_of(blocks)?;
        let refused = |source| AllocationError::Refused { bytes, source };
        let mut region = Self::mapped(MmapOptions::new().len(bytes)).map_err(refused)?;
        let all = 0..region.len();
        region.prefer_huge_pages();
        region.back(all).map_err(refused)?;
        Ok(region)
    }

    /// Reserves addresses for `blocks` zeroed blocks. [`Region::back`] backs some of them with
    /// memory.
    pub(super) fn reserved(blocks: u64) -> Result<Self, AllocationError> {
        let bytes = bytes_of(blocks)?;
        let refused = |source| AllocationError::Refused { bytes, source };
        Self::mapped(MmapOptions::new().len(bytes).no_reserve_swap()).map_err(refused)
    }

    fn mapped(options: &MmapOptions) -> io::Result<Self> {
        Ok(Self { map: Arc::new(MmapRaw::from(options.map_anon()?)) })
    }

    /// Asks for huge pages, also in place of small ones.
    pub(super) fn prefer_huge_pages(&self) {
        // Systems without huge pages refuse this; small pages are only slower.
        #[cfg(target_os = "linux")]
        let _ = self.map.advise(memmap2::Advice::HugePage);
    }

    /// Asks for small pages, each of which is backed when it is touched.
    pub(super) fn prefer_small_pages(&self) {
        #[cfg(target_os = "linux")]
        let _ = self.map.advise(memmap2::Advice::NoHugePage);
    }

    /// Returns a handle of the memory.
    pub(super) fn backing(&self) -> Backing {
        Backing(Arc::clone(&self.map))
    }

    /// Backs some of the blocks with memory.
    pub(super) fn back(&mut self, blocks: Range<usize>) -> io::Result<()> {
        match self.backing().back(blocks.clone()) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                touch(&mut self.blocks_mut()[blocks]);
                Ok(())
            }
            done => done,
        }
    }

    /// Returns the number of blocks.
    pub(super) fn len(&self) -> usize {
        self.map.len() / size_of::<Block>()
    }

    /// Returns the blocks for reading.
    #[inline]
    #[allow(unsafe_code)]
    pub(super) fn blocks(&self) -> &[Block] {
        // SAFETY: `self.map` keeps this many blocks mapped, all bytes are valid blocks, and a page
        // is aligned for them. They change only by `blocks_mut`: a `Backing` changes no content.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.len()) }
    }

    /// Returns the blocks for changes.
    #[inline]
    #[allow(unsafe_code)]
    pub(super) fn blocks_mut(&mut self) -> &mut [Block] {
        // SAFETY: as for `blocks`. A region is not cloned, so `self` alone refers to the blocks.
        unsafe { std::slice::from_raw_parts_mut(self.map.as_mut_ptr().cast(), self.len()) }
    }
}

impl Backing {
    /// Backs some of the blocks with memory. Their content does not change.
    ///
    /// # Errors
    /// The system has too little memory. The error is `Unsupported` if the system has no such call.
    #[cfg_attr(not(target_os = "linux"), allow(unused_variables, clippy::unused_self))]
    pub(super) fn back(&self, blocks: Range<usize>) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            let start = blocks.start * size_of::<Block>();
            let len = blocks.len() * size_of::<Block>();
            match self.0.advise_range(memmap2::Advice::PopulateWrite, start, len) {
                // Linux before 5.14 does not know this advice.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                done => return done,
            }
        }
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Returns the number of bytes of `blocks` blocks.
fn bytes_of(blocks: u64) -> Result<usize, AllocationError> {
    let bytes = blocks.saturating_mul(size_of::<Block>() as u64);
    let addressable = usize::try_from(bytes).ok().filter(|&it| isize::try_from(it).is_ok());
    addressable.ok_or(AllocationError::Unaddressable { bytes })
}

/// Writes to each page, for systems without a call that backs pages with memory. The blocks are
/// not in use yet.
fn touch(blocks: &mut [Block]) {
    /// The smallest page of any system.
    const PAGE: usize = 4096;
    let page = PAGE / size_of::<Block>();
    blocks.iter_mut().step_by(page).for_each(|block| *block = Block::zeroed());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_begin_empty_and_can_be_written() {
        let mut region = Region::zeroed(1000).unwrap();
        assert_eq!(region.blocks().len(), 1000);
        let [empty, full]: [Block; 2] = [Block::zeroed(), bytemuck::cast([u64::MAX; 8])];
        assert!(region.blocks().iter().all(|block| *block == empty));
        region.blocks_mut()[999] = full;
        touch(&mut region.blocks_mut()[..990]);
        assert_eq!((region.blocks()[0], region.blocks()[999]), (empty, full));
    }

    #[test]
    fn more_memory_than_any_machine_has_is_an_error() {
        let refused = Region::zeroed(u64::MAX).unwrap_err();
        assert!(matches!(refused, AllocationError::Unaddressable { .. }), "{refused}");
        let refused = Region::zeroed(1 << 56).unwrap_err();
        assert!(matches!(refused, AllocationError::Refused { .. }), "{refused}");
    }
}
