//! Storage folder of a filter in this process's memory: the log, snapshots, recovery.
//!
//! It logs judged batches, and recovers the filter to a batch that the caller names. It never
//! connects to Redis. All functions here wait for the disk. [`Storage`] is a thread that does so
//! for a task that must not wait.

mod error;
mod local;
mod recovering;
mod thread;

use std::io;

use crate::engine::{Engine, Handle};
use crate::item::batch::{Batch, Judged, Ready};
pub use error::MismatchError;
pub use local::Local;
pub use recovering::{How, Recovery};
pub(crate) use thread::Recorded;
pub use thread::{Reach, Storage, StorageDied, Stored};
use urlseen_core::fingerprint::Fingerprint;
pub use urlseen_core::storage::Footprint;
use urlseen_core::storage::{
    Checkpoint, FilterStorage, Finished, Folder, Head, Moment, Position, StoragePolicy, StorageSpec,
};

/// Settings of a filter's storage.
#[derive(Debug, Clone)]
pub struct Keeping {
    /// Spec for creating a new folder.
    pub spec: StorageSpec,
    /// Syncs, snapshots and archive of the folder.
    pub policy: StoragePolicy,
    /// True to use a filter that lacks batches that Redis has. Then URLs are emitted again.
    pub emit_again: bool,
}

/// Change of a fingerprint outside of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// The fingerprint is seen from now on.
    Add,
    /// The fingerprint passes again.
    Forget,
}

/// The storage of a filter that the engine's threads have in memory, and its place in the crawl.
#[derive(Debug)]
pub struct Store {
    kept: FilterStorage<Handle>,
    /// Spec for creating a new folder.
    spec: StorageSpec,
    /// True to use a filter that lacks batches that Redis has.
    emit_again: bool,
    /// The filter's head, while no batch is between log and commit.
    at: Option<Head>,
}

/// Entry that is to be written to the log.
#[derive(Debug)]
pub(crate) enum Write<Of> {
    /// A batch of the crawl, the successor of the last one.
    Batch(Batch<Judged>),
    /// The new keys of a batch that belongs to no crawl.
    Keys(Batch<Judged>),
    /// Answers outside of batches, and their changes in order. They do not depend on commits.
    Changes(Of, Vec<(Change, Fingerprint)>),
}

/// Write that waits for the end of its group.
enum Unproved<Of> {
    /// A batch that needs its record.
    Batch(Batch<Judged>),
    /// Any other write, which does not need its record.
    Done(Written<Of>),
}

/// Entry that is in the log.
#[derive(Debug)]
// Nearly all entries are batches.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Written<Of> {
    /// The batch can be committed.
    Batch(Batch<Ready>),
    /// The keys are in the log, which is at this position.
    Keys(Position),
    /// The changes are in the log, which is at this position.
    Changes(Of, Position),
}

impl Store {
    /// Persists a filter in `folder`. The filter judges nothing before [`Store::recover_to`] or
    /// [`Store::recover`].
    pub fn new(engine: &Engine, folder: Folder, keeping: Keeping) -> Self {
        let Keeping { spec, policy, emit_again } = keeping;
        let kept = FilterStorage::new(engine.handle(), folder, policy);
        Self { kept, spec, emit_again, at: None }
    }

    /// Writes batches and changes, in their order. They have been written when this returns, and
    /// are on the disk if that is asked for.
    pub(crate) fn write<Of>(
        &mut self,
        all: impl IntoIterator<Item = Write<Of>>,
    ) -> io::Result<Vec<Written<Of>>> {
        let Self { kept, at, .. } = self;
        let mut group = kept.journal()?.group();
        let mut unproved = Vec::new();
        for write in all {
            unproved.push(match write {
                Write::Batch(batch) => {
                    *at = None;
                    group.append(batch.added())?;
                    Unproved::Batch(batch)
                }
                Write::Keys(batch) => {
                    Unproved::Done(Written::Keys(group.append_adds(batch.added())?))
                }
                Write::Changes(of, changes) => {
                    for run in changes.chunk_by(|(one, _), (next, _)| one == next) {
                        let fingerprints: Vec<_> = run.iter().map(|(_, it)| it.clone()).collect();
                        match run[0].0 {
                            Change::Add => group.append_adds(&fingerprints)?,
                            Change::Forget => group.append_forgets(&fingerprints)?,
                        };
                    }
                    Unproved::Done(Written::Changes(of, group.position()))
                }
            });
        }
        let mut records = group.finish()?.into_iter();
        let proved = unproved.into_iter().filter_map(|write| match write {
            Unproved::Batch(batch) => {
                records.next().map(|record| Written::Batch(batch.logged(&record)))
            }
            Unproved::Done(written) => Some(written),
        });
        Ok(proved.collect())
    }

    /// Writes a batch of the crawl, as the successor of the last one. The batch is written when
    /// this returns.
    ///
    /// # Errors
    /// The disk fails.
    pub fn append(&mut self, batch: Batch<Judged>) -> io::Result<Batch<Ready>> {
        self.at = None;
        let journal = self.kept.journal()?;
        let record = journal.append(journal.position().head, batch.added())?;
        Ok(batch.logged(&record))
    }

    /// Cuts off the batches after `head`: see [`FilterStorage::cut`].
    pub fn cut(&mut self, head: Head) -> io::Result<()> {
        self.kept.cut(head).inspect_err(|_| self.at = None)
    }

    /// Records the progress of imports. The keys before it were already added. The keys and the
    /// checkpoints are on the disk when this returns.
    pub(crate) fn record_checkpoints(&mut self, checkpoints: &[Checkpoint]) -> io::Result<()> {
        self.kept.journal()?.sync()?;
        self.kept.folder_mut().record_checkpoints(checkpoints)
    }

    /// Ends the run: leaves the folder at `head`, the last committed batch, with everything on the
    /// disk. Without `head`, all logged batches stay.
    pub fn rest(&mut self, head: Option<Head>) -> io::Result<()> {
        self.kept.close(head)
    }

    /// Ends a flow after its last keys, with these checkpoints. If a snapshot is under way, returns
    /// its end in addition to the result.
    pub(crate) fn end_flow(
        &mut self,
        checkpoints: &[Checkpoint],
    ) -> (Option<io::Result<Finished>>, io::Result<()>) {
        let snapshot = self.kept.wait_for_snapshot();
        let recorded = match checkpoints {
            [] => Ok(()),
            checkpoints => self.record_checkpoints(checkpoints),
        };
        (snapshot, recorded.and_then(|()| self.rest(None)))
    }

    /// Begins a snapshot: see [`FilterStorage::begin_snapshot`].
    ///
    /// # Errors
    /// The same errors as [`FilterStorage::begin_snapshot`].
    pub fn begin_snapshot(&mut self, horizon: Option<Moment>) -> io::Result<()> {
        self.kept.begin_snapshot(horizon)
    }

    /// Returns the contents of the folder.
    pub fn footprint(&self) -> Footprint {
        self.kept.footprint()
    }

    /// Records that `run` is about to take the lease. Returns the earlier runs. They have ended:
    /// each held the folder's lock, which this process holds now.
    pub fn announce(&mut self, run: u64) -> io::Result<Vec<u64>> {
        let folder = self.kept.folder_mut();
        let dead: Vec<u64> = folder.runs().into_iter().filter(|&other| other != run).collect();
        let all: Vec<u64> = std::iter::once(run).chain(dead.iter().copied()).collect();
        folder.record_runs(&all)?;
        Ok(dead)
    }
}
