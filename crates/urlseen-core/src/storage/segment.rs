//! File of the log: a header, and then records without gaps.
//!
//! ```text
//! at  bytes
//!  0      8  "urlseenL"
//!  8      4  format of the folder, 6
//! 12      8  id of the filter
//! 20     24  position that the first record follows: number, seq, commit_id
//! 44      4  CRC-32C of bytes 0 to 43
//! 48         records
//! ```
//!
//! Its name is `log-` and the number of its first record in 20 digits, so that names sort as the
//! records do. After record N, the log continues in the file `log-<N + 1>`, if the header of that
//! file has the position of record N. Any other file is a leftover of an interrupted cut.

use std::io;
use std::ops::Range;

use memchr::memmem;

use super::archive::Part;
use super::begun::Begun;
use super::damage::{Damage, ReadError};
use super::disk::{ReadFile, read_exact_at};
use super::encoding::{FILE_HEADER, file_header, followed};
use super::header::FORMAT;
use super::record::{self, Change, HEAD, NoHead, RecordHead, Tail};
use crate::filter::generation::Generation;
use crate::filter::lifetime::Lifetimes;
use crate::fingerprint::Fingerprint;
use crate::limit::Counted;
use crate::storage::head::Position;

const MAGIC: &[u8; 8] = b"urlseenL";
const PREFIX: &str = "log-";

/// Number of bytes to read at a time, unless a record is longer.
const READ: usize = 1 << 20;

/// Number of bytes that a disk writes or loses together, or a divisor of it.
const BLOCK: usize = 64;

/// Returns the name of the file that begins after record `follows`.
pub(super) fn name(follows: u64) -> String {
    format!("{PREFIX}{:020}", follows + 1)
}

/// Returns the number of the last record before the file called `name`. Returns `None` if no file
/// of the log can have this name.
pub(super) fn follows(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?;
    let first: u64 = digits.parse().ok()?;
    let follows = first.checked_sub(1)?;
    (self::name(follows) == name).then_some(follows)
}

/// Makes the header of a file.
pub(super) fn header(filter: u64, follows: Position) -> Vec<u8> {
    file_header(MAGIC, FORMAT, filter, follows)
}

/// A file of the log, read from front to back.
#[derive(Debug)]
pub(super) struct Segment {
    name: String,
    file: Box<dyn ReadFile>,
    pub(super) len: u64,
    /// Position of the last record before the file.
    pub(super) follows: Position,
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
pub(super) struct Entry<'a> {
    pub(super) head: RecordHead,
    /// Offset of the record in its file.
    pub(super) offset: u64,
    /// Lifetimes of the fingerprints.
    pub(super) lifetimes: Lifetimes,
    /// Changes of the counts of limits.
    pub(super) counted: Vec<Counted>,
    body: &'a [u8],
}

impl Entry<'_> {
    /// Reads the fingerprints of the record.
    pub(super) fn fingerprints(&self) -> Vec<Fingerprint> {
        // `next` has checked that the body has so many fingerprints.
        let mut all = Vec::with_capacity(self.head.count as usize);
        record::decode(&self.head, self.body, |fingerprint| all.push(fingerprint))
            .expect("was looked through when it was read");
        all
    }

    /// Reads the fingerprints of the record, each with the generation under which the filter stores
    /// it.
    pub(super) fn stored(&self) -> impl Iterator<Item = (Generation, Fingerprint)> {
        let stored_in = |index| self.lifetimes.of(index).stored_in(self.head.generation);
        let all = self.fingerprints().into_iter().enumerate();
        all.map(move |(index, fingerprint)| (stored_in(index), fingerprint))
    }

    /// Reads the fingerprints of the record, with the change that it makes to them.
    pub(super) fn changes(&self) -> impl Iterator<Item = (Change, Fingerprint)> {
        let change = self.head.kind.change();
        self.fingerprints().into_iter().filter_map(move |fingerprint| Some((change?, fingerprint)))
    }
}

impl Segment {
    /// Opens the file called `name`. Its header must have the id of the folder's filter.
    pub(super) fn open(begun: &Begun, name: &str) -> Result<Self, ReadError> {
        let file = begun.dir.open(name)?;
        let len = file.len()?;
        let damage = |what| Damage::new(name, 0, what);
        let mut header = [0; FILE_HEADER];
        if len < header.len() as u64 {
            return Err(damage("the header was never written to its end").into());
        }
        read_exact_at(&*file, &mut header, 0)?;
        let other = "the file is not part of a log";
        let filter = begun.header.filter();
        let position = followed(&header, MAGIC, FORMAT, filter, other).map_err(damage)?;
        let number = follows(name).or_else(|| Some(Part::named(name)?.follows));
        if number != Some(position.number) {
            return Err(damage("the file was renamed").into());
        }
        Ok(Self {
            name: name.to_owned(),
            file,
            len,
            follows: position,
            offset: FILE_HEADER as u64,
            position,
            buffer: Vec::new(),
            buffered: 0,
        })
    }

    /// Reads the next record and checks its CRC, its position and its fingerprints. Returns `None`
    /// at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<Entry<'_>>, ReadError> {
        let Some(head) = self.next_head()? else { return Ok(None) };
        let start = self.offset + HEAD as u64;
        let body = self.fill(start, head.length as usize)?;
        if !head.matches(&self.buffer[body.clone()]) {
            return Err(self.damaged("the record is damaged"));
        }
        let decoded = record::decode(&head, &self.buffer[body.clone()], drop);
        let Some(Tail { lifetimes, counted }) = decoded else {
            return Err(self.damaged("the record's fingerprints cannot be read"));
        };
        let offset = self.offset;
        self.offset = start + u64::from(head.length);
        self.position = head.position;
        let body = &self.buffer[body];
        Ok(Some(Entry { head, offset, lifetimes, counted, body }))
    }

    /// Calls `visit` with each of the remaining records, up to the end of the file or to damage.
    pub(super) fn each(&mut self, mut visit: impl FnMut(&Entry<'_>)) -> Result<(), ReadError> {
        while let Some(entry) = self.next()? {
            visit(&entry);
        }
        Ok(())
    }

    /// Passes over the next record without reading its fingerprints. Returns false at the end of
    /// the file.
    pub(super) fn skip(&mut self) -> Result<bool, ReadError> {
        let Some(head) = self.next_head()? else { return Ok(false) };
        self.offset += HEAD as u64 + u64::from(head.length);
        self.position = head.position;
        Ok(true)
    }

    /// Searches the rest of the file for the record that directly follows `before`, and skips
    /// damaged bytes. Returns true if the file has the record. The search looks for the record's
    /// number. Bytes count as the record's head only if they also have the id of the predecessor
    /// and the right CRC.
    pub(super) fn seek(&mut self, before: Position) -> io::Result<bool> {
        let number = (before.number + 1).to_le_bytes();
        let finder = memmem::Finder::new(&number);
        let mut start = self.offset;
        while self.len - start >= HEAD as u64 {
            let left = usize::try_from(self.len - start).unwrap_or(usize::MAX);
            let bytes = self.fill(start, left.min(READ))?;
            let (from, window) = (bytes.start, &self.buffer[bytes]);
            for at in finder.find_iter(window) {
                // The record begins with its kind, one byte before the number.
                let Some(at) = at.checked_sub(1) else { continue };
                let Some(head) = window[at..].first_chunk() else { break };
                if RecordHead::decode(head).is_ok_and(|head| head.follows(before)) {
                    self.offset = self.buffered + (from + at) as u64;
                    self.position = before;
                    return Ok(true);
                }
            }
            // The last bytes of this window are too few for a whole head, so the next window
            // repeats them.
            start += (left.min(READ) - (HEAD - 1)) as u64;
        }
        Ok(false)
    }

    /// Opens the file called `name`, whose header may be damaged, at `offset`. Only
    /// [`Segment::heads`] can read it.
    pub(super) fn unchecked(begun: &Begun, name: &str, offset: u64) -> io::Result<Self> {
        let file = begun.dir.open(name)?;
        let (len, follows) = (file.len()?, Position::START);
        let (name, position, offset) = (name.to_owned(), follows, offset.min(len));
        Ok(Self { name, file, len, follows, offset, position, buffer: Vec::new(), buffered: 0 })
    }

    /// Calls `visit` with the head of each record in the rest of the file whose number is at least
    /// `first`. Skips all other bytes, and does not check the fingerprints.
    pub(super) fn heads(
        &mut self,
        first: u64,
        mut visit: impl FnMut(&RecordHead),
    ) -> io::Result<()> {
        let mut start = self.offset;
        while self.len.saturating_sub(start) >= HEAD as u64 {
            let left = usize::try_from(self.len - start).unwrap_or(usize::MAX);
            let bytes = self.fill(start, left.min(READ))?;
            let window = &self.buffer[bytes];
            let mut at = 0;
            while let Some(bytes) = window.get(at..).and_then(<[u8]>::first_chunk) {
                let head = RecordHead::decode(bytes).ok();
                match head.filter(|head| head.position.number >= first) {
                    Some(head) => {
                        visit(&head);
                        at += HEAD + head.length as usize;
                    }
                    None => at += 1,
                }
            }
            start += at as u64;
        }
        Ok(())
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
        let head = RecordHead::decode(bytes).map_err(|error| match error {
            NoHead::Damaged => self.damaged("the record's head is damaged"),
            NoHead::UnknownKind(kind) => {
                ReadError::UnknownKind { file: self.name.clone(), offset: self.offset, kind }
            }
        })?;
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
