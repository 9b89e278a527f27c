//! A file of the log: a header, then records without anything between them.
//!
//! ```text
//! at  bytes
//!  0      8  "urlseenL"
//!  8      4  format, 3
//! 12      8  id of the filter
//! 20     24  what the first record follows: number, seq, commit_id
//! 44      4  CRC-32C of bytes 0 to 43
//! 48         records
//! ```
//!
//! It is called `log-` and the number of its first record in 20 digits, so that names sort as the
//! records do. The file that goes on behind record N is the one called `log-<N + 1>`, if its header
//! says so too; whatever else lies there is what an interrupted cut left behind.

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

/// The name of the file whose first record follows number `follows`.
pub(super) fn name(follows: u64) -> String {
    format!("{PREFIX}{:020}", follows.wrapping_add(1))
}

/// The number that the first record of the file called `name` follows, if it is one of the log.
pub(super) fn follows(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?;
    let first: u64 = digits.parse().ok()?;
    let follows = first.checked_sub(1)?;
    (self::name(follows) == name).then_some(follows)
}

/// The header of a file.
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
    /// What its first record follows.
    follows: Position,
    /// Where the next record begins.
    offset: u64,
    /// What the next record follows.
    position: Position,
    /// Bytes of the file from `buffered` on.
    buffer: Vec<u8>,
    buffered: u64,
}

/// A record of a file.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) head: RecordHead,
    /// Where it begins in its file.
    pub(super) offset: u64,
    body: &'a [u8],
}

/// Why no record could be read.
#[derive(Debug)]
pub(super) enum Stop {
    /// The file ends, behind a whole record.
    End,
    /// It goes on with something that is no record.
    Damaged(Damage),
    /// It goes on with a record of a later version.
    UnknownKind(u8),
    /// The disk failed.
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Entry<'_> {
    /// Its fingerprints.
    pub(super) fn fingerprints(&self) -> Vec<Fingerprint> {
        // No more than there are bytes, as reading it has shown.
        let mut all = Vec::with_capacity(self.head.count as usize);
        record::decode(self.body, self.head.count, |fingerprint| all.push(fingerprint))
            .expect("was looked through when it was read");
        all
    }
}

impl Segment {
    /// Opens the file called `name`. `Err` inside: its header is not one of this filter.
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

    /// What its first record follows.
    pub(super) fn follows(&self) -> Position {
        self.follows
    }

    /// Where the records that were read end.
    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// Where in the file they end.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes of the file.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The next record, checked and in its place.
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

    /// Passes over the next record without reading its fingerprints.
    pub(super) fn skip(&mut self) -> Result<(), Stop> {
        let head = self.next_head()?;
        self.offset += HEAD as u64 + u64::from(head.length);
        self.position = head.position;
        Ok(())
    }

    /// Goes to the record that comes directly behind `before`, wherever it is: what lies between
    /// need not be whole. Whether it is there. Its number is looked for; that other bytes are taken
    /// for its head would take its predecessor's id and a CRC in them.
    pub(super) fn seek(&mut self, before: Position) -> io::Result<bool> {
        let number = before.number.wrapping_add(1).to_le_bytes();
        let finder = memmem::Finder::new(&number);
        let mut start = self.offset;
        while self.len - start >= HEAD as u64 {
            let left = usize::try_from(self.len - start).unwrap_or(usize::MAX);
            let bytes = self.fill(start, left.min(READ))?;
            let (from, window) = (bytes.start, &self.buffer[bytes]);
            for at in finder.find_iter(window) {
                // The kind stands before the number.
                let Some(at) = at.checked_sub(1) else { continue };
                let Some(head) = window[at..].first_chunk() else { break };
                if RecordHead::decode(head).is_ok_and(|head| head.follows(before)) {
                    self.offset = self.buffered + (from + at) as u64;
                    self.position = before;
                    return Ok(true);
                }
            }
            // The next bytes begin with those that no whole head could begin in.
            start += (left.min(READ) - (HEAD - 1)) as u64;
        }
        Ok(false)
    }

    /// The head of the next record, which is there up to its end.
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

    /// Has bytes of the file in the buffer, and says where. They are in the file.
    fn fill(&mut self, start: u64, length: usize) -> io::Result<Range<usize>> {
        // None where the buffer ends before `start`, or does not begin before it.
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
