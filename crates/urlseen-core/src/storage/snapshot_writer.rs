//! Writer of a snapshot. After the snapshot, it removes files that are no longer needed.

use std::io;
use std::sync::Arc;

use super::archive;
use super::begun::Begun;
use super::clock::Moment;
use super::lock::Tenure;
use super::prune::{self, Pruned, Retention};
use super::snapshot::{Role, Sections, name};
use super::sync::Unsynced;

/// Writer of a snapshot, on any thread, while the log continues. An unfinished writer leaves no
/// file when it is dropped.
#[derive(Debug)]
pub struct SnapshotWriter {
    /// Writer of the shards of the snapshot.
    pub sections: Sections,
    begun: Begun,
    tenure: Tenure,
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
    pub(super) fn new(begun: &Begun, tenure: &Tenure, log: &Arc<Unsynced>) -> io::Result<Self> {
        let token = tenure.snapshot_token()?;
        let sections = Sections::begin(begun, Role::Later)?;
        let (begun, tenure, log) = (begun.clone(), tenure.clone(), Arc::clone(log));
        Ok(Self { sections, begun, tenure, log, _token: token })
    }

    /// Syncs the log and the snapshot, gives the file its final name, and removes files that are no
    /// longer needed.
    ///
    /// # Errors
    /// If the disk fails, the log has failed before, or the filter was recovered since the snapshot
    /// was begun. The folder then has no file of this snapshot, except if the removal of old files
    /// failed.
    ///
    /// # Panics
    /// If a shard was not written.
    pub fn finish(self, retention: &Retention) -> io::Result<Finished> {
        self.finish_at(retention, Moment::now)
    }

    /// Finishes the snapshot like `finish`, with another clock.
    pub(super) fn finish_at(
        mut self,
        retention: &Retention,
        now: impl FnOnce() -> Moment,
    ) -> io::Result<Finished> {
        let (last, bytes) = self.sections.seal()?;
        self.log.sync_to(last.number)?;
        let kept = {
            // While this guard exists, no recovery can begin.
            let _turn = self.tenure.still()?;
            self.sections.put(last)?;
            prune::prune(&self.begun, retention, now())?
        };
        let Pruned { files: pruned, cut_by_bytes, logs, is_archived, start } = kept;
        archive::retire(&self.begun, &logs, is_archived, start, &self.tenure)?;
        Ok(Finished { name: name(last.head.seq), bytes, pruned, cut_by_bytes })
    }
}
