//! Dump of a filter as one sequence of bytes, for files and snapshots. Its numbers are little
//! endian.
//!
//! ```text
//! at  bytes
//!  0      8  "RBDUMP 1"
//!  8         each answer of BF.SCANDUMP, in order, including the last:
//!  0      8    its iterator
//!  8      8    n, the number of bytes of its data
//! 16      n    its data
//! 16+n    4    CRC-32 (zlib's) of the 16+n bytes before
//! ```
//!
//! The last answer of a dump has the iterator 0 and no data. No byte follows that answer.

use std::io::{self, Read, Write};
use std::sync::Arc;

use crc::{CRC_32_ISO_HDLC, Crc, Table};

use crate::peers::redisbloom::filter::{Chunk, FIRST, Filter};
use crate::peers::redisbloom::layer::Layer;
use crate::peers::redisbloom::{ChunkError, FormatError};

/// First bytes of a dump.
pub(crate) const MAGIC: &[u8; 8] = b"RBDUMP 1";

/// Bytes of a chunk before its data: its iterator, and the number of bytes of its data.
type Head = [[u8; 8]; 2];
/// Number of bytes of a chunk after its data.
const CRC: usize = 4;

/// Maximum size of a filter's header in bytes, enough for some 19,000 layers.
const MAX_HEADER: u64 = 1 << 20;

/// Error of a dump that cannot be read, with the place of the problem.
#[derive(Debug, thiserror::Error)]
#[error("at byte {offset}: {problem}")]
pub struct DumpError {
    /// Offset in the dump at which the problem begins.
    pub(crate) offset: u64,
    /// Kind of the problem, with its values.
    pub problem: DumpFormatError,
}

/// Reason why a dump cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DumpFormatError {
    /// The bytes are not a dump.
    #[error("this is not a dump of a RedisBloom filter: it does not begin with \"RBDUMP 1\"")]
    Magic,
    /// The dump ends too early.
    #[error("the dump ends in the middle: dump the filter again")]
    Cut,
    /// A chunk has changed since it was written.
    #[error("the CRC of the chunk that begins here does not match: dump the filter again")]
    Crc,
    /// A chunk claims more bytes than this place of the dump allows.
    #[error("the chunk claims {found} bytes, and at most {allowed} are possible here")]
    Length {
        /// Bytes that the chunk claims.
        found: u64,
        /// Maximum number of bytes that can follow.
        allowed: u64,
    },
    /// Bytes follow the end of the dump.
    #[error("more bytes follow after the end of the dump")]
    Behind,
    /// The chunk is complete, but invalid at this place of a filter.
    #[error("{0}")]
    Chunk(ChunkError),
    /// The reader of the dump failed.
    #[error("the dump cannot be read: {0}")]
    Io(io::Error),
}

/// Writes a filter as a dump.
///
/// # Errors
/// The writer fails.
pub fn write(filter: &Filter, to: &mut dyn Write) -> io::Result<()> {
    to.write_all(MAGIC)?;
    let end = Chunk { iterator: 0, data: (&[]).into() };
    for Chunk { iterator, data } in filter.chunks().chain([end]) {
        let head = [iterator.to_le_bytes(), (data.len() as u64).to_le_bytes()];
        to.write_all(head.as_flattened())?;
        to.write_all(&data)?;
        to.write_all(&crc(head, &data).to_le_bytes())?;
    }
    Ok(())
}

/// Returns the number of bytes that [`write()`] writes.
pub fn len(filter: &Filter) -> u64 {
    let around = (size_of::<Head>() + CRC) as u64;
    let chunks = filter.chunks().map(|chunk| around + chunk.data.len() as u64);
    MAGIC.len() as u64 + chunks.sum::<u64>() + around
}

/// Reads a filter chunk by chunk, up to the end of `from`. The layers of the filter may never take
/// more than `limit` bytes.
///
/// # Errors
/// Reading fails, or the bytes are not a valid dump.
pub fn read(from: &mut dyn Read, limit: u64) -> Result<Filter, DumpError> {
    let mut source = Source { from, offset: 0 };
    let mut magic = [0; MAGIC.len()];
    // A file of less than 8 bytes is not a dump, either.
    let is_dump = match source.fill(&mut magic) {
        Err(DumpError { problem: DumpFormatError::Cut, .. }) => false,
        filled => filled.map(|()| magic == *MAGIC)?,
    };
    if !is_dump {
        return Err(DumpError { offset: 0, problem: DumpFormatError::Magic });
    }
    let (iterator, header) = source.chunk(MAX_HEADER)?;
    let refused = |offset, problem| DumpError { offset, problem: DumpFormatError::Chunk(problem) };
    let mut loader = Loader::new(iterator, &header, limit)
        .map_err(|problem| refused(MAGIC.len() as u64, problem))?;
    loop {
        let begin = source.offset;
        let (iterator, data) = source.chunk(loader.left_of_layer())?;
        if iterator == 0 && data.is_empty() {
            let filter = loader.finish().map_err(|problem| refused(begin, problem))?;
            return source.end().map(|()| filter);
        }
        loader.load(iterator, &data).map_err(|problem| refused(begin, problem))?;
    }
}

/// Reader of a dump, and the offset in it.
struct Source<'a> {
    from: &'a mut dyn Read,
    offset: u64,
}

impl Source<'_> {
    fn bad(&self, problem: DumpFormatError) -> DumpError {
        DumpError { offset: self.offset, problem }
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), DumpError> {
        self.from.read_exact(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.bad(DumpFormatError::Cut),
            _ => self.bad(DumpFormatError::Io(error)),
        })?;
        self.offset += buffer.len() as u64;
        Ok(())
    }

    /// Reads the next chunk, with at most `allowed` bytes of data. Allocates memory only for bytes
    /// that arrive.
    fn chunk(&mut self, allowed: u64) -> Result<(i64, Vec<u8>), DumpError> {
        let begin = self.offset;
        let mut head: Head = Head::default();
        self.fill(head.as_flattened_mut())?;
        let [iterator, length] = head.map(u64::from_le_bytes);
        if length > allowed {
            self.offset = begin;
            return Err(self.bad(DumpFormatError::Length { found: length, allowed }));
        }
        let mut data = Vec::new();
        let read = (&mut *self.from).take(length).read_to_end(&mut data);
        read.map_err(|error| self.bad(DumpFormatError::Io(error)))?;
        self.offset += data.len() as u64;
        if (data.len() as u64) < length {
            return Err(self.bad(DumpFormatError::Cut));
        }
        let mut found = [0; CRC];
        self.fill(&mut found)?;
        if u32::from_le_bytes(found) != crc(head, &data) {
            self.offset = begin;
            return Err(self.bad(DumpFormatError::Crc));
        }
        Ok((iterator.cast_signed(), data))
    }

    /// Checks that no further byte follows.
    fn end(&mut self) -> Result<(), DumpError> {
        match self.fill(&mut [0]) {
            Err(DumpError { problem: DumpFormatError::Cut, .. }) => Ok(()),
            Err(error) => Err(error),
            Ok(()) => {
                self.offset -= 1;
                Err(self.bad(DumpFormatError::Behind))
            }
        }
    }
}

fn crc(head: Head, data: &[u8]) -> u32 {
    const CRC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);
    let mut crc = CRC.digest();
    crc.update(head.as_flattened());
    crc.update(data);
    crc.finalize()
}

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
    layer.parameters.bytes - layer.bits.len() as u64
}
