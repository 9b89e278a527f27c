//! Files and standard input, plain or compressed; and their lines as a feed.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use super::feed::{Feed, FeedError, InputName, Page, Place, STANDARD_INPUT};
use crate::item::Items;

/// Bytes that are handed on together, if that many are there.
pub(super) const BLOCK: usize = 1 << 19;

/// The longest line that is read, in bytes: as much as Redis takes as one item.
const LINE_MAX: usize = 512 << 20;

/// An input that is read page by page.
pub(super) trait FileReader: Send + 'static {
    /// Returns what comes next; `None` at the end.
    fn next(&mut self) -> Result<Option<Page>, FeedError>;

    /// Bytes that were read so far, compressed as they are.
    fn consumed(&self) -> u64;
}

/// Returns the lines of `files` one after the other; of standard input where there are none or
/// where one is `-`. What is compressed with gzip or Zstandard is decompressed. A last line
/// without a line feed is a line like any other.
pub fn lines(files: Vec<PathBuf>) -> Feed {
    feed(files, |name| Ok(LineReader::new(&name, open(&name)?)))
}

/// Returns the pages of `files` one after the other, each opened once the one before is read.
pub(super) fn feed<R: FileReader>(
    files: Vec<PathBuf>,
    open: impl Fn(PathBuf) -> Result<R, FeedError> + Send + 'static,
) -> Feed {
    let files = if files.is_empty() { vec![PathBuf::from(STANDARD_INPUT)] } else { files };
    let size = |name: &PathBuf| {
        let file = fs::metadata(name).ok().filter(fs::Metadata::is_file)?;
        Some(file.len())
    };
    // The length of anything but a file is unknown.
    let expected = files.iter().map(size).sum::<Option<u64>>().unwrap_or(0);
    let (mut files, mut current, mut before) = (files.into_iter(), None::<R>, 0);
    let mut next = move || loop {
        let input = match &mut current {
            Some(input) => input,
            None => match files.next() {
                Some(name) => current.insert(open(name)?),
                None => return Ok(None),
            },
        };
        if let Some(page) = input.next()? {
            return Ok(Some(Page { read: before + page.read, ..page }));
        }
        before += input.consumed();
        current = None;
    };
    Feed { expected, pages: Box::new(std::iter::from_fn(move || next().transpose())) }
}

/// An input that can be read, whatever it is and however it is compressed.
pub(super) struct ByteSource {
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
pub(super) fn open(name: &Path) -> Result<ByteSource, FeedError> {
    let failed = |reason| FeedError::Open { name: name.to_owned(), reason };
    open_source(name).map_err(failed)
}

fn open_source(name: &Path) -> io::Result<ByteSource> {
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

/// Cuts an input into pages of whole lines.
struct LineReader {
    file: PathBuf,
    name: Arc<str>,
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

impl FileReader for LineReader {
    fn next(&mut self) -> Result<Option<Page>, FeedError> {
        let lines = self.fill()?;
        if lines == 0 {
            return match self.end.replace(Ok(())) {
                Some(Err(reason)) => {
                    let (name, place) = (self.file.clone(), format!("line {}", self.line - 1));
                    Err(FeedError::Read { name, place, reason })
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
        let items = Items::from_lines(bytes);
        let place = Place { name: Arc::clone(&self.name), unit: "line", number: self.line };
        self.line += items.len() as u64;
        Ok(Some(Page { items, place, read: self.consumed(), ..Page::default() }))
    }

    fn consumed(&self) -> u64 {
        self.source.consumed()
    }
}

impl LineReader {
    fn new(file: &Path, source: ByteSource) -> Self {
        let name = InputName(file).to_string().into();
        let file = file.to_owned();
        Self { file, name, source, buffer: Vec::new(), filled: 0, line: 1, end: None }
    }

    /// Reads until the buffer holds a block of whole lines, or all whole lines that will come; how
    /// many bytes they have.
    fn fill(&mut self) -> Result<usize, FeedError> {
        let mut lines = 0;
        while self.end.is_none() && (lines == 0 || (self.filled < BLOCK && !self.source.is_live)) {
            let begun = self.filled;
            if begun > LINE_MAX {
                return Err(FeedError::Endless { name: self.file.clone(), line: self.line });
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
    pub(super) fn is_live(&self) -> bool {
        self.is_live
    }

    /// How many bytes were read so far, compressed as they are.
    pub(super) fn consumed(&self) -> u64 {
        self.consumed.load(Ordering::Relaxed)
    }

    /// Reads past so many bytes, or to the end.
    pub(super) fn skip(&mut self, bytes: u64) -> io::Result<()> {
        io::copy(&mut self.reader.by_ref().take(bytes), &mut io::sink()).map(drop)
    }

    /// Reads what is there; 0 at the end. An interrupted call is made again.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
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
        for page in lines(vec![file]).pages {
            let page = page.unwrap();
            for (index, line) in page.items.iter().enumerate() {
                let place = page.place(index).to_string();
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
        let missing = lines(vec!["no/such/file".into()]).pages.next().unwrap().unwrap_err();
        assert!(missing.to_string().starts_with("cannot open no/such/file: "), "{missing}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cut.gz");
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(b"a\nb\n").unwrap();
        let whole = encoder.finish().unwrap();
        std::fs::write(&file, &whole[..whole.len() - 4]).unwrap();
        let error = lines(vec![file]).pages.find_map(Result::err).unwrap().to_string();
        assert!(error.starts_with("cannot read ") && error.contains("cut.gz"), "{error}");
    }
}
