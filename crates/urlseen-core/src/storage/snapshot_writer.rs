//! Writers of snapshots. After the snapshot, they remove files that are no longer needed.

use std::io;
use std::sync::Arc;

use super::archive;
use super::clock::Moment;
use super::folder::Folder;
use super::head::{Head, Position};
use super::header::Begun;
use super::history::Segments;
use super::prune::{self, Retention};
use super::record::HEAD;
use super::snapshot::{Sections, Snapshots, name, seq};
use super::sync::Unsynced;
use crate::filter::{Blob, ShardId};

/// Writer of a snapshot, on any thread, while the log continues. An unfinished writer leaves no
/// file when it is dropped.
#[derive(Debug)]
pub struct SnapshotWriter {
    /// Writer of the shards of the snapshot.
    pub sections: Sections,
    log: Arc<Unsynced>,
    /// Dropped after `sections`, so that the unfinished file is removed before another begins.
    _token: Arc<()>,
}

/// Snapshot that was written completely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Name of the snapshot's file.
    pub name: String,
    /// Bytes of the snapshot's file.
    pub bytes: u64,
    /// Names of the files that were removed after the snapshot.
    pub(crate) pruned: Vec<String>,
    /// True if `horizon_bytes` forced the removal of snapshots that would otherwise stay.
    pub cut_by_bytes: bool,
}

impl SnapshotWriter {
    pub(super) fn new(begun: &Begun, log: &Arc<Unsynced>) -> io::Result<Self> {
        let token = Arc::clone(&log.hold.writing);
        // One clone is here, and one is in the lock of the folder.
        if Arc::strong_count(&token) > 2 {
            return Err(io::Error::other("another snapshot is still being written"));
        }
        let sections = Sections::begin(begun, false)?;
        Ok(Self { sections, log: Arc::clone(log), _token: token })
    }

    /// Syncs the log and the snapshot, gives the file its final name, and removes files that are no
    /// longer needed.
    ///
    /// # Errors
    /// If the disk fails, or the log has failed before. The folder then has no file of this
    /// snapshot, except if the removal of old files failed.
    ///
    /// # Panics
    /// If a shard was not written.
    pub fn finish(self, retention: &Retention) -> io::Result<Finished> {
        self.finish_at(retention, Moment::now())
    }

    /// Finishes the snapshot like `finish`, at another moment.
    pub(super) fn finish_at(mut self, retention: &Retention, now: Moment) -> io::Result<Finished> {
        let (last, bytes) = self.sections.seal(now)?;
        self.log.sync_to(last.number)?;
        let _turn = self.log.hold.turn();
        self.sections.put(last)?;
        let (pruned, cut_by_bytes) = prune::prune(&self.sections.begun, retention, now)?;
        Ok(Finished { name: name(last.head.seq), bytes, pruned, cut_by_bytes })
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
    folder: &'a mut Folder,
    pub(super) position: Position,
}

impl<'a> Rebase<'a> {
    pub(super) fn begin(folder: &'a mut Folder, at: Head) -> io::Result<Self> {
        let position = Position { number: unused(folder.begun())?, head: at };
        Ok(Self { sections: Sections::begin(folder.begun(), true)?, folder, position })
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
        let begun = self.folder.begun();
        let dir = &begun.dir;
        let is_archived = self.sections.keys > 0 && archive::is_on(dir)?;
        if self.sections.keys == 0 {
            archive::clear(dir)?;
        }
        self.sections.put(last)?;
        let own = name(last.head.seq);
        for file in dir.list()? {
            if seq(&file.name).is_some() && file.name != own {
                dir.remove(&file.name)?;
            }
        }
        dir.sync()?;
        let logs: Vec<_> = Segments::list(begun)?.files.into_keys().collect();
        archive::retire(begun, &logs, is_archived, None)?;
        self.folder.stand = Some((self.position, None));
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
