//! Writing a snapshot beside the log, and dropping what it makes unneeded.

use std::io;
use std::sync::Arc;

use super::archive;
use super::clock::Moment;
use super::dir::Dir;
use super::header::Header;
use super::lock::{Shared, Turn};
use super::prune::{self, Pruned, Retention};
use super::snapshot::{Role, Sections, name};
use super::sync::LogHandle;
use crate::filter::{Blob, ShardId};
use crate::storage::head::Position;

/// Writes a snapshot beside the log, from any thread. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub struct SnapshotWriter {
    sections: Sections,
    // Ends after `sections`, which then have removed their file.
    writing: Writing,
    turn: Turn,
    header: Header,
}

/// The one snapshot of a folder that is being written.
#[derive(Debug)]
struct Writing(Arc<Shared>);

impl Writing {
    fn start(shared: Arc<Shared>) -> io::Result<Self> {
        shared.start_writing()?;
        Ok(Self(shared))
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.stop_writing();
    }
}

/// A snapshot that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Its file name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// The names of the files that went for it.
    pub(crate) pruned: Vec<String>,
    /// Whether `horizon_bytes` made the folder reach back less far than it should.
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

    /// The shards that are to be written, in order.
    pub fn shards(&self) -> impl Iterator<Item = ShardId> + use<> {
        self.sections.shards()
    }

    /// Writes a shard as it is at `at`. Shards come in order. `pause` is called every now and then;
    /// where it fails, that is the end.
    ///
    /// # Panics
    /// If another shard's turn it is.
    pub fn write(
        &mut self,
        shard: ShardId,
        at: Position,
        blob: &dyn Blob,
        pause: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        self.sections.write(shard, at, blob, pause)
    }

    /// Notes what of a shard was forgotten and has not passed again, when the shard was as it was
    /// written: the 128 bits that the layout makes of each fingerprint.
    pub fn tombstones(&mut self, shard: ShardId, ids: &[u128]) {
        self.sections.tombstones(shard, ids);
    }

    /// Makes the snapshot count, once it and the log up to it are on the disk, and drops what is
    /// not needed any more.
    ///
    /// # Errors
    /// Where the disk fails; where the log is of no use any more; where the filter was brought
    /// elsewhere since the snapshot was begun. Nothing is left behind then, unless it was dropping
    /// what is old that failed.
    ///
    /// # Panics
    /// If a shard was not written.
    pub fn finish(self, log: &LogHandle, retention: &Retention) -> io::Result<Finished> {
        self.finish_at(log, retention, Moment::now)
    }

    /// The same by another clock.
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
            // From here on nobody brings the filter elsewhere.
            let _turn = shared.still(self.turn)?;
            self.sections.put(last)?;
            prune::prune(dir, header, retention, now())?
        };
        let Pruned { files: pruned, cut_by_bytes, retiring, start } = kept;
        archive::retire(dir, header.filter(), &retiring, start, (shared, self.turn))?;
        Ok(Finished { name: name(last.head.seq), bytes, pruned, cut_by_bytes })
    }
}
