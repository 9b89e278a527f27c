//! A file of the log: a header, then records without anything between them.
//!
//! ```text
//! at  bytes
//!  0      8  "urlseenL"
//!  8      4  format of the folder, 5
//! 12      8  id of the filter
//! 20     24  position that the first record follows: number, seq, commit_id
//! 44      4  CRC-32C of bytes 0 to 43
//! 48         records
//! ```
//!
//! Its name is `log-` and the number of its first record in 20 digits, so that names sort as the
//! records do. The log continues after record N in the file `log-<N + 1>`, if its header has that
//! number, too. Any other file is a rest of an interrupted cut.

use std::io;
use std::ops::Range;

use memchr::memmem;

use super::damage::Damage;
use super::dir::Dir;
use super::disk::{DiskFile, read_exact_at};
use super::encoding::{Fields, POSITION, checked, push_crc, push_position};
use super::header::FORMAT;
use super::record::{self, HEAD, NoHead, RecordHead};
use crate::fingerprint::Fingerprint;
use crate::storage::head::Position;

/// Bytes of a file before its first record.
pub(super) const SEGMENT_HEADER: usize = 20 + POSITION + 4;

const MAGIC: &[u8; 8] = b"urlseenL";
const PREFIX: &str = "log-";

/// Bytes that are read at once, unless a record is longer.
const READ: usize = 1 << 20;

/// Returns the name of the file whose first record follows number `follows`.
pub(super) fn name(follows: u64) -> String {
    format!("{PREFIX}{:020}", follows.wrapping_add(1))
}

/// Returns the number that the first record of the file `name` follows; `None` for another file's
/// name.
pub(super) fn follows(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?;
    let first: u64 = digits.parse().ok()?;
    let follows = first.checked_sub(1)?;
    (self::name(follows) == name).then_some(follows)
}

/// Builds the header of a file.
pub fn header(filter: u64, follows: Position) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(SEGMENT_HEADER);
    bytes.extend(MAGIC);
    bytes.extend(FORMAT.to_le_bytes());
    bytes.extend(filter.to_le_bytes());
    push_position(&mut bytes, follows);
    push_crc(&mut bytes, 0);
    bytes
}

/// A file of the log, read from front to back.
#[derive(Debug)]
pub(super) struct Segment {
    name: String,
    file: Box<dyn DiskFile>,
    len: u64,
    /// Position that the file's first record follows.
    follows: Position,
    /// Offset of the next record.
    offset: u64,
    /// Position that the next record follows.
    position: Position,
    /// Bytes of the file, from `buffered` on.
    buffer: Vec<u8>,
    buffered: u64,
}

/// A record in a file of the log.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) head: RecordHead,
    /// Offset of the record in its file.
    pub(super) offset: u64,
    body: &'a [u8],
}

/// Reason for which no record was read.
#[derive(Debug)]
pub(super) enum Stop {
    /// The file ends after a whole record.
    End,
    /// The next bytes are not a record.
    Damaged(Damage),
    /// The next record is of a later version.
    UnknownKind(u8),
    /// Error of the file system.
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Entry<'_> {
    /// Reads the fingerprints of the record.
    pub(super) fn fingerprints(&self) -> Vec<Fingerprint> {
        // At most as many as the body has bytes; `next` has checked that.
        let mut all = Vec::with_capacity(self.head.count as usize);
        record::decode(self.body, self.head.count, |fingerprint| all.push(fingerprint))
            .expect("was looked through when it was read");
        all
    }
}

impl Segment {
    /// Opens the file `name`. `Err` inside: its header is not one of this filter.
    pub(super) fn open(dir: &Dir, name: &str, filter: u64) -> io::Result<Result<Self, Damage>> {
        let file = dir.open(name)?;
        let len = file.len()?;
        let damage = |what| Ok(Err(Damage { file: name.to_owned(), offset: 0, what }));
        let mut bytes = [0; SEGMENT_HEADER];
        if len < bytes.len() as u64 {
            return damage("the header was never written to its end");
        }
        read_exact_at(&*file, &mut bytes, 0)?;
        let Some(content) = checked(&bytes) else { return damage("the header is damaged") };
        let mut fields = Fields(content);
        if (fields.array(), fields.u32()) != (*MAGIC, FORMAT) {
            return damage("this is no file of the log");
        }
        if fields.u64() != filter {
            return damage("this belongs to another filter");
        }
        let position = fields.position();
        if follows(name) != Some(position.number) {
            return damage("the file was renamed");
        }
        Ok(Ok(Self {
            name: name.to_owned(),
            file,
            len,
            follows: position,
            offset: SEGMENT_HEADER as u64,
            position,
            buffer: Vec::new(),
            buffered: 0,
        }))
    }

    /// Returns the position that the file's first record follows.
    pub(super) fn follows(&self) -> Position {
        self.follows
    }

    /// Returns the position of the last record that was read.
    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// Returns the offset of the next record.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the bytes of the file.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Reads the next record, and checks it and its place.
    pub(super) fn next(&mut self) -> Result<Entry<'_>, Stop> {
        let head = self.next_head()?;
        let start = self.offset + HEAD as u64;
        let body = self.fill(start, head.length as usize)?;
        if !head.matches(&self.buffer[body.clone()]) {
            return Err(self.damaged("the record is damaged"));
        }
        if record::decode(&self.buffer[body.clone()], head.count, drop).is_none() {
            return Err(self.damaged("the record's fingerprints cannot be read"));
        }
        let offset = self.offset;
        self.offset = start + u64::from(head.length);
        self.position = head.position;
        Ok(Entry { head, offset, body: &self.buffer[body] })
    }

    /// Skips the next record without reading its fingerprints.
    pub(super) fn skip(&mut self) -> Result<(), Stop> {
        let head = self.next_head()?;
        self.offset += HEAD as u64 + u64::from(head.length);
        self.position = head.position;
        Ok(())
    }

    /// Seeks the record that directly follows `before`, anywhere in the rest of the file; the bytes
    /// before it may be damaged. Returns true if it is there. The search is for the record's
    /// number. Other bytes pass for its head only if they also have its predecessor's id and the
    /// right CRC.
    pub(super) fn seek(&mut self, before: Position) -> io::Result<bool> {
        let number = before.number.wrapping_add(1).to_le_bytes();
        let finder = memmem::Finder::new(&number);
        let mut start = self.offset;
        while self.len - start >= HEAD as u64 {
            let left = usize::try_from(self.len - start).unwrap_or(usize::MAX);
            let bytes = self.fill(start, left.min(READ))?;
            let (from, window) = (bytes.start, &self.buffer[bytes]);
            for at in finder.find_iter(window) {
                // The kind comes before the number.
                let Some(at) = at.checked_sub(1) else { continue };
                let Some(head) = window[at..].first_chunk() else { break };
                if RecordHead::decode(head).is_ok_and(|head| head.follows(before)) {
                    self.offset = self.buffered + (from + at) as u64;
                    self.position = before;
                    return Ok(true);
                }
            }
            // The next window repeats the last bytes, in which no whole head could begin.
            start += (left.min(READ) - (HEAD - 1)) as u64;
        }
        Ok(false)
    }

    /// Reads the head of the next record, if the whole record is in the file.
    fn next_head(&mut self) -> Result<RecordHead, Stop> {
        let left = self.len - self.offset;
        if left == 0 {
            return Err(Stop::End);
        }
        if left < HEAD as u64 {
            return Err(self.damaged("a record was never written to its end"));
        }
        let bytes = self.fill(self.offset, HEAD)?;
        let bytes = self.buffer[bytes].first_chunk().expect("as many as a head has");
        let head = RecordHead::decode(bytes).map_err(|error| match error {
            NoHead::Damaged => self.damaged("the record's head is damaged"),
            NoHead::UnknownKind(kind) => Stop::UnknownKind(kind),
        })?;
        if !head.follows(self.position) {
            return Err(self.damaged("the record does not follow the one before"));
        }
        if left - (HEAD as u64) < u64::from(head.length) {
            return Err(self.damaged("a record was never written to its end"));
        }
        Ok(head)
    }

    fn damaged(&self, what: &'static str) -> Stop {
        Stop::Damaged(Damage { file: self.name.clone(), offset: self.offset, what })
    }

    /// Reads bytes of the file into the buffer, and returns their place there. The caller knows
    /// that the file has them.
    fn fill(&mut self, start: u64, length: usize) -> io::Result<Range<usize>> {
        // `None` if `start` is before the buffer.
        let at = start.checked_sub(self.buffered).and_then(|at| usize::try_from(at).ok());
        if let Some(at) = at.filter(|at| at.saturating_add(length) <= self.buffer.len()) {
            return Ok(at..at + length);
        }
        let left = usize::try_from(self.len - start).unwrap_or(usize::MAX);
        self.buffer.resize(length.max(READ).min(left), 0);
        self.buffered = start;
        read_exact_at(&*self.file, &mut self.buffer, start)?;
        Ok(0..length)
    }
}
