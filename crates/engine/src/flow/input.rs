//! Files and standard input, plain or compressed, and a feed of their lines.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;

use super::feed::{Feed, FeedError, InputName, Page, STANDARD_INPUT};
use super::records::{Lines, RecordCutter, Records, Sitemap, Table};

/// Initial size of an input's buffer in bytes. A longer line makes the buffer grow. A page of this
/// size, with the findings of its lines, fits into a processor's second cache.
pub(super) const BLOCK: usize = 1 << 18;

/// Maximum length of a line in bytes: the maximum size of an item in Redis.
pub(super) const LINE_MAX: usize = 512 << 20;

/// First bytes of formats that have no lines, and what to do with such a file.
const NO_LINES: [(&[u8], &str); 9] = [
    (
        b"PK\x03\x04",
        "it is a zip archive or a workbook; unpack it, as with `unzip -p`, or save it as CSV",
    ),
    (b"7z\xbc\xaf\x27\x1c", "it is a 7z archive; unpack it, as with `7z x -so`"),
    (b"\xff\xfe", "it is UTF-16; convert it, as with `iconv -f UTF-16 -t UTF-8`"),
    (b"\xfe\xff", "it is UTF-16; convert it, as with `iconv -f UTF-16 -t UTF-8`"),
    (b"%PDF-", "it is a PDF; take its text, as with `pdftotext FILE -`"),
    (b"SQLite format 3\0", "it is a database; export a table, as with `sqlite3 -csv`"),
    (b"\x89PNG", "it is an image, which has no lines"),
    (b"\xff\xd8\xff", "it is an image, which has no lines"),
    (b"GIF8", "it is an image, which has no lines"),
];

/// Cuts an input into pages.
pub(super) trait Cutter: Send + 'static {
    /// Returns the next page, or `None` at the end of the input.
    fn next(&mut self, input: &mut Input) -> Result<Option<Page>, FeedError>;
}

/// Returns a feed of the lines of all `files`, in order. Reads standard input if `files` is empty,
/// and in place of a file named `-`. Input that is compressed with gzip, Zstandard, xz or
/// bzip2 is decompressed. The last line of a file needs no line feed.
pub fn lines(files: Vec<PathBuf>) -> Feed {
    records(files, Records::Lines)
}

/// Returns a feed of the records of all `files`, as [`lines`] does.
pub fn records(files: Vec<PathBuf>, records: Records) -> Feed {
    let name = |file: &Path| -> Arc<str> { InputName(file).to_string().into() };
    match records {
        Records::Table { column, delimiter } => feed(files, move |file| {
            RecordCutter::new(name(file), Table::new(column.clone(), delimiter))
        }),
        Records::Sitemap => {
            feed(files, move |file| RecordCutter::new(name(file), Sitemap::default()))
        }
        records => {
            feed(files, move |file| RecordCutter::new(name(file), Lines::new(records.clone())))
        }
    }
}

/// Returns a feed of the pages of all `files`, in order. Each file is opened after the previous one
/// was read to its end.
pub(super) fn feed<C: Cutter>(
    files: Vec<PathBuf>,
    cutter: impl Fn(&Path) -> C + Send + 'static,
) -> Feed {
    let files = if files.is_empty() { vec![PathBuf::from(STANDARD_INPUT)] } else { files };
    let size = |name: &PathBuf| {
        let file = fs::metadata(name).ok().filter(fs::Metadata::is_file)?;
        Some(file.len())
    };
    // Only regular files have a known length.
    let expected = files.iter().map(size).sum::<Option<u64>>().unwrap_or(0);
    let (mut files, mut current, mut before) = (files.into_iter(), None::<(Input, C)>, 0);
    let mut next = move || loop {
        let (input, cutter) = match &mut current {
            Some(open) => open,
            None => match files.next() {
                Some(file) => {
                    let cutter = cutter(&file);
                    current.insert((Input::open(file)?, cutter))
                }
                None => return Ok(None),
            },
        };
        let page = cutter.next(input)?;
        let read = before + input.consumed.load(Ordering::Relaxed);
        if let Some(page) = page {
            return Ok(Some(Page { read, ..page }));
        }
        (before, current) = (read, None);
    };
    Feed { expected, pages: Box::new(std::iter::from_fn(move || next().transpose())) }
}

/// An input, plain or compressed, with a buffer of the bytes that no page has yet.
pub(super) struct Input {
    file: PathBuf,
    reader: Box<dyn Read + Send>,
    /// True for standard input. Its bytes are passed on without delay, because a person may be
    /// typing.
    is_live: bool,
    /// Bytes read so far from the file, before decompression.
    consumed: Arc<AtomicU64>,
    /// Buffer for the bytes that are read. The buffer is longer than `filled`, so that a read need
    /// not fill it with zeros first.
    buffer: Vec<u8>,
    filled: usize,
    /// Offset of the start of the buffer in the decompressed input.
    pub(super) offset: u64,
    /// Result at the end of the input, or the error of a failed read; `None` while there is more to
    /// read. The error is reported after all earlier bytes are cut.
    end: Option<io::Result<()>>,
}

/// Reader that counts the bytes it reads.
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

impl Input {
    fn open(file: PathBuf) -> Result<Self, FeedError> {
        let is_live = file.as_os_str() == STANDARD_INPUT;
        let consumed = Arc::<AtomicU64>::default();
        let open = || -> io::Result<Box<dyn Read + Send>> {
            let reader: Box<dyn Read + Send> =
                if is_live { Box::new(io::stdin()) } else { Box::new(File::open(&file)?) };
            let counted = Counted { reader, consumed: Arc::clone(&consumed) };
            let mut plain = BufReader::with_capacity(1 << 17, counted);
            // The first bytes identify the format. A text of URLs or JSON begins with none of these
            // sequences.
            let first = plain.fill_buf()?;
            if let Some((_, what)) = NO_LINES.iter().find(|(start, _)| first.starts_with(start)) {
                return Err(io::Error::other(*what));
            }
            Ok(match first {
                [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(plain)),
                [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::Decoder::with_buffer(plain)?),
                [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Box::new(XzReader::new(plain, true)),
                [b'B', b'Z', b'h', b'1'..=b'9', ..] => Box::new(MultiBzDecoder::new(plain)),
                _ => Box::new(plain),
            })
        };
        match open() {
            Ok(reader) => {
                let (buffer, filled, offset, end) = (vec![0; BLOCK], 0, 0, None);
                Ok(Self { file, reader, is_live, consumed, buffer, filled, offset, end })
            }
            Err(reason) => {
                Err(FeedError::Input(format!("cannot open {}: {reason}", InputName(&file))))
            }
        }
    }

    /// Returns the bytes that were read and that no page has yet.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    /// Returns true if [`Input::bytes`] is the last part of the input. Returns false before the end
    /// of the input, and after a failed read.
    pub(super) fn is_end(&self) -> bool {
        matches!(self.end, Some(Ok(())))
    }

    /// Returns true if no more bytes will be read: the input has ended, or a read has failed.
    pub(super) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Fills the buffer, or returns after one read if the input is live. Repeats an interrupted
    /// read.
    pub(super) fn fill(&mut self) {
        while self.end.is_none() && self.filled < self.buffer.len() {
            match self.reader.read(&mut self.buffer[self.filled..]) {
                Ok(0) => self.end = Some(Ok(())),
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => self.end = Some(Err(error)),
            }
            if self.is_live {
                return;
            }
        }
    }

    /// Drops this number of bytes from the front of the buffer.
    pub(super) fn drop_front(&mut self, bytes: usize) {
        self.buffer.copy_within(bytes..self.filled, 0);
        self.filled -= bytes;
        self.offset += bytes as u64;
        if self.filled < BLOCK && self.buffer.len() > BLOCK {
            // Frees the memory that a long line needed.
            self.buffer.truncate(BLOCK);
            self.buffer.shrink_to_fit();
        }
    }

    /// Skips all bytes before the offset `at`.
    pub(super) fn skip_to(&mut self, at: u64) -> Result<(), FeedError> {
        let held = usize::try_from(at).unwrap_or(usize::MAX).min(self.filled);
        self.drop_front(held);
        let rest = at - self.offset;
        io::copy(&mut self.reader.by_ref().take(rest), &mut io::sink())
            .map_err(|reason| self.broken(&self.place(), &reason))?;
        self.offset = at;
        Ok(())
    }

    /// Doubles the buffer if it is full.
    pub(super) fn grow(&mut self) {
        if self.filled == self.buffer.len() {
            self.buffer.resize(2 * self.filled, 0);
        }
    }

    /// Drops the bytes in the buffer and reads no more of the input.
    pub(super) fn close(&mut self) {
        (self.filled, self.end) = (0, Some(Ok(())));
    }

    /// Ends the input. If a read has failed, the first call returns that error. `place` names the
    /// last place before the failure.
    pub(super) fn finish(&mut self, place: impl FnOnce(&Self) -> String) -> Result<(), FeedError> {
        match self.end.replace(Ok(())) {
            Some(Err(reason)) => Err(self.broken(&place(self), &reason)),
            _ => Ok(()),
        }
    }

    /// Returns the offset of the first byte that was not read yet, for messages.
    pub(super) fn place(&self) -> String {
        format!("byte {}", self.offset + self.filled as u64)
    }

    fn broken(&self, place: &str, reason: &io::Error) -> FeedError {
        let name = InputName(&self.file);
        FeedError::Input(format!("cannot read {name} after {place}: {reason}"))
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
    fn lines_are_numbered_and_the_last_needs_no_line_feed() {
        let expected: Vec<_> =
            [("line 1", "a"), ("line 2", ""), ("line 3", "b\r"), ("line 4", "c")]
                .map(|(place, line)| (place.to_owned(), line.as_bytes().to_vec()))
                .into();
        assert_eq!(read(b"a\n\nb\r\nc"), expected);
        assert_eq!(read(b"a\n\nb\r\nc\n"), expected);
        assert!(read(b"").is_empty());
    }

    #[test]
    fn lines_of_all_lengths_stay_whole_across_buffers() {
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
        // Two gzip members in a row are one file (RFC 1952, 2.2).
        let twice = [gz(), gz()].concat();
        let zst = zstd::encode_all(&text[..], 1).unwrap();
        let mut bz2 = Vec::new();
        bzip2::read::BzEncoder::new(&text[..], bzip2::Compression::fast())
            .read_to_end(&mut bz2)
            .unwrap();
        let bz2 = bz2.repeat(2);
        for (file, times) in [(text.clone(), 1), (gz(), 1), (twice, 2), (zst, 1), (bz2, 2)] {
            let read = read(&file);
            assert_eq!(read.len(), times * lines.len());
            for ((_, line), expected) in read.iter().zip(lines.iter().cycle()) {
                assert!(line == expected);
            }
        }
    }

    #[test]
    fn errors_name_the_input_that_cannot_be_read() {
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
