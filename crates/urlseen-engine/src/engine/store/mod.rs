//! The storage folder of a filter in this process's memory: the log, snapshots, recovery.
//!
//! Knows when what is judged is logged, and how the filter is recovered to a batch that somebody
//! else names. It never talks to Redis. Everything here waits for the disk; [`Storage`] is the
//! thread that does it for a task that must not wait.

mod error;
mod footprint;
mod local;
mod recovering;
mod snapshotting;
mod thread;

use std::io;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use crate::config::Fsync;
use crate::engine::{Engine, Gauges, Handle};
use crate::item::batch::{Batch, Judged, Ready};
pub use error::MismatchError;
pub use footprint::Footprint;
pub use local::Local;
pub use recovering::{How, Recovery};
use snapshotting::Snapshotting;
pub(crate) use thread::Recorded;
pub use thread::{Reach, Storage, StorageDied, Stored};
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::storage::descriptors::{self, Waits};
use urlseen_core::storage::{
    Checkpoint, Finished, Folder, Head, Journal, Moment, Position, Retention, Standing, StorageSpec,
};

/// The share of the filter's size that the log grows by at least before a snapshot is taken: with
/// more, snapshots of a large filter write much for little; with less, a start replays long logs.
const SHARE: u64 = 8;

/// What a fingerprint usually takes in the log, in bytes.
const LOGGED: u64 = 21;

/// How a filter is kept.
#[derive(Debug, Clone)]
pub struct Keeping {
    /// What a new folder is made for.
    pub spec: StorageSpec,
    /// When the log is flushed to the disk.
    pub fsync: Fsync,
    /// By how many bytes the log grows before a snapshot is taken; an eighth of the filter's size
    /// if that is more.
    pub snapshot_bytes: u64,
    /// How many bytes all files together may have for the sake of going back further.
    pub horizon_bytes: u64,
    /// Whether to go on with less than what Redis knows, or with nothing, where the filter cannot
    /// be recovered to just that.
    pub emit_again: bool,
    /// Whether what is let through is archived; `None` leaves that to the folder.
    pub archive: Option<bool>,
}

/// What is written down of a fingerprint that no batch has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is seen from now on.
    Add,
    /// It is to pass once more.
    Forget,
}

/// The folder of a filter, which the engine's threads have in memory.
#[derive(Debug)]
pub struct Store {
    /// Ended before all else.
    snapshotting: Option<Snapshotting>,
    folder: Folder,
    keeping: Keeping,
    threads: Handle,
    gauges: Arc<Gauges>,
    /// Once the filter stands where the log goes on.
    journal: Option<Journal>,
    /// Where the filter stands, while no batch is between log and commit.
    at: Option<Head>,
    /// Bytes written to logs that were closed since.
    logged: u64,
    /// When the last snapshot was finished.
    last_snapshot: Option<SystemTime>,
    /// How far the log is written, in bytes since it was opened, when the next snapshot is due.
    snapshot_at: u64,
    /// Earliest time of the next snapshot, after one that had no file descriptors.
    not_before: Option<Instant>,
    /// Since the last snapshot that was finished.
    waits: Waits,
    /// The extent of the archive when the log was opened.
    archive: Standing,
}

/// What is to be written to the log.
#[derive(Debug)]
pub(crate) enum Write<Of> {
    /// A batch, which follows the last one.
    Batch(Batch<Judged>),
    /// What was answered outside of batches, and what that changes, whatever becomes of those: what
    /// is seen from now on, and what is to pass once more, in its order.
    Changes(Of, Vec<(Change, Fingerprint)>),
}

/// What the log has.
#[derive(Debug)]
pub(crate) enum Written<Of> {
    /// The batch can be committed.
    Batch(Batch<Ready>),
    /// The changes lead the log to there.
    Changes(Of, Position),
}

impl Store {
    /// A filter kept in `folder`; [`Store::recover_to`] or [`Store::recover`] comes before anything
    /// is judged by it.
    pub fn new(engine: &Engine, folder: Folder, keeping: Keeping) -> Self {
        Self {
            snapshotting: None,
            folder,
            keeping,
            threads: engine.handle(),
            gauges: Arc::clone(engine.gauges()),
            journal: None,
            at: None,
            logged: 0,
            last_snapshot: None,
            snapshot_at: 0,
            not_before: None,
            waits: Waits::default(),
            archive: Standing::default(),
        }
    }

    /// Writes batches and changes down, in their order. They have been written when this returns,
    /// and are on the disk if that is asked for.
    pub(crate) fn write<Of>(
        &mut self,
        all: impl IntoIterator<Item = Write<Of>>,
    ) -> io::Result<Vec<Written<Of>>> {
        let Self { journal, at, .. } = self;
        let mut group = journal.as_mut().ok_or_else(closed)?.group();
        let mut unproved = Vec::new();
        for write in all {
            match write {
                Write::Batch(batch) => {
                    *at = None;
                    group.append(batch.added())?;
                    unproved.push(Write::Batch(batch));
                }
                Write::Changes(of, changes) => {
                    let mut changes = changes.into_iter().peekable();
                    while let Some((change, fingerprint)) = changes.next() {
                        let mut run = vec![fingerprint];
                        while let Some((_, next)) = changes.next_if(|&(other, _)| other == change) {
                            run.push(next);
                        }
                        match change {
                            Change::Add => group.append_adds(&run)?,
                            Change::Forget => group.append_forgets(&run)?,
                        };
                    }
                    unproved.push(Write::Changes((of, group.position()), Vec::new()));
                }
            }
        }
        let mut records = group.finish()?.into_iter();
        let proved = unproved.into_iter().filter_map(|write| match write {
            Write::Batch(batch) => {
                records.next().map(|record| Written::Batch(batch.logged(&record)))
            }
            Write::Changes((of, at), _) => Some(Written::Changes(of, at)),
        });
        Ok(proved.collect())
    }

    /// Writes a batch down as the one that follows the last. It has been written when this returns.
    pub fn append(&mut self, batch: Batch<Judged>) -> io::Result<Batch<Ready>> {
        self.at = None;
        let journal = self.journal()?;
        let record = journal.append(journal.position().head, batch.added())?;
        Ok(batch.logged(&record))
    }

    /// Writes down what a batch has that is new, whatever becomes of the crawl's batches.
    pub(crate) fn add(&mut self, batch: &Batch<Judged>) -> io::Result<Position> {
        let journal = self.journal()?;
        if batch.added().is_empty() {
            return Ok(journal.position());
        }
        journal.append_adds(batch.added())
    }

    /// Cuts off the batches behind `head`, the last one that is committed: the next one follows it.
    pub fn cut(&mut self, head: Head) -> io::Result<()> {
        let cut = self.journal()?.cut(head).map(drop);
        if cut.is_err() {
            // What it holds is known again once the filter is recovered.
            self.drop_journal();
        }
        cut
    }

    /// Fails if what was logged is lost to the next start, as far as that can be seen at a glance.
    pub fn check(&self) -> io::Result<()> {
        self.journal.as_ref().map_or(Ok(()), Journal::check)
    }

    /// Whether the log has grown so long that a snapshot should be begun, and none is under way.
    pub fn wants_snapshot(&self) -> bool {
        let may = self.not_before.is_none_or(|time| time <= Instant::now());
        let is_due = |journal: &Journal| may && journal.bytes() >= self.snapshot_at;
        self.snapshotting.is_none() && self.journal.as_ref().is_some_and(is_due)
    }

    /// Begins a snapshot, which goes on while batches are judged. The folder is to reach back to
    /// `horizon`; as far as it does, if there is none.
    ///
    /// # Errors
    /// Where the disk fails; it is tried again when the log has grown as much again. Without file
    /// descriptors it is tried again soon.
    pub fn begin_snapshot(&mut self, horizon: Option<Moment>) -> io::Result<()> {
        let begun = self.start_snapshot(horizon);
        self.put_off(begun.as_ref().err());
        begun
    }

    fn start_snapshot(&mut self, horizon: Option<Moment>) -> io::Result<()> {
        self.snapshot_at = self.journal()?.bytes() + self.keeping.every(&self.gauges);
        // First: an attempt that cannot open this file must not leave one more file of the log.
        let writer = self.folder.snapshot_writer()?;
        let journal = self.journal()?;
        journal.roll()?;
        let log = journal.handle();
        let retention = Retention { horizon, horizon_bytes: self.keeping.horizon_bytes };
        self.snapshotting =
            Some(Snapshotting::begin(self.threads.clone(), writer, log, retention)?);
        Ok(())
    }

    /// What became of the snapshot under way, once that is known.
    pub fn finished_snapshot(&mut self) -> Option<io::Result<Finished>> {
        let finished = self.snapshotting.take_if(|snapshotting| snapshotting.is_finished())?;
        let finished = finished.join().transpose();
        self.note(finished.as_ref());
        finished
    }

    /// Waits for the snapshot under way.
    pub fn wait_for_snapshot(&mut self) -> Option<io::Result<Finished>> {
        let finished = self.snapshotting.take()?.join().transpose();
        self.note(finished.as_ref());
        finished
    }

    fn note(&mut self, finished: Option<&io::Result<Finished>>) {
        match finished {
            Some(Ok(_)) => {
                self.last_snapshot = Some(SystemTime::now());
                self.waits = Waits::default();
            }
            Some(Err(error)) => self.put_off(Some(error)),
            None => {}
        }
    }

    /// After a snapshot that failed for want of file descriptors, the next one is due soon.
    fn put_off(&mut self, error: Option<&io::Error>) {
        let is_soon = error.is_some_and(descriptors::are_exhausted);
        self.not_before = is_soon.then(|| Instant::now() + self.waits.grow());
        if is_soon {
            self.snapshot_at = self.journal.as_ref().map_or(0, Journal::bytes);
        }
    }

    /// How far the folder is to reach back without a Redis that says so. Where batches were
    /// committed, it goes on reaching back as far as it does; else there is nothing to come back
    /// to.
    fn horizon(&self) -> Option<Moment> {
        let is_of = |journal: &Journal| journal.position().head != Head::START;
        let has_batches = self.journal.as_ref().is_some_and(is_of);
        (!has_batches).then(Moment::now)
    }

    /// How far imports into the filter came.
    pub fn checkpoints(&self) -> Vec<Checkpoint> {
        self.folder.checkpoints()
    }

    /// Records how far imports came: all that lies before was added. It and the checkpoints are on
    /// the disk when this returns.
    pub(crate) fn record_checkpoints(&mut self, checkpoints: &[Checkpoint]) -> io::Result<()> {
        self.journal()?.sync()?;
        self.folder.record_checkpoints(checkpoints)
    }

    /// The run ends, with `head` as the last batch committed: leaves the folder as Redis is, and
    /// all of it on the disk. Without `head`, the last one logged is.
    pub fn rest(&mut self, head: Option<Head>) -> io::Result<()> {
        self.snapshotting = None;
        let Some(journal) = self.journal.take() else { return Ok(()) };
        let head = head.unwrap_or(journal.position().head);
        self.logged += journal.bytes();
        journal.close(head).map(drop)
    }

    /// Records that `run` is about to take the lease; the runs before it are dead, as they held
    /// the folder's lock, and this process does now.
    pub fn announce(&mut self, run: u64) -> io::Result<Vec<u64>> {
        let dead: Vec<u64> = self.folder.runs().into_iter().filter(|&other| other != run).collect();
        let all: Vec<u64> = std::iter::once(run).chain(dead.iter().copied()).collect();
        self.folder.record_runs(&all)?;
        Ok(dead)
    }

    /// Closes the log without another word: what was written stays written.
    fn drop_journal(&mut self) {
        self.at = None;
        self.logged += self.journal.take().map_or(0, |journal| journal.bytes());
    }

    fn journal(&mut self) -> io::Result<&mut Journal> {
        self.journal.as_mut().ok_or_else(closed)
    }
}

fn closed() -> io::Error {
    io::Error::other("the log is not open: the filter was not recovered")
}

impl Keeping {
    /// By how many bytes the log grows before a snapshot is taken.
    fn every(&self, gauges: &Gauges) -> u64 {
        self.snapshot_bytes.max(gauges.fill().bytes / SHARE)
    }
}
