//! File of the log: a header, and then records without gaps.
//!
//! ```text
//! at  bytes
//!  0      8  "urlseenL"
//!  8      4  format of the folder, 7
//! 12      8  id of the filter
//! 20     24  position that the first record follows: number, seq, commit_id
//! 44      8  number of the first record of the file before; 0 if the filter was empty; the number
//!            of the first record of this file if no file has what the filter had
//! 52      4  CRC-32C of bytes 0 to 51
//! 56         records
//! ```
//!
//! Its name is `log-` and the number of its first record in 20 digits, so that names sort as the
//! records do. In the [archive](super::prune), `archive-` stands before the digits. After record N,
//! the log continues in the file `log-<N + 1>`, if the header of that file has the position of
//! record N. Any other file is a leftover of an interrupted cut.

use std::io;
use std::ops::Range;

use urlseen_filter::Generation;
use urlseen_filter::LetThrough;
use urlseen_fingerprint::Fingerprint;

use super::disk::{DiskFile, read_exact_at};
use super::encoding::{FORMAT, Fields, POSITION, checked, push_crc, push_position};
use super::error::{Damage, ReadError};
use super::header::Begun;
use super::record::{self, Change, HEAD, RecordBody, RecordContent, RecordHead};
use crate::head::Position;

const MAGIC: &[u8; 8] = b"urlseenL";
const LOG: &str = "log-";
const ARCHIVE: &str = "archive-";

/// Number of bytes before the first record of a file.
const HEADER: usize = 20 + POSITION + 12;

/// Number of bytes to read at a time, unless a record is longer.
const READ: usize = 1 << 20;

/// Number of bytes that a disk writes or loses together, or a divisor of it.
const BLOCK: usize = 64;

/// Returns the name of the file that begins after record `follows`.
pub(super) fn name(follows: u64) -> String {
    format!("{LOG}{:020}", follows + 1)
}

/// Returns the name of this file in the archive.
pub(super) fn archived_name(follows: u64) -> String {
    format!("{ARCHIVE}{:020}", follows + 1)
}

/// Returns the number of the last record before the file called `name`. Returns `None` if no file
/// of the log can have this name.
pub(super) fn follows(name: &str) -> Option<u64> {
    number(LOG, name)
}

/// Returns the number of the last record before a file of the archive, likewise.
pub(super) fn archived(name: &str) -> Option<u64> {
    number(ARCHIVE, name)
}

fn number(prefix: &str, name: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?;
    let follows = digits.parse::<u64>().ok()?.checked_sub(1)?;
    (digits == format!("{:020}", follows + 1)).then_some(follows)
}

/// Makes the header of a file. `before` is the number of the first record of the file before.
pub(super) fn header(filter: u64, follows: Position, before: u64) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(FORMAT.to_le_bytes());
    bytes.extend(filter.to_le_bytes());
    push_position(&mut bytes, follows);
    bytes.extend(before.to_le_bytes());
    push_crc(&mut bytes, 0);
    bytes
}

/// Opens these files one by one, and gives them to `read`. Returns the damage of those that cannot
/// be read. Passes over files that were pruned meanwhile.
pub(super) fn each(
    begun: &Begun,
    names: impl IntoIterator<Item = String>,
    mut read: impl FnMut(Segment) -> Result<(), ReadError>,
) -> io::Result<Vec<Damage>> {
    let mut damages = Vec::new();
    for name in names {
        match Segment::open(begun, &name).and_then(&mut read).map_err(ReadError::damage) {
            Ok(()) => {}
            Err(Err(error)) if error.kind() == io::ErrorKind::NotFound => {}
            Err(damage) => damages.push(damage?),
        }
    }
    Ok(damages)
}

/// A file of the log, read from front to back.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) name: String,
    file: Box<dyn DiskFile>,
    pub(super) len: u64,
    /// Position of the last record before the file.
    pub(super) follows: Position,
    /// Number of the first record of the file before; 0 if the filter was empty.
    pub(super) before: u64,
    /// Offset of the next record.
    pub(super) offset: u64,
    /// Position of the last record that was read.
    pub(super) position: Position,
    /// Bytes of the file, from `buffered` on.
    buffer: Vec<u8>,
    buffered: u64,
}

/// A record in a file of the log.
#[derive(Debug)]
pub(super) struct LogEntry {
    pub(super) head: RecordHead,
    /// Offset of the record in its file.
    pub(super) offset: u64,
    pub(super) body: RecordBody,
}

impl LogEntry {
    /// Returns when and for how long the record let the fingerprint at `place` through.
    pub(super) fn let_through(&self, place: usize) -> LetThrough {
        let lifetime = self.body.lifetimes.of(place);
        LetThrough { generation: self.head.generation, lifetime }
    }

    /// Returns the content for a record that replaces this one. `synced` is the number of a record
    /// that is on the disk.
    pub(super) fn content(&self, synced: u64) -> RecordContent<'_> {
        let RecordBody { fingerprints, lifetimes, counted } = &self.body;
        let generation = self.head.generation;
        RecordContent { synced, fingerprints, generation, lifetimes, counted }
    }

    /// Returns the fingerprints of the record. Each has the change that the record makes to it, and
    /// the generation under which the filter stores it.
    pub(super) fn changes(self) -> impl Iterator<Item = (Change, Generation, Fingerprint)> {
        let (change, RecordBody { fingerprints, lifetimes, .. }) =
            (self.head.kind.change(), self.body);
        let stored_in = move |index| lifetimes.of(index).stored_in(self.head.generation);
        let all = fingerprints.into_iter().enumerate();
        all.filter_map(move |(index, it)| Some((change?, stored_in(index), it)))
    }
}

impl Segment {
    /// Opens the file called `name`. Its header must have the id of the folder's filter.
    pub(super) fn open(begun: &Begun, name: &str) -> Result<Self, ReadError> {
        let mut segment = Self::unchecked(begun, name, HEADER as u64)?;
        let damage = |what| Damage::new(name, 0, what);
        let mut header = [0; HEADER];
        if segment.len < header.len() as u64 {
            return Err(damage("the header was never written to its end").into());
        }
        read_exact_at(&*segment.file, &mut header, 0)?;
        let damaged = || damage("the header is damaged");
        let mut fields = Fields(checked(&header).ok_or_else(damaged)?);
        if (fields.array(), fields.u32()) != (*MAGIC, FORMAT) {
            return Err(damage("the file is not part of a log").into());
        }
        if fields.u64() != begun.header.filter.get() {
            return Err(damage("the file belongs to another filter").into());
        }
        let position = fields.position().ok_or_else(damaged)?;
        if follows(name).or_else(|| archived(name)) != Some(position.number) {
            return Err(damage("the file was renamed").into());
        }
        (segment.follows, segment.position, segment.before) = (position, position, fields.u64());
        Ok(segment)
    }

    /// Reads the next record and checks its CRC, its position and its fingerprints. Returns `None`
    /// at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<LogEntry>, ReadError> {
        let Some(head) = self.next_head()? else { return Ok(None) };
        let start = self.offset + HEAD as u64;
        let body = self.fill(start, head.length as usize)?;
        if !head.matches(&self.buffer[body.clone()]) {
            return Err(self.damaged("the record is damaged"));
        }
        let Some(body) = record::decode(&head, &self.buffer[body]) else {
            return Err(self.damaged("the record's fingerprints cannot be read"));
        };
        let offset = self.offset;
        self.offset = start + u64::from(head.length);
        self.position = head.position;
        Ok(Some(LogEntry { head, offset, body }))
    }

    /// Calls `visit` with the next records, up to the end of the file or the record `until`.
    pub(super) fn each(
        &mut self,
        until: u64,
        mut visit: impl FnMut(LogEntry),
    ) -> Result<(), ReadError> {
        while self.position.number < until
            && let Some(entry) = self.next()?
        {
            visit(entry);
        }
        Ok(())
    }

    /// Searches the rest of the file for the record that directly follows `before`, and skips
    /// damaged bytes. Returns true if the file has the record.
    pub(super) fn seek(&mut self, before: Position) -> io::Result<bool> {
        self.position = before;
        self.heads(before.number + 1, |head| head.follows(before))
    }

    /// Opens the file called `name`, whose header may be damaged, at `offset`. Only
    /// [`Segment::heads`] can read it.
    pub(super) fn unchecked(begun: &Begun, name: &str, offset: u64) -> io::Result<Self> {
        let file = begun.dir.open(name)?;
        let (len, follows, position) = (file.len()?, Position::START, Position::START);
        let (name, offset, buffer) = (name.to_owned(), offset.min(len), Vec::new());
        Ok(Self { name, file, len, follows, before: 0, offset, position, buffer, buffered: 0 })
    }

    /// Calls `visit` with the head of each record in the rest of the file whose number is at least
    /// `first`, until `visit` returns true. Skips all other bytes, and does not check the
    /// fingerprints. Returns true if the file has a record for which `visit` returned true; it is
    /// the next one.
    pub(super) fn heads(
        &mut self,
        first: u64,
        mut visit: impl FnMut(&RecordHead) -> bool,
    ) -> io::Result<bool> {
        while self.len.saturating_sub(self.offset) >= HEAD as u64 {
            let left = usize::try_from(self.len - self.offset).unwrap_or(usize::MAX);
            let bytes = self.fill(self.offset, left.min(READ))?;
            let window = &self.buffer[bytes];
            let mut at = 0;
            while let Some(bytes) = window.get(at..).and_then(<[u8]>::first_chunk) {
                let head = RecordHead::decode(bytes).ok();
                let head = head.filter(|head| head.position.number >= first);
                if head.as_ref().is_some_and(&mut visit) {
                    self.offset += at as u64;
                    return Ok(true);
                }
                at += head.map_or(1, |head| HEAD + head.length as usize);
            }
            self.offset += at as u64;
        }
        Ok(false)
    }

    /// Returns true if the next record, which cannot be read, may never have been written to its
    /// end: the file ends before the record does, or a block of it has only zeros. A file system
    /// can leave such a block after a loss of power.
    pub(super) fn is_unfinished(&mut self) -> io::Result<bool> {
        let left = self.len - self.offset;
        if left < HEAD as u64 {
            return Ok(true);
        }
        let bytes = self.fill(self.offset, HEAD)?;
        let head = self.buffer[bytes].first_chunk().expect("as many as a head has");
        let length = RecordHead::decode(head).map_or(0, |head| u64::from(head.length));
        let record = HEAD as u64 + length;
        if left < record {
            return Ok(true);
        }
        // A loss begins at a block, or at a record that was written later than those before it.
        let end = (self.offset + record).next_multiple_of(BLOCK as u64).min(self.len);
        let length = usize::try_from(end - self.offset).unwrap_or(usize::MAX);
        let bytes = self.fill(self.offset, length)?;
        let bytes = &self.buffer[bytes];
        let skipped = usize::try_from(self.offset % BLOCK as u64).expect("less than a block");
        let (first, blocks) = bytes.split_at(length.min((BLOCK - skipped) % BLOCK));
        let parts = [first].into_iter().filter(|first| !first.is_empty());
        Ok(parts.chain(blocks.chunks(BLOCK)).any(|part| part.iter().all(|&byte| byte == 0)))
    }

    /// Reads the head of the next record, and checks that the file has the whole record.
    fn next_head(&mut self) -> Result<Option<RecordHead>, ReadError> {
        let left = self.len - self.offset;
        if left == 0 {
            return Ok(None);
        }
        if left < HEAD as u64 {
            return Err(self.damaged("a record was never written to its end"));
        }
        let bytes = self.fill(self.offset, HEAD)?;
        let bytes = self.buffer[bytes].first_chunk().expect("as many as a head has");
        let head = RecordHead::decode(bytes).map_err(|what| self.damaged(what))?;
        if !head.follows(self.position) {
            return Err(self.damaged("the record does not follow the one before"));
        }
        if left - (HEAD as u64) < u64::from(head.length) {
            return Err(self.damaged("a record was never written to its end"));
        }
        Ok(Some(head))
    }

    fn damaged(&self, what: &'static str) -> ReadError {
        Damage::new(&self.name, self.offset, what).into()
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
