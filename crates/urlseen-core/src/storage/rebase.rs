//! Replacement of the whole content of a folder with one snapshot.
//!
//! The snapshot's number is higher than every number in the folder. So the snapshot is the newest,
//! and no record of the old log follows it. It is marked as the start of a history: once it has its
//! final name, nothing older counts. Then the older files are removed. If the folder has an
//! archive, the log goes there first. For an empty filter, the archive is removed before the
//! snapshot counts.

use std::io;

use super::archive;
use super::begun::Begun;
use super::cut::Stand;
use super::history::Segments;
use super::lock::Tenure;
use super::record::HEAD;
use super::snapshot::{self, Role, Sections, Snapshots};
use crate::filter::{Blob, ShardId};
use crate::storage::head::{Head, Position};

/// Writer of the filter that replaces the content of a folder. An unfinished writer changes nothing
/// when it is dropped.
#[derive(Debug)]
pub struct Rebase<'a> {
    /// Writer of the shards. [`Rebase::write`] writes a shard at the position of the filter.
    pub sections: Sections,
    begun: &'a Begun,
    tenure: &'a Tenure,
    /// End of the folder's log. [`Rebase::finish`] sets it.
    stand: &'a mut Option<Stand>,
    pub(super) position: Position,
}

impl<'a> Rebase<'a> {
    pub(super) fn begin(
        begun: &'a Begun,
        tenure: &'a Tenure,
        stand: &'a mut Option<Stand>,
        at: Head,
    ) -> io::Result<Self> {
        let number = unused(begun)?;
        let sections = Sections::begin(begun, Role::Origin)?;
        let position = Position { number, head: at };
        Ok(Self { sections, begun, tenure, stand, position })
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
        let (last, _) = self.sections.seal()?;
        let dir = &self.begun.dir;
        let is_archived = self.sections.keys > 0 && archive::is_on(dir)?;
        if self.sections.keys == 0 {
            archive::clear(dir)?;
        }
        self.sections.put(last)?;
        let own = snapshot::name(last.head.seq);
        for file in dir.list()? {
            if snapshot::seq(&file.name).is_some() && file.name != own {
                dir.remove(&file.name)?;
            }
        }
        dir.sync()?;
        let logs: Vec<_> = Segments::list(self.begun)?.files.into_keys().collect();
        archive::retire(self.begun, &logs, is_archived, None, self.tenure)?;
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
