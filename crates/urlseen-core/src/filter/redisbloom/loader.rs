//! Loader that builds a filter from chunks.

use std::sync::Arc;

use super::error::{ChunkError, FormatError};
use super::filter::Filter;
use super::layer::Layer;

/// Iterator of the header. An iterator is the number that `BF.SCANDUMP` returns with a chunk. For a
/// later chunk, it is 1 plus the number of layer bytes in the dump up to the end of that chunk.
pub(super) const FIRST: i64 = 1;

/// Loader of a filter. It reads chunk by chunk, in the order in which `BF.SCANDUMP` returns them.
///
/// The loader allocates memory only for bytes that have arrived, and for the spare capacity of a
/// growing vector.
#[derive(Debug)]
pub struct Loader {
    /// Filter with the bytes that have arrived.
    filter: Filter,
    /// Number of the next chunk.
    chunk: u64,
    /// Iterator of the last loaded chunk.
    iterator: i64,
    /// Layer that the next bytes belong to.
    layer: usize,
}

impl Loader {
    /// Begins with the header, the chunk with the iterator 1. All layers together, including later
    /// ones, may take at most `limit` bytes.
    ///
    /// # Errors
    /// The header is invalid, or its layers take more than `limit` bytes.
    pub fn new(iterator: i64, header: &[u8], limit: u64) -> Result<Self, ChunkError> {
        if iterator != FIRST {
            let problem = FormatError::Iterator { found: iterator, due: FIRST };
            return Err(ChunkError { chunk: 0, offset: 0, problem });
        }
        // An iterator is a signed number: 1 plus a number of bytes.
        let limit = limit.min(i64::MAX as u64 - 1);
        let filter = Filter::of_header(header, limit)?;
        Ok(Self { filter, chunk: 1, iterator, layer: 0 })
    }

    /// Loads the next chunk. The answer with the iterator 0, which ends a dump, is not a chunk.
    ///
    /// # Errors
    /// The chunk is not the next one, is too long, or does not fit into memory. An error leaves the
    /// loader unchanged.
    pub fn load(&mut self, iterator: i64, data: &[u8]) -> Result<(), ChunkError> {
        let bad = |offset, problem| ChunkError { chunk: self.chunk, offset, problem };
        if data.is_empty() {
            return Err(bad(0, FormatError::Empty));
        }
        let left = self.left_of_layer();
        if data.len() as u64 > left {
            return Err(bad(left, FormatError::TooLong { found: data.len(), left }));
        }
        // The limit bounds the number of bytes, so the sum does not overflow.
        let due = self.iterator.saturating_add_unsigned(data.len() as u64);
        if iterator != due {
            return Err(bad(0, FormatError::Iterator { found: iterator, due }));
        }
        // The layer exists, because it lacks bytes.
        let layer = Arc::make_mut(&mut self.filter.layers[self.layer]);
        if layer.bits.try_reserve(data.len()).is_err() {
            return Err(bad(0, FormatError::Memory { bytes: data.len() }));
        }
        layer.bits.extend_from_slice(data);
        layer.ones += data.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>();
        if data.len() as u64 == left {
            layer.bits.shrink_to_fit();
            self.layer += 1;
        }
        self.chunk += 1;
        self.iterator = iterator;
        Ok(())
    }

    /// Returns the number of missing bytes of the current layer, which limits the length of the
    /// next chunk. Returns 0 after the last chunk.
    pub(crate) fn left_of_layer(&self) -> u64 {
        self.filter.layers.get(self.layer).map_or(0, |layer| left(layer))
    }

    /// Returns the number of bytes of all layers, including missing bytes.
    pub fn bytes(&self) -> u64 {
        self.filter.bytes()
    }

    /// Returns the loaded filter.
    ///
    /// # Errors
    /// Some chunks were not loaded.
    pub fn finish(self) -> Result<Filter, ChunkError> {
        let left: u64 = self.filter.layers.iter().map(|layer| left(layer)).sum();
        if left > 0 {
            let problem = FormatError::Missing { left };
            return Err(ChunkError { chunk: self.chunk, offset: 0, problem });
        }
        Ok(self.filter)
    }
}

/// Returns the number of missing bytes of a layer.
fn left(layer: &Layer) -> u64 {
    layer.shape.bytes - layer.bits.len() as u64
}
