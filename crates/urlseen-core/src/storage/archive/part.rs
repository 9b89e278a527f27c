//! A part of the archive: the fingerprints of one file of the log.
//!
//! ```text
//! at  bytes
//!  0      8  "urlseenA"
//!  8      4  format, 1
//! 12      8  id of the filter
//! 20     24  position of the record before the log file's first record: number, seq, commit_id
//! 44      4  CRC-32C of bytes 0 to 43
//! 48         runs
//!
//! a run
//!  0      1  kind: 1 let through, 2 forgotten
//!  1      1  width: 16, 20 or 32 bytes a fingerprint, or 255 for text
//!  2      4  count of fingerprints
//!  6      4  length of the body
//! 10      4  CRC-32C of the body
//! 14      4  CRC-32C of bytes 0 to 13
//! 18         body: fingerprints, one after the other; before a text, its length (4 bytes)
//!
//! after the runs
//!  0     24  position of the log file's last record: number, seq, commit_id
//! 24      8  fingerprints that were let through
//! 32      1  1 if the filter was empty before the first record, else 0
//! 33      4  CRC-32C of bytes 0 to 32
//! ```
//!
//! The name of a part is `archive-` and the number of the log file's first record in 20 digits. The
//! name of the log file has the same number. Numbers are little endian.

use std::io;

use super::super::begun::Begun;
use super::super::damage::{Damage, ReadError};
use super::super::disk::{DiskFile, ReadFile, read_exact_at};
use super::super::encoding::{
    FILE_HEADER, Fields, POSITION, agree, checked, file_header, followed, push_crc, push_position,
};
use super::super::record::{Change, push_body, take, width};
use crate::fingerprint::Fingerprint;
use crate::storage::head::Position;

const MAGIC: &[u8; 8] = b"urlseenA";
const FORMAT: u32 = 1;

const RUN: usize = 18;
const TRAILER: usize = POSITION + 13;

/// Approximate maximum size of a run in bytes. A run is completely in memory.
const RUN_BYTES: usize = 1 << 20;

/// A part of the archive, with the data from its header and its trailer.
#[derive(Debug)]
pub struct Part {
    name: String,
    file: Box<dyn ReadFile>,
    /// Bytes before the trailer.
    end: u64,
    pub(super) follows: Position,
    pub(super) last: Position,
    pub(super) fingerprints: u64,
    /// True if the filter was empty before the part.
    pub(super) is_first: bool,
}

impl Part {
    /// Opens a part of this filter.
    pub(super) fn open(begun: &Begun, number: u64) -> Result<Self, ReadError> {
        let name = &super::name(number);
        let damage = |offset, what| Damage::new(name, offset, what);
        let file = begun.dir.open(name)?;
        let end = file.len()?.checked_sub(TRAILER as u64);
        let end = end.filter(|&end| end >= FILE_HEADER as u64);
        let end = end.ok_or_else(|| damage(0, "the file is incomplete"))?;
        let (mut front, mut back) = ([0; FILE_HEADER], [0; TRAILER]);
        read_exact_at(&*file, &mut front, 0)?;
        read_exact_at(&*file, &mut back, end)?;
        let other = "the file is not part of an archive";
        let follows = followed(&front, MAGIC, FORMAT, begun.header.filter(), other);
        let follows = follows.map_err(|what| damage(0, what))?;
        let back = checked(&back).ok_or_else(|| damage(end, "the end is damaged"))?;
        if follows.number != number {
            return Err(damage(0, "the file was renamed").into());
        }
        let mut back = Fields(back);
        let last = back.position().ok_or_else(|| damage(end, "the end is damaged"))?;
        let (fingerprints, is_first) = (back.u64(), back.u8() == 1);
        let name = name.to_owned();
        Ok(Self { name, file, end, follows, last, fingerprints, is_first })
    }

    /// Calls `visit` with each change, in order.
    pub(super) fn read(
        &self,
        visit: &mut impl FnMut(Change, Fingerprint),
    ) -> Result<(), ReadError> {
        let mut body = Vec::new();
        let mut offset = FILE_HEADER as u64;
        while offset < self.end {
            let damaged = || Damage::new(&self.name, offset, "the run is damaged");
            let (run, length) = self.run(offset)?.ok_or_else(damaged)?;
            body.resize(length, 0);
            read_exact_at(&*self.file, &mut body, offset + RUN as u64)?;
            if !agree(crc32c::crc32c(&body), run.crc) {
                return Err(damaged().into());
            }
            let mut rest = &body[..];
            for _ in 0..run.count {
                visit(run.change, take(run.width, &mut rest).ok_or_else(damaged)?);
            }
            offset += (RUN + length) as u64;
        }
        Ok(())
    }

    /// Reads the head of the run at `offset`. Returns it with the length of the body. Returns
    /// `None` if the head is damaged, or the file does not have the whole body.
    fn run(&self, offset: u64) -> io::Result<Option<(Run, usize)>> {
        let Some(left) = (self.end - offset).checked_sub(RUN as u64) else { return Ok(None) };
        let mut head = [0; RUN];
        read_exact_at(&*self.file, &mut head, offset)?;
        let Some(head) = checked(&head) else { return Ok(None) };
        let mut fields = Fields(head);
        let change = match fields.u8() {
            1 => Change::Add,
            2 => Change::Forget,
            _ => return Ok(None),
        };
        let (width, count, length) = (fields.u8(), fields.u32(), fields.u32());
        if u64::from(length) > left {
            return Ok(None);
        }
        let run = Run { change, width, count, crc: fields.u32() };
        Ok(Some((run, usize::try_from(length).map_err(io::Error::other)?)))
    }
}

#[derive(Debug)]
struct Run {
    change: Change,
    width: u8,
    count: u32,
    crc: u32,
}

/// Writes a part run by run.
#[derive(Debug)]
pub(super) struct PartWriter {
    file: Box<dyn DiskFile>,
    change: Change,
    width: u8,
    count: u32,
    body: Vec<u8>,
    fingerprints: u64,
}

impl PartWriter {
    /// Begins the file `name` for the records after `follows`.
    pub(super) fn begin(begun: &Begun, name: &str, follows: Position) -> io::Result<Self> {
        let file = begun.dir.create(name)?;
        file.append(&file_header(MAGIC, FORMAT, begun.header.filter(), follows))?;
        let (change, width, count) = (Change::Add, 20, 0);
        Ok(Self { file, change, width, count, body: Vec::new(), fingerprints: 0 })
    }

    pub(super) fn push(&mut self, change: Change, fingerprint: &Fingerprint) -> io::Result<()> {
        let width = width(fingerprint);
        if (change, width) != (self.change, self.width) || self.body.len() >= RUN_BYTES {
            self.flush()?;
            (self.change, self.width) = (change, width);
        }
        push_body(&mut self.body, fingerprint);
        self.count += 1;
        self.fingerprints += u64::from(change == Change::Add);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let length = u32::try_from(self.body.len()).map_err(io::Error::other)?;
        let mut run = Vec::with_capacity(RUN + self.body.len());
        run.extend([self.change as u8, self.width]);
        for field in [self.count, length, crc32c::crc32c(&self.body)] {
            run.extend(field.to_le_bytes());
        }
        push_crc(&mut run, 0);
        run.append(&mut self.body);
        self.count = 0;
        self.file.append(&run)
    }

    /// Ends the part at `last`, and syncs it.
    pub(super) fn finish(mut self, last: Position, is_first: bool) -> io::Result<()> {
        self.flush()?;
        let mut trailer = Vec::with_capacity(TRAILER);
        push_position(&mut trailer, last);
        trailer.extend(self.fingerprints.to_le_bytes());
        trailer.push(u8::from(is_first));
        push_crc(&mut trailer, 0);
        self.file.append(&trailer)?;
        self.file.sync()
    }
}
