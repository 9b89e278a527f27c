//! Replaces the whole content of a folder with one snapshot.
//!
//! The snapshot's number is higher than every number in the folder. So it is the newest, and no
//! record of the old log follows it. It is marked as the start of a history: once it has its final
//! name, nothing older counts. Then the older files go. The log goes to the archive, if there is
//! one. For an empty filter, however, the archive is removed, before the snapshot counts.

use std::io;
use std::sync::Arc;

use super::archive;
use super::cut::Stand;
use super::dir::Dir;
use super::header::Header;
use super::history::Segments;
use super::lock::{Shared, Turn};
use super::record::HEAD;
use super::segment;
use super::snapshot::{self, Role, Sections, Snapshots};
use crate::filter::{Blob, ShardId};
use crate::storage::head::{Head, Position};

/// Writes the filter that replaces the content of a folder. If it is dropped unfinished, it changes
/// nothing.
#[derive(Debug)]
pub struct Rebase<'a> {
    sections: Sections,
    /// Id of the filter in the folder.
    filter: u64,
    shared: (Arc<Shared>, Turn),
    /// The folder's note about the end of its log, set at the end.
    stand: &'a mut Option<Stand>,
    position: Position,
    /// Fingerprints written so far.
    keys: u64,
}

impl<'a> Rebase<'a> {
    pub(super) fn begin(
        dir: &Dir,
        header: &Header,
        shared: (Arc<Shared>, Turn),
        stand: &'a mut Option<Stand>,
        at: Head,
    ) -> io::Result<Self> {
        let number = unused(dir, header)?;
        let sections = Sections::begin(dir, Role::Origin, header)?;
        let position = Position { number, head: at };
        Ok(Self { sections, filter: header.filter(), shared, stand, position, keys: 0 })
    }

    /// Returns the position of the filter.
    #[cfg(test)]
    pub(crate) fn position(&self) -> Position {
        self.position
    }

    /// Returns the shards to write, in order.
    pub fn shards(&self) -> impl Iterator<Item = ShardId> + use<> {
        self.sections.shards()
    }

    /// Writes a shard. Shards come in order.
    ///
    /// # Panics
    /// If it is another shard's turn.
    pub fn write(&mut self, shard: ShardId, blob: &dyn Blob) -> io::Result<()> {
        self.keys += blob.keys();
        self.sections.write(shard, self.position, blob, &mut || Ok(()))
    }

    /// Notes a shard's tombstones, as [`SnapshotWriter::tombstones`] does.
    ///
    /// [`SnapshotWriter::tombstones`]: super::SnapshotWriter::tombstones
    pub fn tombstones(&mut self, shard: ShardId, ids: &[u128]) {
        self.sections.tombstones(shard, ids);
    }

    /// Replaces everything else in the folder. Returns the position for
    /// [`Folder::journal`](super::Folder::journal).
    ///
    /// # Panics
    /// If a shard was not written.
    pub fn finish(mut self) -> io::Result<Position> {
        let (last, _) = self.sections.seal()?;
        let is_archived = self.keys > 0 && archive::is_on(self.sections.dir())?;
        if self.keys == 0 {
            archive::clear(self.sections.dir())?;
        }
        self.sections.put(last)?;
        let dir = self.sections.dir();
        let own = snapshot::name(last.head.seq);
        for file in dir.list()? {
            if snapshot::seq(&file.name).is_some() && file.name != own {
                dir.remove(&file.name)?;
            }
        }
        dir.sync()?;
        let segments = Segments::list(dir)?;
        let logs: Vec<_> = segments.iter().map(|(follows, _)| segment::name(follows)).collect();
        if is_archived {
            let (shared, turn) = &self.shared;
            archive::retire(dir, self.filter, &logs, None, (shared, *turn))?;
        } else {
            logs.iter().try_for_each(|log| dir.remove(log))?;
            dir.sync()?;
        }
        *self.stand = Some((self.position, None));
        Ok(self.position)
    }
}

/// Returns a number above that of every record and snapshot. A file cannot have more records than
/// record heads fit into it.
fn unused(dir: &Dir, header: &Header) -> io::Result<u64> {
    let segments = Segments::list(dir)?;
    let records = segments.iter().map(|(follows, len)| follows.saturating_add(len / HEAD as u64));
    let snapshots = Snapshots::list(dir, header)?.sound;
    let snapshots = snapshots.iter().map(|snapshot| snapshot.last.number);
    Ok(records.chain(snapshots).max().unwrap_or(0).saturating_add(1))
}
