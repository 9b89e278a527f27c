//! Writer of a snapshot's file.

use std::io::{self, Write};
use std::time::SystemTime;

use super::super::clock::{Moment, unix_ms};
use super::super::disk::DiskFile;
use super::super::encoding::{push_crc, push_position};
use super::super::header::{Begun, FORMAT};
use super::{EXTRA, MAGIC, extended, name};
use crate::filter::{Blob, Saved, ShardId};
use crate::limit::Counted;
use crate::storage::head::{Head, Position};

/// Number of bytes that are collected before a write. At most this many bytes are written without a
/// pause.
const WRITE: usize = 1 << 20;

/// Bytes after which the file is synced. Otherwise a sync of the log would wait for the whole
/// snapshot.
const SYNC: u64 = 32 << 20;

/// Temporary name that the file has until the snapshot is complete.
const UNFINISHED: &str = "snapshot.tmp";

/// Writer of the shards of an unfinished snapshot.
#[derive(Debug)]
pub struct Sections {
    pub(in crate::storage) begun: Begun,
    /// True if a history begins with the snapshot: nothing older counts.
    is_origin: bool,
    file: Box<dyn DiskFile>,
    buffer: Vec<u8>,
    /// Number of bytes written to the file, and number of synced bytes.
    written: u64,
    synced: u64,
    next: usize,
    span: Option<(Position, Position)>,
    /// Number of keys in the shards so far.
    pub(in crate::storage) keys: u64,
    /// The counts and their position, and the tombstones, in the format of the file.
    counts: (Option<Position>, Vec<u8>),
    tombstones: Vec<u8>,
    is_done: bool,
}

impl Sections {
    pub(in crate::storage) fn begin(begun: &Begun, is_origin: bool) -> io::Result<Self> {
        let Begun { dir, header } = begun;
        let file = dir.create(UNFINISHED)?;
        let mut buffer = Vec::with_capacity(WRITE);
        buffer.extend(MAGIC);
        buffer.extend(FORMAT.to_le_bytes());
        for field in [header.filter(), header.shards() as u64, unix_ms(SystemTime::now())] {
            buffer.extend(field.to_le_bytes());
        }
        push_crc(&mut buffer, 0);
        Ok(Self {
            begun: begun.clone(),
            is_origin,
            file,
            buffer,
            written: 0,
            synced: 0,
            next: 0,
            span: None,
            keys: 0,
            counts: (None, Vec::new()),
            tombstones: Vec::new(),
            is_done: false,
        })
    }

    /// Returns the shards to write, in order.
    pub fn shards(&self) -> impl Iterator<Item = ShardId> + use<> {
        ShardId::all().take(self.begun.header.shards())
    }

    /// Writes the content that a shard has at the position `at` of the log. The caller writes the
    /// shards in order. Calls `pause` after each write of about a mebibyte. An error of
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
        self.put_head(shard, at, blob.keys(), blob.len())?;
        let mut body = Body { sections: self, crc: 0, written: 0, pause };
        blob.write(&mut body)?;
        assert_eq!(body.written, blob.len(), "shard {shard} is written as a whole");
        let crc = body.crc;
        self.put_bytes(&crc.to_le_bytes()).map(drop)
    }

    /// Notes the counts of limits, which have all changes up to the position `at` of the log.
    pub fn counts(&mut self, counts: &[Counted], at: Position) {
        self.counts.0 = Some(at).filter(|_| !counts.is_empty());
        for counted in counts {
            counted.encode(&mut self.counts.1);
        }
    }

    /// Writes the head of a section.
    fn put_head(&mut self, shard: ShardId, at: Position, keys: u64, len: u64) -> io::Result<()> {
        self.span = Some(extended(self.span, at));
        let mut head = vec![shard.byte()];
        push_position(&mut head, at);
        head.extend(keys.to_le_bytes());
        head.extend(len.to_le_bytes());
        push_crc(&mut head, 0);
        self.put_bytes(&head).map(drop)
    }

    /// Notes the tombstones that a shard had when it was copied. Each tombstone is the 128-bit key
    /// hash of a fingerprint.
    pub fn tombstones(&mut self, shard: ShardId, ids: &[u128]) {
        for id in ids {
            self.tombstones.push(shard.byte());
            self.tombstones.extend(id.to_le_bytes());
        }
    }

    /// Collects bytes, and writes them if they are enough. Returns true if it writes.
    fn put_bytes(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let before = self.written;
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
        Ok(self.written > before)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.append(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the end of the file and syncs it. `now` is the present moment. Returns the last
    /// position and the size.
    pub(in crate::storage) fn seal(&mut self, now: Moment) -> io::Result<(Position, u64)> {
        assert_eq!(self.next, self.begun.header.shards(), "every shard is written");
        let (_, last) = self.span.expect("there are shards");
        let (counts_at, counts) = std::mem::take(&mut self.counts);
        let tombstones = std::mem::take(&mut self.tombstones);
        let parts = [(counts_at.unwrap_or(last), counts), (last, tombstones)];
        for (each, (at, mut body)) in EXTRA.into_iter().zip(parts) {
            let (keys, len) = (body.len() / each, body.len() as u64);
            self.put_head(ShardId::WHOLE, at, keys as u64, len)?;
            push_crc(&mut body, 0);
            self.put_bytes(&body)?;
        }
        let (first, last) = self.span.expect("there are shards");
        let start = self.buffer.len();
        push_position(&mut self.buffer, first);
        push_position(&mut self.buffer, last);
        for field in [[unix_ms(SystemTime::now())].as_slice(), &now.encode()].concat() {
            self.buffer.extend(field.to_le_bytes());
        }
        self.buffer.push(self.is_origin.into());
        push_crc(&mut self.buffer, start);
        self.flush()?;
        self.file.sync()?;
        Ok((last, self.written))
    }

    /// Renames the file to its final name. From then on, the snapshot counts.
    pub(in crate::storage) fn put(&mut self, last: Position) -> io::Result<()> {
        self.begun.dir.rename(UNFINISHED, &name(last.head.seq))?;
        self.is_done = true;
        self.begun.dir.sync()
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
        let is_written = self.sections.put_bytes(bytes)?;
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        self.written += bytes.len() as u64;
        if is_written {
            (self.pause)()?;
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
            let _ = self.begun.dir.remove(UNFINISHED);
        }
    }
}

/// Writes the snapshot of an empty filter under its final name, and syncs it.
pub(in crate::storage) fn empty(begun: &Begun, at: Head) -> io::Result<Position> {
    let mut sections = Sections::begin(begun, true)?;
    let position = Position { number: 0, head: at };
    for shard in sections.shards() {
        sections.write(shard, position, &Saved::default(), &mut || Ok(()))?;
    }
    let (last, _) = sections.seal(Moment::now())?;
    sections.put(last)?;
    Ok(position)
}
