//! Writers of snapshots. After the snapshot, they remove files that are no longer needed.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::SystemTime;

use urlseen_filter::limit::Counted;
use urlseen_filter::{Blob, Saved, ShardId};

use super::clock::Moment;
use super::disk::DiskFile;
use super::encoding::{FORMAT, push_crc, push_position, unix_ms};
use super::head::{Head, Position};
use super::header::Begun;
use super::history::{Segments, Stand};
use super::prune::{self, Retention};
use super::record::HEAD;
use super::restore::LiveFilter;
use super::snapshot::{EXTRA, MAGIC, Snapshots, name, seq};
use super::sync::Unsynced;

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
    pub(super) begun: Begun,
    /// True if a history begins with the snapshot: nothing older counts.
    is_origin: bool,
    started: SystemTime,
    file: Box<dyn DiskFile>,
    buffer: Vec<u8>,
    /// Number of bytes written to the file, and number of synced bytes.
    written: u64,
    synced: u64,
    /// The sections so far: the position, the number of keys, and the bytes of the body.
    sections: Vec<(Position, u64, u64)>,
    /// The counts and their position, and the tombstones, in the format of the file.
    counts: (Option<Position>, Vec<u8>),
    tombstones: Vec<u8>,
    is_done: bool,
}

impl Sections {
    pub(super) fn begin(begun: &Begun, is_origin: bool) -> io::Result<Self> {
        let Begun { dir, header } = begun;
        let file = dir.create(UNFINISHED)?;
        let mut buffer = Vec::with_capacity(WRITE);
        buffer.extend(MAGIC);
        buffer.extend(FORMAT.to_le_bytes());
        buffer.extend(header.filter.get().to_le_bytes());
        push_crc(&mut buffer, 0);
        Ok(Self {
            begun: begun.clone(),
            is_origin,
            started: SystemTime::now(),
            file,
            buffer,
            written: 0,
            synced: 0,
            sections: Vec::new(),
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
        assert_eq!(shard.index(), self.sections.len(), "shards are written in order");
        self.sections.push((at, blob.keys(), blob.len()));
        let mut body = ShardWriter { sections: self, crc: 0, written: 0, pause };
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

    /// Copies all shards and the counts of a filter, as they are now. The sections get the position
    /// `at`, or their own. Returns false if the filter does not exist any more.
    ///
    /// # Errors
    /// If the disk fails, or `pause` does: see [`Sections::write`].
    pub(super) fn copy(
        &mut self,
        filter: &impl LiveFilter,
        at: Option<Position>,
        pause: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<bool> {
        let mut buffer = Vec::new();
        for shard in self.shards() {
            let Some(copied) = filter.copy(shard, buffer) else { return Ok(false) };
            self.write(shard, at.unwrap_or(copied.at), &*copied.blob, pause)?;
            self.tombstones(shard, &copied.tombstones);
            buffer = copied.blob.into_buffer();
        }
        let Some((counts, counted_at)) = filter.copy_counts() else { return Ok(false) };
        self.counts(&counts, at.unwrap_or(counted_at));
        Ok(true)
    }

    /// Returns the number of keys in the shards so far.
    fn keys(&self) -> u64 {
        let shards = self.sections.iter().take(self.begun.header.shards());
        shards.map(|(_, keys, _)| keys).sum()
    }

    /// Returns the highest position of the sections so far.
    fn last(&self) -> Position {
        let positions = self.sections.iter().map(|&(at, ..)| at);
        positions.max_by_key(|at| at.number).expect("a snapshot has sections")
    }

    /// Notes the tombstones that a shard had when it was copied. Each tombstone is the 128-bit key
    /// hash of a fingerprint.
    pub fn tombstones(&mut self, shard: ShardId, ids: &[u128]) {
        for id in ids {
            self.tombstones.push(shard.0);
            self.tombstones.extend(id.to_le_bytes());
        }
    }

    /// Collects bytes, and writes them if they are enough. Returns true if it writes.
    fn put_bytes(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let before = self.written;
        if self.buffer.len() + bytes.len() > WRITE {
            self.flush()?;
        }
        self.buffer.extend(bytes);
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
    pub(super) fn seal(&mut self, now: Moment) -> io::Result<(Position, u64)> {
        assert_eq!(self.sections.len(), self.begun.header.shards(), "every shard is written");
        let (counts_at, counts) = std::mem::take(&mut self.counts);
        let (last, tombstones) = (self.last(), std::mem::take(&mut self.tombstones));
        let parts = [(counts_at.unwrap_or(last), counts), (last, tombstones)];
        for (each, (at, mut body)) in EXTRA.into_iter().zip(parts) {
            self.sections.push((at, (body.len() / each) as u64, body.len() as u64));
            push_crc(&mut body, 0);
            self.put_bytes(&body)?;
        }
        let mut end = Vec::new();
        for &(at, keys, len) in &self.sections {
            push_position(&mut end, at);
            end.extend([keys, len].into_iter().flat_map(u64::to_le_bytes));
        }
        let times = [self.started, SystemTime::now()].map(unix_ms);
        end.extend(times.into_iter().chain(now.encode()).flat_map(u64::to_le_bytes));
        end.push(self.is_origin.into());
        push_crc(&mut end, 0);
        self.put_bytes(&end)?;
        self.flush()?;
        self.file.sync()?;
        Ok((self.last(), self.written))
    }

    /// Renames the file to its final name. From then on, the snapshot counts.
    pub(super) fn put(&mut self, last: Position) -> io::Result<()> {
        self.begun.dir.rename(UNFINISHED, &name(last.head.seq))?;
        self.is_done = true;
        self.begun.dir.sync()
    }
}

/// Writer of a section's body.
struct ShardWriter<'a> {
    sections: &'a mut Sections,
    crc: u32,
    written: u64,
    pause: &'a mut dyn FnMut() -> io::Result<()>,
}

impl Write for ShardWriter<'_> {
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
pub(super) fn empty(begun: &Begun, at: Head) -> io::Result<Position> {
    let mut sections = Sections::begin(begun, true)?;
    let position = Position { number: 0, head: at };
    for shard in sections.shards() {
        sections.write(shard, position, &Saved::default(), &mut || Ok(()))?;
    }
    let (last, _) = sections.seal(Moment::now())?;
    sections.put(last)?;
    Ok(position)
}

/// Writer of a snapshot, on any thread, while the log continues. An unfinished writer leaves no
/// file when it is dropped.
#[derive(Debug)]
pub struct SnapshotWriter {
    /// Writer of the shards of the snapshot.
    pub sections: Sections,
    log: Arc<Unsynced>,
}

/// Snapshot that was written completely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Name of the snapshot's file.
    pub name: String,
    /// Bytes of the snapshot's file.
    pub bytes: u64,
    /// True if `horizon_bytes` forced the removal of snapshots that would otherwise stay.
    pub cut_by_bytes: bool,
}

impl SnapshotWriter {
    pub(super) fn new(begun: &Begun, log: &Arc<Unsynced>) -> io::Result<Self> {
        Ok(Self { sections: Sections::begin(begun, false)?, log: Arc::clone(log) })
    }

    /// Syncs the log and the snapshot, gives the file its final name, and removes files that are no
    /// longer needed. `now` is the present moment.
    ///
    /// # Errors
    /// If the disk fails, or the log has failed before. The folder then has no file of this
    /// snapshot, except if the removal of old files failed.
    ///
    /// # Panics
    /// If a shard was not written.
    pub fn finish(mut self, retention: &Retention, now: Moment) -> io::Result<Finished> {
        let (last, bytes) = self.sections.seal(now)?;
        self.log.sync_to(last.number)?;
        let _turn = self.log.hold.turn();
        self.sections.put(last)?;
        let cut_by_bytes = prune::prune(&self.sections.begun, retention, now)?;
        Ok(Finished { name: name(last.head.seq), bytes, cut_by_bytes })
    }
}

/// Writer of a snapshot that replaces the whole content of a folder. An unfinished writer changes
/// nothing when it is dropped.
///
/// The snapshot's number is higher than every number in the folder. So the snapshot is the newest,
/// and no record of the old log follows it. It is marked as the start of a history: once it has its
/// final name, nothing older counts. Then the older files are removed. If the folder has an
/// archive, the log goes there first. For an empty filter, the archive is removed before the
/// snapshot counts.
#[derive(Debug)]
pub struct Rebase<'a> {
    /// Writer of the shards. [`Rebase::write`] writes a shard at the position of the filter.
    pub sections: Sections,
    /// End of the folder's log, which the finished snapshot changes.
    stand: &'a mut Option<Stand>,
    pub(super) position: Position,
}

impl<'a> Rebase<'a> {
    pub(super) fn begin(begun: &Begun, at: Head, stand: &'a mut Option<Stand>) -> io::Result<Self> {
        let position = Position { number: unused(begun)?, head: at };
        Ok(Self { sections: Sections::begin(begun, true)?, stand, position })
    }

    /// Writes a shard. The caller writes the shards in order.
    ///
    /// # Panics
    /// If the shard is not the next one.
    pub fn write(&mut self, shard: ShardId, blob: &dyn Blob) -> io::Result<()> {
        self.sections.write(shard, self.position, blob, &mut || Ok(()))
    }

    /// Puts the snapshot in place and removes all older files. Returns the position for
    /// [`Folder::journal`](super::Folder::journal).
    ///
    /// # Panics
    /// If a shard was not written.
    pub fn finish(mut self) -> io::Result<Position> {
        let (last, _) = self.sections.seal(Moment::now())?;
        let begun = self.sections.begun.clone();
        let dir = &begun.dir;
        let is_archived = self.sections.keys() > 0 && prune::has_archive(dir)?;
        if self.sections.keys() == 0 {
            prune::clear_archive(dir)?;
        }
        self.sections.put(last)?;
        let own = name(last.head.seq);
        let names = dir.list()?.into_iter().map(|file| file.name);
        let older = names.filter(|name| seq(name).is_some() && *name != own).collect();
        let logs: Vec<_> = Segments::list(&begun)?.files.into_keys().collect();
        prune::retire(&begun, &older, &logs, is_archived, None)?;
        *self.stand = Some((self.position, None));
        Ok(self.position)
    }
}

/// Returns a number above the numbers of all records and snapshots. Each record has a head, so the
/// size of a file gives the maximum number of its records. The records themselves are not read.
fn unused(begun: &Begun) -> io::Result<u64> {
    let segments = Segments::list(begun)?;
    let records =
        segments.files.iter().map(|(follows, len)| follows.saturating_add(len / HEAD as u64));
    let snapshots = Snapshots::list(begun)?.sound;
    let snapshots = snapshots.iter().map(|snapshot| snapshot.last.number);
    Ok(records.chain(snapshots).max().unwrap_or(0).saturating_add(1))
}
