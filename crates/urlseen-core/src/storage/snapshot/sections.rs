//! Writer of a snapshot's file.

use std::io::{self, Write};
use std::time::SystemTime;

use super::super::begun::Begun;
use super::super::clock::unix_ms;
use super::super::dir::Dir;
use super::super::disk::DiskFile;
use super::super::encoding::{push_crc, push_position};
use super::super::header::FORMAT;
use super::{COUNTS, MAGIC, TOMBSTONE, extended, name};
use crate::filter::{Blob, Saved, ShardId};
use crate::limit::Counted;
use crate::storage::head::{Head, Position};

/// Number of bytes that are collected before a write. At most this many bytes are written without a
/// pause.
const WRITE: usize = 1 << 20;

/// Bytes after which the file is synced. Otherwise a sync of the log would wait for the whole
/// snapshot.
const SYNC: u64 = 32 << 20;

/// Relation of a snapshot to the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::storage) enum Role {
    /// The next snapshot of the same history.
    Later,
    /// The start of a history: nothing older counts.
    Origin,
}

impl Role {
    /// Returns the temporary name that the file has until the snapshot is complete.
    fn aside(self) -> &'static str {
        match self {
            Self::Later => "snapshot.tmp",
            Self::Origin => "origin.tmp",
        }
    }
}

/// Writer of the shards of an unfinished snapshot.
#[derive(Debug)]
pub struct Sections {
    dir: Dir,
    role: Role,
    file: Box<dyn DiskFile>,
    shards: usize,
    buffer: Vec<u8>,
    /// Number of bytes written to the file, and number of synced bytes.
    written: u64,
    synced: u64,
    /// Number of bytes of bodies since the last pause.
    unpaused: usize,
    next: usize,
    span: Option<(Position, Position)>,
    /// Number of keys in the shards so far.
    pub(in crate::storage) keys: u64,
    /// The tombstones, in the format of the file.
    tombstones: Vec<u8>,
    is_done: bool,
}

impl Sections {
    pub(in crate::storage) fn begin(begun: &Begun, role: Role) -> io::Result<Self> {
        let Begun { dir, header } = begun;
        let file = dir.create(role.aside())?;
        let (dir, shards) = (Dir::clone(dir), header.shards());
        let mut buffer = Vec::with_capacity(WRITE);
        buffer.extend(MAGIC);
        buffer.extend(FORMAT.to_le_bytes());
        for field in [header.filter(), shards as u64, unix_ms(SystemTime::now())] {
            buffer.extend(field.to_le_bytes());
        }
        push_crc(&mut buffer, 0);
        Ok(Self {
            dir,
            role,
            file,
            shards,
            buffer,
            written: 0,
            synced: 0,
            unpaused: 0,
            next: 0,
            span: None,
            keys: 0,
            tombstones: Vec::new(),
            is_done: false,
        })
    }

    /// Returns the shards to write, in order.
    pub fn shards(&self) -> impl Iterator<Item = ShardId> + use<> {
        ShardId::all().take(self.shards)
    }

    /// Writes the content that a shard has at the position `at` of the log. The caller writes the
    /// shards in order. Calls `pause` after each mebibyte of one or more shards. An error of
    /// `pause` ends the writing.
    ///
    /// # Panics
    /// If the shard is not the next one.
    pub fn write(
        &mut self,
        shard: ShardId,
        at: Position,
        blob: &dyn Blob,
        pause: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        assert_eq!(shard.index(), self.next, "shards are written in order");
        self.next += 1;
        self.keys += blob.keys();
        self.put_head(shard.byte(), at, blob.keys(), blob.len())?;
        let mut body = Body { sections: self, crc: 0, written: 0, pause };
        blob.write(&mut body)?;
        assert_eq!(body.written, blob.len(), "shard {shard} is written as a whole");
        let crc = body.crc;
        self.put_bytes(&crc.to_le_bytes())
    }

    /// Writes the counts of limits, which have all changes up to the position `at` of the log. The
    /// caller writes them after the shards.
    ///
    /// # Panics
    /// If a shard was not written.
    pub fn counts(&mut self, counts: &[Counted], at: Position) -> io::Result<()> {
        assert_eq!(self.next, self.shards, "every shard is written");
        if counts.is_empty() {
            return Ok(());
        }
        let mut body = Vec::with_capacity(counts.len() * Counted::BYTES);
        for counted in counts {
            counted.encode(&mut body);
        }
        self.put_section(COUNTS, at, counts.len() as u64, body)
    }

    /// Writes a section that is no shard.
    fn put_section(
        &mut self,
        number: u8,
        at: Position,
        keys: u64,
        mut body: Vec<u8>,
    ) -> io::Result<()> {
        self.put_head(number, at, keys, body.len() as u64)?;
        push_crc(&mut body, 0);
        self.put_bytes(&body)
    }

    /// Writes the head of a section.
    fn put_head(&mut self, number: u8, at: Position, keys: u64, len: u64) -> io::Result<()> {
        self.span = Some(extended(self.span, at));
        let mut head = vec![number];
        push_position(&mut head, at);
        head.extend(keys.to_le_bytes());
        head.extend(len.to_le_bytes());
        push_crc(&mut head, 0);
        self.put_bytes(&head)
    }

    /// Notes the tombstones that a shard had when it was copied. Each tombstone is the 128-bit key
    /// hash of a fingerprint.
    pub fn tombstones(&mut self, shard: ShardId, ids: &[u128]) {
        for id in ids {
            self.tombstones.push(shard.byte());
            self.tombstones.extend(id.to_le_bytes());
        }
    }

    /// Writes bytes, or collects them for a later write.
    fn put_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > WRITE {
            self.flush()?;
        }
        if bytes.len() >= WRITE {
            self.file.append(bytes)?;
            self.written += bytes.len() as u64;
        } else {
            self.buffer.extend(bytes);
        }
        if self.written - self.synced >= SYNC {
            self.file.sync()?;
            self.synced = self.written;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.append(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the trailer and syncs the file. Returns the last position and the size.
    pub(in crate::storage) fn seal(&mut self) -> io::Result<(Position, u64)> {
        assert_eq!(self.next, self.shards, "every shard is written");
        let (first, last) = self.span.expect("there are shards");
        let mut tombstones = std::mem::take(&mut self.tombstones);
        let count = (tombstones.len() / TOMBSTONE) as u64;
        tombstones.extend(count.to_le_bytes());
        push_crc(&mut tombstones, 0);
        self.put_bytes(&tombstones)?;
        let start = self.buffer.len();
        push_position(&mut self.buffer, first);
        push_position(&mut self.buffer, last);
        self.buffer.extend(unix_ms(SystemTime::now()).to_le_bytes());
        self.buffer.push(u8::from(self.role == Role::Origin));
        push_crc(&mut self.buffer, start);
        self.flush()?;
        self.file.sync()?;
        Ok((last, self.written))
    }

    /// Renames the file to its final name. From then on, the snapshot counts.
    pub(in crate::storage) fn put(&mut self, last: Position) -> io::Result<()> {
        self.dir.rename(self.role.aside(), &name(last.head.seq))?;
        self.is_done = true;
        self.dir.sync()
    }
}

/// Writer of a section's body.
struct Body<'a> {
    sections: &'a mut Sections,
    crc: u32,
    written: u64,
    pause: &'a mut dyn FnMut() -> io::Result<()>,
}

impl Write for Body<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(WRITE)];
        self.sections.put_bytes(bytes)?;
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        self.written += bytes.len() as u64;
        self.sections.unpaused += bytes.len();
        if self.sections.unpaused >= WRITE {
            (self.pause)()?;
            self.sections.unpaused = 0;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Sections {
    fn drop(&mut self) {
        if !self.is_done {
            // If this fails, the next opening of the folder removes the file.
            let _ = self.dir.remove(self.role.aside());
        }
    }
}

/// Writes the snapshot of an empty filter under its final name, and syncs it.
pub(in crate::storage) fn empty(begun: &Begun, at: Head) -> io::Result<Position> {
    let mut sections = Sections::begin(begun, Role::Origin)?;
    let position = Position { number: 0, head: at };
    for shard in sections.shards() {
        sections.write(shard, position, &Saved::default(), &mut || Ok(()))?;
    }
    let (last, _) = sections.seal()?;
    sections.put(last)?;
    Ok(position)
}
