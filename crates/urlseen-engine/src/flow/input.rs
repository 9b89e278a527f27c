//! Lines from files and standard input, a block at a time.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use crate::item::Items;

/// How many bytes of lines are handed on together, if that many are there.
pub(crate) const BLOCK: usize = 1 << 19;

/// The longest line that is read, in bytes: as much as Redis takes as one item.
const LINE_MAX: usize = 512 << 20;

/// What stands for standard input.
const STANDARD_INPUT: &str = "-";

/// Some lines of an input.
#[derive(Debug)]
pub struct Block {
    /// The lines, without their line feeds.
    pub lines: Items,
    name: Arc<Path>,
    first: u64,
    consumed: u64,
}

/// Where a line stands, for messages: `FILE, line N`.
#[derive(Debug, Clone, Copy)]
pub struct LinePlace<'a> {
    name: &'a Path,
    line: u64,
}

/// Why an input cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// It cannot be opened.
    #[error("cannot open {}: {reason}", InputName(name))]
    Open {
        /// The file.
        name: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// Reading, or decompressing, failed.
    #[error("cannot read {} beyond line {line}: {reason}", InputName(name))]
    Read {
        /// The file.
        name: PathBuf,
        /// The last line that was read whole.
        line: u64,
        /// Why.
        reason: io::Error,
    },
    /// A line has no end.
    #[error("{}, line {line} is longer than 512 MiB; is this a file of lines?", InputName(name))]
    Endless {
        /// The file.
        name: PathBuf,
        /// The line.
        line: u64,
    },
}

impl Block {
    /// Where the line at `index` of the block stands.
    pub fn place(&self, index: usize) -> LinePlace<'_> {
        LinePlace { name: &self.name, line: self.first + index as u64 }
    }

    /// The input that it is of.
    pub fn name(&self) -> &Arc<Path> {
        &self.name
    }

    /// The number of its first line, from 1.
    pub fn first_line(&self) -> u64 {
        self.first
    }

    /// How many bytes of the input were read by then, compressed as they are.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }
}

impl fmt::Display for LinePlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", InputName(self.name), self.line)
    }
}

/// The name of an input for messages: shows `-` as what it stands for.
#[derive(Debug, Clone, Copy)]
pub struct InputName<'a>(pub &'a Path);

impl fmt::Display for InputName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.as_os_str() == STANDARD_INPUT {
            f.write_str("standard input")
        } else {
            write!(f, "{}", self.0.display())
        }
    }
}

/// The lines of `files` one after the other, in blocks; of standard input where there are none or
/// where one is `-`. What is compressed with gzip or Zstandard is decompressed. A last line
/// without a line feed is a line like any other.
pub fn blocks(files: Vec<PathBuf>) -> impl Iterator<Item = Result<Block, InputError>> {
    let files = if files.is_empty() { vec![PathBuf::from(STANDARD_INPUT)] } else { files };
    files.into_iter().flat_map(|name| match open(&name) {
        Ok(reader) => Blocks::Open(LineReader::new(name, reader)),
        Err(reason) => Blocks::Failed(Some(InputError::Open { name, reason })),
    })
}

/// The blocks of one input.
enum Blocks {
    Open(LineReader),
    Failed(Option<InputError>),
}

impl Iterator for Blocks {
    type Item = Result<Block, InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Open(lines) => lines.next().transpose(),
            Self::Failed(error) => error.take().map(Err),
        }
    }
}

/// An input that can be read, whatever it is and however it is compressed.
pub(crate) struct ByteSource {
    reader: Box<dyn Read + Send>,
    /// Whether what comes in is to go on at once, as somebody may be typing it.
    is_live: bool,
    consumed: Arc<AtomicU64>,
}

/// Counts what is read.
struct Counted<R> {
    reader: R,
    consumed: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.consumed.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Opens a file, or standard input for `-`. What is compressed with gzip or Zstandard is
/// decompressed.
pub(crate) fn open(name: &Path) -> io::Result<ByteSource> {
    let is_live = name.as_os_str() == STANDARD_INPUT;
    let reader: Box<dyn Read + Send> =
        if is_live { Box::new(io::stdin()) } else { Box::new(File::open(name)?) };
    let consumed = Arc::<AtomicU64>::default();
    let counted = Counted { reader, consumed: Arc::clone(&consumed) };
    let mut plain = BufReader::with_capacity(1 << 17, counted);
    // The first bytes tell (RFC 1952, RFC 8878): a text of URLs or JSON begins with neither.
    let reader: Box<dyn Read + Send> = match plain.fill_buf()? {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(plain)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::Decoder::with_buffer(plain)?),
        _ => Box::new(plain),
    };
    Ok(ByteSource { reader, is_live, consumed })
}

/// Cuts an input into blocks of whole lines.
struct LineReader {
    name: Arc<Path>,
    source: ByteSource,
    /// What is read goes here. Longer than `filled`, so that it is not zeroed for each read.
    buffer: Vec<u8>,
    /// How much of `buffer` was read and not handed on yet: a line whose end was not read.
    filled: usize,
    /// The number of that line.
    line: u64,
    /// How the input ended, if it has: told once the lines before are handed on.
    end: Option<io::Result<()>>,
}

impl LineReader {
    fn new(name: PathBuf, source: ByteSource) -> Self {
        Self { name: name.into(), source, buffer: Vec::new(), filled: 0, line: 1, end: None }
    }

    fn next(&mut self) -> Result<Option<Block>, InputError> {
        let lines = self.fill()?;
        if lines == 0 {
            return match self.end.replace(Ok(())) {
                Some(Err(reason)) => {
                    let name = self.name.to_path_buf();
                    Err(InputError::Read { name, line: self.line - 1, reason })
                }
                _ => Ok(None),
            };
        }
        let mut bytes = Vec::with_capacity(lines + 1);
        bytes.extend_from_slice(&self.buffer[..lines]);
        if bytes.last() != Some(&b'\n') {
            bytes.push(b'\n');
        }
        self.buffer.copy_within(lines..self.filled, 0);
        self.filled -= lines;
        if self.filled < BLOCK && self.buffer.len() > BLOCK {
            // The room that a long line took.
            self.buffer.truncate(BLOCK);
            self.buffer.shrink_to_fit();
        }
        let lines = Items::from_lines(bytes);
        let first = self.line;
        self.line += lines.len() as u64;
        let consumed = self.source.consumed();
        Ok(Some(Block { lines, name: Arc::clone(&self.name), first, consumed }))
    }

    /// Reads until the buffer holds a block of whole lines, or all whole lines that will come; how
    /// many bytes they have.
    fn fill(&mut self) -> Result<usize, InputError> {
        let mut lines = 0;
        while self.end.is_none() && (lines == 0 || (self.filled < BLOCK && !self.source.is_live)) {
            let begun = self.filled;
            if begun > LINE_MAX {
                let name = self.name.to_path_buf();
                return Err(InputError::Endless { name, line: self.line });
            }
            let room = if begun < BLOCK { BLOCK } else { 2 * begun };
            self.buffer.resize(self.buffer.len().max(room), 0);
            match self.source.read(&mut self.buffer[begun..room]) {
                Ok(0) => self.end = Some(Ok(())),
                Ok(read) => self.filled += read,
                Err(error) => self.end = Some(Err(error)),
            }
            let read = &self.buffer[begun..self.filled];
            lines = memchr::memrchr(b'\n', read).map_or(lines, |at| begun + at + 1);
        }
        // A last line needs no line feed, but one that was cut off by an error is none.
        Ok(if matches!(self.end, Some(Ok(()))) { self.filled } else { lines })
    }
}

impl ByteSource {
    /// Whether what comes in is to go on at once.
    pub(crate) fn is_live(&self) -> bool {
        self.is_live
    }

    /// How many bytes were read so far, compressed as they are.
    pub(crate) fn consumed(&self) -> u64 {
        self.consumed.load(Ordering::Relaxed)
    }

    /// Reads past so many bytes, or to the end.
    pub(crate) fn skip(&mut self, bytes: u64) -> io::Result<()> {
        io::copy(&mut self.reader.by_ref().take(bytes), &mut io::sink()).map(drop)
    }

    /// Reads what is there; 0 at the end. An interrupted call is made again.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.reader.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lines");
        std::fs::write(&file, bytes).unwrap();
        let mut all = Vec::new();
        for block in blocks(vec![file]) {
            let block = block.unwrap();
            for (index, line) in block.lines.iter().enumerate() {
                let place = block.place(index).to_string();
                all.push((place.rsplit(", ").next().unwrap().to_owned(), line.to_vec()));
            }
        }
        all
    }

    #[test]
    fn lines_are_numbered_and_the_last_needs_no_end() {
        let expected: Vec<_> =
            [("line 1", "a"), ("line 2", ""), ("line 3", "b\r"), ("line 4", "c")]
                .map(|(place, line)| (place.to_owned(), line.as_bytes().to_vec()))
                .into();
        assert_eq!(read(b"a\n\nb\r\nc"), expected);
        assert_eq!(read(b"a\n\nb\r\nc\n"), expected);
        assert!(read(b"").is_empty());
    }

    #[test]
    fn lines_of_all_lengths_cross_the_borders_of_blocks_whole() {
        let mut text = Vec::new();
        let lengths = [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 0, 7, BLOCK / 3, BLOCK / 3, 5];
        for (&length, byte) in lengths.iter().cycle().take(40).zip((b'a'..=b'z').cycle()) {
            text.extend(std::iter::repeat_n(byte, length));
            text.push(b'\n');
        }
        let lines: Vec<_> =
            text.strip_suffix(b"\n").unwrap().split(|&byte| byte == b'\n').collect();
        let gz = || {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(&text).unwrap();
            encoder.finish().unwrap()
        };
        // Two members one after the other are one file (RFC 1952, 2.2).
        let twice = [gz(), gz()].concat();
        let zst = zstd::encode_all(&text[..], 1).unwrap();
        for (file, times) in [(text.clone(), 1), (gz(), 1), (twice, 2), (zst, 1)] {
            let read = read(&file);
            assert_eq!(read.len(), times * lines.len());
            for ((_, line), expected) in read.iter().zip(lines.iter().cycle()) {
                assert!(line == expected);
            }
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let missing = blocks(vec!["no/such/file".into()]).next().unwrap().unwrap_err();
        assert!(missing.to_string().starts_with("cannot open no/such/file: "), "{missing}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cut.gz");
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(b"a\nb\n").unwrap();
        let whole = encoder.finish().unwrap();
        std::fs::write(&file, &whole[..whole.len() - 4]).unwrap();
        let error = blocks(vec![file]).find_map(Result::err).unwrap().to_string();
        assert!(error.starts_with("cannot read ") && error.contains("cut.gz"), "{error}");
    }
}
