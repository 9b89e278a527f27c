//! Zeroed memory for a filter's blocks, mapped directly from the system.

use std::io;
use std::ops::Range;

use memmap2::{MmapMut, MmapOptions};

use super::block::Block;

/// Contiguous region of blocks, which are zeroed at first. Blocks are backed with memory before
/// their use, so that no page fault comes later. The region uses huge pages if the system has them.
/// With small pages, a random access to a large region would also miss the address cache (TLB).
#[derive(Debug)]
pub(super) struct Region {
    map: MmapMut,
}

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
        let mut region = Self::advised(MmapMut::map_anon(bytes).map_err(refused)?);
        let all = 0..region.len();
        region.back(all).map_err(refused)?;
        Ok(region)
    }

    /// Reserves addresses for `blocks` zeroed blocks. [`Region::back`] backs some of them with
    /// memory.
    pub(super) fn reserved(blocks: u64) -> Result<Self, AllocationError> {
        let bytes = bytes_of(blocks)?;
        let map = MmapOptions::new().len(bytes).no_reserve_swap().map_anon();
        Ok(Self::advised(map.map_err(|source| AllocationError::Refused { bytes, source })?))
    }

    fn advised(map: MmapMut) -> Self {
        // Systems without huge pages refuse this; small pages are only slower.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Self { map }
    }

    /// Backs some of the blocks with memory.
    pub(super) fn back(&mut self, blocks: Range<usize>) -> io::Result<()> {
        let start = blocks.start * size_of::<Block>();
        let len = blocks.len() * size_of::<Block>();
        #[cfg(target_os = "linux")]
        match self.map.advise_range(memmap2::Advice::PopulateWrite, start, len) {
            // Linux before 5.14 does not know this advice.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
            done => return done,
        }
        touch(&mut self.map[start..start + len]);
        Ok(())
    }

    /// Returns the number of blocks.
    pub(super) fn len(&self) -> usize {
        self.map.len() / size_of::<Block>()
    }

    /// Returns the blocks for reading.
    #[inline]
    pub(super) fn blocks(&self) -> &[Block] {
        bytemuck::cast_slice(&self.map)
    }

    /// Returns the blocks for changes.
    #[inline]
    pub(super) fn blocks_mut(&mut self) -> &mut [Block] {
        bytemuck::cast_slice_mut(&mut self.map)
    }
}

/// Returns the number of bytes of `blocks` blocks.
fn bytes_of(blocks: u64) -> Result<usize, AllocationError> {
    let bytes = blocks.saturating_mul(size_of::<Block>() as u64);
    let addressable = usize::try_from(bytes).ok().filter(|&it| isize::try_from(it).is_ok());
    addressable.ok_or(AllocationError::Unaddressable { bytes })
}

/// Writes to each page, for systems without a call that backs pages with memory.
fn touch(map: &mut [u8]) {
    /// The smallest page of any system.
    const PAGE: usize = 4096;
    map.iter_mut().step_by(PAGE).for_each(|byte| *byte = 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_begin_empty_and_can_be_written() {
        let mut region = Region::zeroed(1000).unwrap();
        assert_eq!(region.blocks().len(), 1000);
        let [empty, full]: [Block; 2] =
            [bytemuck::Zeroable::zeroed(), bytemuck::cast([u64::MAX; 8])];
        assert!(region.blocks().iter().all(|block| *block == empty));
        region.blocks_mut()[999] = full;
        touch(&mut region.map[..990 * 64]);
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
