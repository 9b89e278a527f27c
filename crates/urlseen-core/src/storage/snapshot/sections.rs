//! Writing the file of a snapshot.

use std::io;
use std::time::SystemTime;

use super::super::clock::unix_ms;
use super::super::dir::Dir;
use super::super::disk::DiskFile;
use super::super::encoding::{push_crc, push_position};
use super::super::header::Header;
use super::{MAGIC, TOMBSTONE, name};
use crate::filter::{Count, SHARDS, ShardId};
use crate::storage::head::{Head, Position};

/// Bytes that are gathered before they are written.
const WRITE: usize = 1 << 20;

/// Bytes after which the disk is made to take what it was given, so that syncing the log need not
/// wait behind a whole snapshot.
const SYNC: u64 = 32 << 20;

/// What a snapshot is to what is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::storage) enum Role {
    /// The next of the same history.
    Later,
    /// The beginning of a history: nothing that is older counts.
    Origin,
}

impl Role {
    /// What the file is called while it is written.
    fn aside(self) -> &'static str {
        match self {
            Self::Later => "snapshot.tmp",
            Self::Origin => "origin.tmp",
        }
    }
}

/// A snapshot's file while it is written.
#[derive(Debug)]
pub(in crate::storage) struct Sections {
    dir: Dir,
    role: Role,
    file: Box<dyn DiskFile>,
    shard_bytes: u64,
    pub(super) buffer: Vec<u8>,
    /// Bytes handed to the file, and how many of those were synced.
    written: u64,
    synced: u64,
    pub(super) next: usize,
    pub(super) ends: Option<(Position, Position)>,
    /// As it is written.
    tombstones: Vec<u8>,
    is_done: bool,
}

impl Sections {
    pub(in crate::storage) fn begin(dir: &Dir, role: Role, header: &Header) -> io::Result<Self> {
        let file = dir.create(role.aside())?;
        let (dir, shard_bytes) = (dir.clone(), header.shard_bytes());
        let mut buffer = Vec::with_capacity(WRITE);
        buffer.extend(MAGIC);
        buffer.extend(header.format().to_le_bytes());
        for field in [header.filter(), shard_bytes, unix_ms(SystemTime::now())] {
            buffer.extend(field.to_le_bytes());
        }
        push_crc(&mut buffer, 0);
        Ok(Self {
            dir,
            role,
            file,
            shard_bytes,
            buffer,
            written: 0,
            synced: 0,
            next: 0,
            ends: None,
            tombstones: Vec::new(),
            is_done: false,
        })
    }

    pub(in crate::storage) fn dir(&self) -> &Dir {
        &self.dir
    }

    pub(in crate::storage) fn write(
        &mut self,
        shard: ShardId,
        count: Count,
        at: Position,
        bytes: &[u8],
    ) -> io::Result<()> {
        assert_eq!(shard.index(), self.next, "shards are written in order");
        let body = if count.ones == 0 { &[] } else { bytes };
        let full = if count.ones == 0 { 0 } else { self.shard_bytes };
        assert_eq!(body.len() as u64, full, "shard {shard} is written as a whole");
        self.next += 1;
        let (mut first, mut last) = self.ends.unwrap_or((at, at));
        if at.number < first.number {
            first = at;
        }
        if at.number > last.number {
            last = at;
        }
        self.ends = Some((first, last));

        let start = self.buffer.len();
        self.buffer.push(u8::try_from(shard.index()).expect("there are 256 shards"));
        self.buffer.push(u8::from(body.is_empty()));
        push_position(&mut self.buffer, at);
        self.buffer.extend(count.keys.to_le_bytes());
        self.buffer.extend(count.ones.to_le_bytes());
        self.buffer.extend(crc32c::crc32c(body).to_le_bytes());
        push_crc(&mut self.buffer, start);
        self.put_bytes(body)
    }

    pub(in crate::storage) fn tombstones(&mut self, shard: ShardId, ids: &[u128]) {
        for id in ids {
            self.tombstones.push(u8::try_from(shard.index()).expect("there are 256 shards"));
            self.tombstones.extend(id.to_le_bytes());
        }
    }

    /// Writes bytes, or gathers them to be written with others.
    pub(super) fn put_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > WRITE {
            self.flush()?;
        }
        if bytes.len() > WRITE {
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

    /// Writes the end, and has all of it on the disk: its last position, and its size.
    pub(in crate::storage) fn seal(&mut self) -> io::Result<(Position, u64)> {
        assert_eq!(self.next, SHARDS, "every shard is written");
        let (first, last) = self.ends.expect("there are shards");
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

    /// Gives it the name by which it counts.
    pub fn put(&mut self, last: Position) -> io::Result<()> {
        self.dir.rename(self.role.aside(), &name(last.head.seq))?;
        self.is_done = true;
        self.dir.sync()
    }
}

impl Drop for Sections {
    fn drop(&mut self) {
        if !self.is_done {
            // Opening the folder removes it otherwise.
            let _ = self.dir.remove(self.role.aside());
        }
    }
}

/// Writes the snapshot of a filter without a bit, on the disk and in place.
pub(in crate::storage) fn empty(dir: &Dir, header: &Header, at: Head) -> io::Result<Position> {
    let mut sections = Sections::begin(dir, Role::Origin, header)?;
    let position = Position { number: 0, head: at };
    if header.has_shards() {
        for shard in ShardId::all() {
            sections.write(shard, Count::default(), position, &[])?;
        }
    } else {
        sections.write_whole(None, position, &mut || Ok(()))?;
    }
    let (last, _) = sections.seal()?;
    sections.put(last)?;
    Ok(position)
}
