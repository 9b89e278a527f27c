//! Zeroed memory for a filter's blocks, mapped directly from the system.

use memmap2::MmapMut;

use super::block::Block;

/// Contiguous region of blocks, which are zeroed at first. The system backs the whole region with
/// memory from the start, so that no page fault comes later. The region uses huge pages if the
/// system has them. With small pages, a random access to a large region would also miss the
/// address cache (TLB).
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
        let bytes = blocks.saturating_mul(size_of::<Block>() as u64);
        let bytes = usize::try_from(bytes).ok().filter(|&bytes| isize::try_from(bytes).is_ok());
        let bytes =
            bytes.ok_or(AllocationError::Unaddressable { bytes: blocks.saturating_mul(64) })?;
        let refused = |source| AllocationError::Refused { bytes, source };
        let mut map = MmapMut::map_anon(bytes).map_err(refused)?;
        #[cfg(target_os = "linux")]
        {
            use memmap2::Advice;
            // Systems without huge pages refuse this; small pages are only slower.
            let _ = map.advise(Advice::HugePage);
            match map.advise(Advice::PopulateWrite) {
                Ok(()) => return Ok(Self { map }),
                // Linux before 5.14 does not know this advice.
                Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {}
                Err(error) => return Err(refused(error)),
            }
        }
        touch(&mut map);
        Ok(Self { map })
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
