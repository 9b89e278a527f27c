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

use std::fmt::Display;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use crc::{CRC_32_ISO_HDLC, Crc, Table};

use crate::peers::redisbloom::filter::{Chunk, FIRST, Filter};
use crate::peers::redisbloom::layer::Layer;
use crate::peers::redisbloom::refused;

/// First bytes of a dump.
const MAGIC: &[u8; 8] = b"RBDUMP 1";

/// Number of bytes of a chunk before its data: its iterator, and the number of bytes of its data.
const HEAD: u64 = 16;
/// Number of bytes of a chunk after its data.
const CRC: u64 = 4;

/// Maximum size of a filter's header in bytes, enough for some 19,000 layers.
const MAX_HEADER: u64 = 1 << 20;

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
        to.write_all(&crc(head.as_flattened(), &data))?;
    }
    Ok(())
}

/// Returns the number of bytes that [`write()`] writes.
pub fn len(filter: &Filter) -> u64 {
    let chunks = filter.chunks().map(|chunk| HEAD + chunk.data.len() as u64 + CRC);
    MAGIC.len() as u64 + chunks.sum::<u64>() + HEAD + CRC
}

/// Reads a filter chunk by chunk, up to the end of `from`. The layers of the filter may never take
/// more than `limit` bytes.
///
/// # Errors
/// Reading fails. The error is [`ErrorKind::InvalidData`] if the bytes are not a valid dump, and
/// [`ErrorKind::OutOfMemory`] if there is not enough memory.
pub fn read(from: &mut dyn Read, limit: u64) -> io::Result<Filter> {
    let mut source = Source { from, offset: 0 };
    if source.some(MAGIC.len() as u64)? != MAGIC {
        let problem = "this is not a dump of a RedisBloom filter: it does not begin with \
                       \"RBDUMP 1\"";
        return Err(bad(0, ErrorKind::InvalidData, problem));
    }
    let refused = |at| move |error: io::Error| bad(at, error.kind(), error);
    let begin = source.offset;
    let (iterator, header) = source.chunk(MAX_HEADER)?;
    let mut loader = Loader::new(iterator, &header, limit).map_err(refused(begin))?;
    loop {
        let begin = source.offset;
        let (iterator, data) = source.chunk(loader.left_of_layer())?;
        if iterator == 0 && data.is_empty() {
            let (filter, end) = (loader.finish().map_err(refused(begin))?, source.offset);
            if source.some(1)?.is_empty() {
                return Ok(filter);
            }
            let problem = "more bytes follow after the end of the dump";
            return Err(bad(end, ErrorKind::InvalidData, problem));
        }
        loader.load(iterator, &data).map_err(refused(begin))?;
    }
}

/// Makes the error of a dump with a problem at this offset.
fn bad(offset: u64, kind: ErrorKind, problem: impl Display) -> io::Error {
    io::Error::new(kind, format!("at byte {offset}: {problem}"))
}

/// Reader of a dump, and the offset in it.
struct Source<'a> {
    from: &'a mut dyn Read,
    offset: u64,
}

impl Source<'_> {
    /// Reads up to this number of bytes. Allocates memory only for bytes that arrive.
    fn some(&mut self, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        (&mut *self.from).take(most).read_to_end(&mut bytes)?;
        self.offset += bytes.len() as u64;
        Ok(bytes)
    }

    /// Reads this number of bytes.
    fn all(&mut self, length: u64) -> io::Result<Vec<u8>> {
        let bytes = self.some(length)?;
        if bytes.len() as u64 == length {
            return Ok(bytes);
        }
        let problem = "the dump ends in the middle: dump the filter again";
        Err(bad(self.offset, ErrorKind::InvalidData, problem))
    }

    /// Reads the next chunk, with at most `allowed` bytes of data.
    fn chunk(&mut self, allowed: u64) -> io::Result<(i64, Vec<u8>)> {
        let begin = self.offset;
        let bad = |problem| Err(bad(begin, ErrorKind::InvalidData, problem));
        let head = self.all(HEAD)?;
        let number = |at| u64::from_le_bytes(head.as_chunks().0[at]);
        let (iterator, found) = (number(0).cast_signed(), number(1));
        if found > allowed {
            return bad(format!(
                "the chunk claims {found} bytes, and at most {allowed} are possible here"
            ));
        }
        let data = self.all(found)?;
        if self.all(CRC)? != crc(&head, &data) {
            let changed = "the CRC of the chunk that begins here does not match";
            return bad(format!("{changed}: dump the filter again"));
        }
        Ok((iterator, data))
    }
}

fn crc(head: &[u8], data: &[u8]) -> [u8; size_of::<u32>()] {
    const CRC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);
    let mut crc = CRC.digest();
    crc.update(head);
    crc.update(data);
    crc.finalize().to_le_bytes()
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
    pub fn new(iterator: i64, header: &[u8], limit: u64) -> io::Result<Self> {
        check_iterator(0, iterator, FIRST)?;
        Ok(Self { filter: Filter::of_header(header, limit)?, chunk: 1, iterator, layer: 0 })
    }

    /// Loads the next chunk. The answer with the iterator 0, which ends a dump, is not a chunk.
    ///
    /// # Errors
    /// The chunk is not the next one, is too long, or does not fit into memory. An error leaves the
    /// loader unchanged.
    pub fn load(&mut self, iterator: i64, data: &[u8]) -> io::Result<()> {
        let bad = |offset, problem| refused(ErrorKind::InvalidData, self.chunk, offset, problem);
        let (bytes, left) = (data.len() as u64, self.left_of_layer());
        if bytes == 0 {
            return Err(bad(0, "the chunk is empty".to_owned()));
        }
        if bytes > left {
            let problem = format!("the chunk has {bytes} bytes, and its layer lacks only {left}");
            return Err(bad(left, problem));
        }
        // The limit bounds the number of bytes, so the sum does not overflow.
        check_iterator(self.chunk, iterator, self.iterator.saturating_add_unsigned(bytes))?;
        // The layer exists, because it lacks bytes.
        let layer = Arc::make_mut(&mut self.filter.layers[self.layer]);
        layer.bits.try_reserve(data.len()).map_err(|_| {
            let problem = format!("the system gave no memory for {bytes} more bytes of the filter");
            refused(ErrorKind::OutOfMemory, self.chunk, 0, problem)
        })?;
        layer.bits.extend_from_slice(data);
        layer.ones += data.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>();
        if bytes == left {
            layer.bits.shrink_to_fit();
            self.layer += 1;
        }
        self.chunk += 1;
        self.iterator = iterator;
        Ok(())
    }

    /// Returns the number of missing bytes of the current layer, which limits the length of the
    /// next chunk. Returns 0 after the last chunk.
    fn left_of_layer(&self) -> u64 {
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
    pub fn finish(self) -> io::Result<Filter> {
        let left: u64 = self.filter.layers.iter().map(|layer| left(layer)).sum();
        if left > 0 {
            let problem = format!("the chunk is missing: the filter lacks {left} bytes");
            return Err(refused(ErrorKind::InvalidData, self.chunk, 0, problem));
        }
        Ok(self.filter)
    }
}

/// Checks the iterator of the chunk with this number.
fn check_iterator(chunk: u64, found: i64, due: i64) -> io::Result<()> {
    let problem = || {
        format!(
            "its iterator is {found} instead of {due}: chunks are missing, doubled or out of order"
        )
    };
    if found == due { Ok(()) } else { Err(refused(ErrorKind::InvalidData, chunk, 0, problem())) }
}

/// Returns the number of missing bytes of a layer.
fn left(layer: &Layer) -> u64 {
    layer.parameters.bytes - layer.bits.len() as u64
}
