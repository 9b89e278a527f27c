//! Writer of a snapshot while the log continues. It then drops files that the snapshot makes
//! unneeded.

use std::io;
use std::sync::Arc;

use super::archive;
use super::clock::Moment;
use super::dir::Dir;
use super::header::Header;
use super::lock::{Shared, Turn, Writing};
use super::prune::{self, Pruned, Retention};
use super::snapshot::{Role, Sections, name};
use super::sync::LogHandle;
use crate::filter::{Blob, ShardId};
use crate::storage::head::Position;

/// Writes a snapshot while the log continues, from any thread. If it is dropped unfinished, it
/// leaves no file.
#[derive(Debug)]
pub struct SnapshotWriter {
    sections: Sections,
    // Dropped after `sections`, which removes its file first.
    writing: Writing,
    turn: Turn,
    header: Header,
}

/// A finished snapshot, which counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Name of the snapshot's file.
    pub name: String,
    /// Bytes of the snapshot's file.
    pub bytes: u64,
    /// Names of the files that were dropped for it.
    pub(crate) pruned: Vec<String>,
    /// True if `horizon_bytes` made the folder reach back less far than it should.
    pub cut_by_bytes: bool,
}

impl SnapshotWriter {
    pub(super) fn new(
        dir: &Dir,
        header: &Header,
        (shared, turn): (Arc<Shared>, Turn),
    ) -> io::Result<Self> {
        let writing = Writing::start(shared)?;
        let sections = Sections::begin(dir, Role::Later, header)?;
        Ok(Self { sections, writing, turn, header: header.clone() })
    }

    /// Returns the shards to write, in order.
    pub fn shards(&self) -> impl Iterator<Item = ShardId> + use<> {
        self.sections.shards()
    }

    /// Writes a shard as it is at `at`. Shards come in order. The writer calls `pause` repeatedly;
    /// if that fails, the writing fails.
    ///
    /// # Panics
    /// If it is another shard's turn.
    pub fn write(
        &mut self,
        shard: ShardId,
        at: Position,
        blob: &dyn Blob,
        pause: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        self.sections.write(shard, at, blob, pause)
    }

    /// Notes the tombstones of a shard at the time when the shard was copied. Each is the 128 bits
    /// that the layout makes of a fingerprint.
    pub fn tombstones(&mut self, shard: ShardId, ids: &[u128]) {
        self.sections.tombstones(shard, ids);
    }

    /// Puts the snapshot and the log up to it on the disk, makes the snapshot count, and drops
    /// files that are not needed any more.
    ///
    /// # Errors
    /// If the disk fails, the log has failed before, or the filter was recovered since the snapshot
    /// was begun. The snapshot leaves no file then, unless the failure came while it dropped old
    /// files.
    ///
    /// # Panics
    /// If a shard was not written.
    pub fn finish(self, log: &LogHandle, retention: &Retention) -> io::Result<Finished> {
        self.finish_at(log, retention, Moment::now)
    }

    /// Finishes the snapshot by another clock.
    pub(super) fn finish_at(
        mut self,
        log: &LogHandle,
        retention: &Retention,
        now: impl FnOnce() -> Moment,
    ) -> io::Result<Finished> {
        let (last, bytes) = self.sections.seal()?;
        log.sync_to(last.number)?;
        let (shared, dir, header) = (&self.writing.0, &self.sections.dir().clone(), &self.header);
        let kept = {
            // No recovery can begin from here on.
            let _turn = shared.still(self.turn)?;
            self.sections.put(last)?;
            prune::prune(dir, header, retention, now())?
        };
        let Pruned { files: pruned, cut_by_bytes, retiring, start } = kept;
        archive::retire(dir, header.filter(), &retiring, start, (shared, self.turn))?;
        Ok(Finished { name: name(last.head.seq), bytes, pruned, cut_by_bytes })
    }
}
