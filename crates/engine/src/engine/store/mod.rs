//! Storage folder of a filter in this process's memory: the log, snapshots, recovery.
//!
//! The storage logs judged batches, and recovers the filter to a batch that the caller names. It
//! never connects to Redis. All functions of [`Store`] wait for the disk. A task that must not wait
//! uses [`Storage`], which calls them on a thread of its own.

mod fit;
mod local;
mod recovering;
mod restoring;
mod thread;

use std::io;

use crate::engine::{Engine, Handle};
pub use fit::{CrawlPosition, MismatchError};
pub use local::Local;
pub use recovering::{How, Recovery};
#[cfg(feature = "simulation")]
pub(super) use thread::StorageThread;
pub(in crate::engine) use thread::Write;
pub use thread::{Storage, Stored};
use urlseen_storage::{
    Checkpoint, FilterStorage, Finished, Folder, Head, StoragePolicy, StorageSpec,
};
pub use urlseen_storage::{Footprint, Reach};

/// Settings of a filter's storage.
#[derive(Debug, Clone)]
pub struct Keeping {
    /// Spec for creating a new folder.
    pub spec: StorageSpec,
    /// Settings of the folder's syncs, snapshots and archive.
    pub policy: StoragePolicy,
    /// True to use a filter even if it lacks batches that Redis has. URLs of such batches are
    /// emitted again.
    pub emit_again: bool,
}

/// Storage of a filter that is in the memory of the engine's threads.
#[derive(Debug)]
pub struct Store {
    /// The folder with its log and snapshots. To cut the log, call [`Store::cut`].
    pub kept: FilterStorage<Handle>,
    /// Spec for creating a new folder.
    spec: StorageSpec,
    /// True to use a filter even if it lacks batches that Redis has.
    emit_again: bool,
    /// Head of the filter after a recovery; `None` once a later batch was logged.
    at: Option<Head>,
}

impl Store {
    /// Makes the storage of a filter in `folder`. The filter judges nothing before
    /// [`Store::recover_to`] or [`Store::recover`].
    pub(crate) fn new(engine: &Engine, folder: Folder, keeping: Keeping) -> Self {
        let Keeping { spec, policy, emit_again } = keeping;
        let kept = FilterStorage::new(engine.handle.clone(), folder, policy);
        Self { kept, spec, emit_again, at: None }
    }

    /// Cuts off the batches after `head`: see [`FilterStorage::cut`].
    pub fn cut(&mut self, head: Head) -> io::Result<()> {
        self.kept.cut(head).inspect_err(|_| self.at = None)
    }

    /// Records the progress of imports. The keys up to each checkpoint were already added. Keys and
    /// checkpoints are on the disk when the call returns.
    pub(crate) fn record_checkpoints(&mut self, checkpoints: &[Checkpoint]) -> io::Result<()> {
        self.kept.journal()?.sync()?;
        self.kept.folder.note(|notes| notes.add(checkpoints))
    }

    /// Ends a flow whose keys are all logged, and records these checkpoints. If a snapshot is due,
    /// takes it, because a short flow ends before the driver can begin one. Returns the result of
    /// the last snapshot as the first value.
    pub(crate) fn end_flow(
        &mut self,
        checkpoints: &[Checkpoint],
    ) -> (Option<io::Result<Finished>>, io::Result<()>) {
        let earlier = self.kept.ended_snapshot(true);
        let snapshot = self.begin_due_snapshot(Reach::Alone).err().map(Err);
        let snapshot = snapshot.or_else(|| self.kept.ended_snapshot(true)).or(earlier);
        let recorded = match checkpoints {
            [] => Ok(()),
            checkpoints => self.record_checkpoints(checkpoints),
        };
        (snapshot, recorded.and_then(|()| self.kept.close(None)))
    }

    /// Begins a snapshot, if it is time for one.
    fn begin_due_snapshot(&mut self, reach: Reach) -> io::Result<()> {
        if self.kept.wants_snapshot() { self.kept.begin_snapshot(reach) } else { Ok(()) }
    }
}
