//! The local store: the filter in this process's memory, and what is kept of it in a folder.
//!
//! Knows when what is judged is logged, when it is set, and how the filter is recovered to a
//! batch that somebody else names. It never talks to Redis.

mod error;
mod footprint;
mod recovering;
mod snapshotting;

use std::io;
use std::path::Path;
use std::time::{Instant, SystemTime};

use crate::config::Fsync;
use crate::engine::Engine;
use crate::item::batch::{Batch, Judged, Logged};
pub use error::MismatchError;
pub use footprint::Footprint;
pub use recovering::{How, Recovery};
use snapshotting::Snapshotting;
use urlseen_core::filter::id::RandomId;
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::storage::descriptors::{self, Waits};
use urlseen_core::storage::{
    Checkpoint, Finished, Folder, Head, Journal, Log, Moment, Position, Requests, Retention,
    Standing, StorageSpec, Volatile,
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

/// The filter, what judges by it, and what is kept of it.
#[derive(Debug)]
pub struct Local {
    /// Ended before the engine that it copies from.
    snapshotting: Option<Snapshotting>,
    /// Judges.
    pub engine: Engine,
    memory: StoreKind,
}

/// What is written down of a fingerprint that no batch has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is seen from now on.
    Add,
    /// It is to pass once more.
    Forget,
}

#[derive(Debug)]
enum StoreKind {
    /// Nothing is kept.
    Volatile(Volatile),
    /// A folder.
    Kept(Box<Kept>),
    /// Redis has the filter; here it is but numbered what goes there.
    Shared {
        log: Volatile,
        /// The id of the filter.
        filter: RandomId,
    },
}

#[derive(Debug)]
struct Kept {
    folder: Folder,
    keeping: Keeping,
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

impl Local {
    /// A filter of which nothing is kept.
    pub fn volatile(engine: Engine) -> Self {
        Self { snapshotting: None, engine, memory: StoreKind::Volatile(Volatile::default()) }
    }

    /// The filter of this id, which Redis has.
    pub fn shared(engine: Engine, filter: RandomId) -> Self {
        let memory = StoreKind::Shared { log: Volatile::default(), filter };
        Self { snapshotting: None, engine, memory }
    }

    /// Where Redis has the filter: nothing is known to be seen any more.
    pub fn evict_seen(&mut self) {
        self.engine.evict_seen();
    }

    /// A filter kept in `folder`; [`Local::recover_to`] or [`Local::recover`] comes before
    /// anything is judged by it.
    pub fn kept(engine: Engine, folder: Folder, keeping: Keeping) -> Self {
        let kept = Kept {
            folder,
            keeping,
            journal: None,
            at: None,
            logged: 0,
            last_snapshot: None,
            snapshot_at: 0,
            not_before: None,
            waits: Waits::default(),
            archive: Standing::default(),
        };
        Self { snapshotting: None, engine, memory: StoreKind::Kept(Box::new(kept)) }
    }

    /// Writes a batch down as the one that follows `base`. It has been written when this returns.
    pub fn append(&mut self, base: Head, batch: Batch<Judged>) -> io::Result<Logged> {
        let record = match &mut self.memory {
            StoreKind::Volatile(log) | StoreKind::Shared { log, .. } => {
                log.append(base, batch.added())?
            }
            StoreKind::Kept(kept) => {
                kept.at = None;
                kept.journal()?.append(base, batch.added())?
            }
        };
        Ok(batch.with_proof(record))
    }

    /// Takes note that a batch is committed: only now are its fingerprints seen.
    pub fn committed(&mut self, batch: &Logged) {
        self.engine.committed(batch.proof().position());
    }

    /// Adds what a batch has that is new, whatever becomes of the crawl's batches: its fingerprints
    /// are written down, and then are seen.
    pub(crate) fn add(&mut self, batch: &Batch<Judged>) -> io::Result<()> {
        let at = match &mut self.memory {
            StoreKind::Volatile(_) | StoreKind::Shared { .. } => Position::START,
            StoreKind::Kept(kept) if batch.added().is_empty() => kept.journal()?.position(),
            StoreKind::Kept(kept) => kept.journal()?.append_adds(batch.added())?,
        };
        self.engine.committed(at);
        Ok(())
    }

    /// Writes down what a thread of the engine has answered outside of batches, whatever becomes of
    /// those: what is seen from now on, and what is to pass once more, in its order. It has been
    /// written when this returns, and is set soon.
    pub(crate) fn record(
        &mut self,
        owner: usize,
        changes: impl Iterator<Item = (Change, Fingerprint)>,
    ) -> io::Result<()> {
        let mut changes = changes.peekable();
        while let Some((change, fingerprint)) = changes.next() {
            let mut run = vec![fingerprint];
            while let Some((_, next)) = changes.next_if(|&(other, _)| other == change) {
                run.push(next);
            }
            if let StoreKind::Kept(kept) = &mut self.memory {
                let journal = kept.journal()?;
                match change {
                    Change::Add => journal.append_adds(&run)?,
                    Change::Forget => journal.append_forgets(&run)?,
                };
            }
        }
        let at = match &mut self.memory {
            // What is logged and not committed lies before it, and is not in the filter.
            _ if self.engine.uncommitted() > 0 => None,
            StoreKind::Volatile(_) | StoreKind::Shared { .. } => Some(Position::START),
            StoreKind::Kept(kept) => Some(kept.journal()?.position()),
        };
        self.engine.remember(owner, at);
        Ok(())
    }

    /// Aborts the batches that were judged and not committed, here and in the log: `head` is the
    /// last one committed, and the next batch follows it.
    pub fn abort(&mut self, head: Head) -> io::Result<()> {
        self.engine.abort();
        let StoreKind::Kept(kept) = &mut self.memory else { return Ok(()) };
        kept.journal()?.cut(head)?;
        Ok(())
    }

    /// Fails if what was logged is lost to the next start, as far as that can be seen at a glance.
    pub fn check(&self) -> io::Result<()> {
        let StoreKind::Kept(kept) = &self.memory else { return Ok(()) };
        kept.journal.as_ref().map_or(Ok(()), Journal::check)
    }

    /// Whether the log has grown so long that a snapshot should be begun, and none is under way.
    pub fn wants_snapshot(&self) -> bool {
        let StoreKind::Kept(kept) = &self.memory else { return false };
        let may = kept.not_before.is_none_or(|time| time <= Instant::now());
        let is_due = |journal: &Journal| may && journal.bytes() >= kept.snapshot_at;
        self.snapshotting.is_none() && kept.journal.as_ref().is_some_and(is_due)
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
        let StoreKind::Kept(kept) = &mut self.memory else { return Ok(()) };
        let every = kept.keeping.every(&self.engine);
        let bytes = kept.journal()?.bytes();
        kept.snapshot_at = bytes + every;
        // First: an attempt that cannot open this file must not leave one more file of the log.
        let writer = kept.folder.snapshot_writer()?;
        let journal = kept.journal()?;
        journal.roll()?;
        let log = journal.handle();
        let retention = Retention { horizon, horizon_bytes: kept.keeping.horizon_bytes };
        let begun = Snapshotting::begin(self.engine.handle(), writer, log, retention)?;
        self.snapshotting = Some(begun);
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
        match (&mut self.memory, finished) {
            (StoreKind::Kept(kept), Some(Ok(_))) => {
                kept.last_snapshot = Some(SystemTime::now());
                kept.waits = Waits::default();
            }
            (_, Some(Err(error))) => self.put_off(Some(error)),
            _ => {}
        }
    }

    /// After a snapshot that failed for want of file descriptors, the next one is due soon.
    fn put_off(&mut self, error: Option<&io::Error>) {
        let StoreKind::Kept(kept) = &mut self.memory else { return };
        let is_soon = error.is_some_and(descriptors::are_exhausted);
        kept.not_before = is_soon.then(|| Instant::now() + kept.waits.grow());
        if is_soon {
            kept.snapshot_at = kept.journal.as_ref().map_or(0, Journal::bytes);
        }
    }

    /// Begins a snapshot where the log has grown long, without a Redis that says how far it may
    /// come back; says why none could be taken, if that is so.
    pub fn tend(&mut self) -> Option<io::Error> {
        if let Some(Err(error)) = self.finished_snapshot() {
            return Some(error);
        }
        if self.wants_snapshot() { self.begin_snapshot(self.horizon()).err() } else { None }
    }

    /// Where batches were committed, the folder goes on reaching back as far as it does; else there
    /// is nothing to come back to.
    fn horizon(&self) -> Option<Moment> {
        let StoreKind::Kept(kept) = &self.memory else { return None };
        let is_of = |journal: &Journal| journal.position().head != Head::START;
        let has_batches = kept.journal.as_ref().is_some_and(is_of);
        (!has_batches).then(Moment::now)
    }

    /// How far imports into the filter came.
    pub fn checkpoints(&self) -> Vec<Checkpoint> {
        match &self.memory {
            StoreKind::Volatile(_) | StoreKind::Shared { .. } => Vec::new(),
            StoreKind::Kept(kept) => kept.folder.checkpoints(),
        }
    }

    /// Records how far imports came: all that lies before was added. It and the checkpoints are on
    /// the disk when this returns.
    pub(crate) fn record_checkpoints(&mut self, checkpoints: &[Checkpoint]) -> io::Result<()> {
        let StoreKind::Kept(kept) = &mut self.memory else { return Ok(()) };
        kept.journal()?.sync()?;
        kept.folder.record_checkpoints(checkpoints)
    }

    /// The run ends, with `head` as the last batch committed: leaves the folder as Redis is, and
    /// all of it on the disk.
    pub fn rest(&mut self, head: Head) -> io::Result<()> {
        self.snapshotting = None;
        let StoreKind::Kept(kept) = &mut self.memory else { return Ok(()) };
        match kept.journal.take() {
            Some(journal) => journal.close(head).map(drop),
            None => Ok(()),
        }
    }

    /// The same where no Redis names the last batch.
    pub fn rest_as_it_is(&mut self) -> io::Result<()> {
        let StoreKind::Kept(kept) = &mut self.memory else { return Ok(()) };
        match &kept.journal {
            Some(journal) => {
                let head = journal.position().head;
                self.rest(head)
            }
            None => Ok(()),
        }
    }

    /// The folder that it is kept in, and what its disk has not answered.
    pub fn disk(&self) -> Option<(&Path, &Requests)> {
        let StoreKind::Kept(kept) = &self.memory else { return None };
        Some((kept.folder.dir(), kept.folder.requests()))
    }

    /// The id of the filter, where it is kept and not new.
    pub fn filter(&self) -> Option<RandomId> {
        let StoreKind::Kept(kept) = &self.memory else { return None };
        kept.folder.header().map(|header| RandomId::new(header.filter()))
    }

    /// Records that `run` is about to take the lease; the runs before it are dead, as they held
    /// the folder's lock, and this process does now.
    pub fn announce(&mut self, run: u64) -> io::Result<Vec<u64>> {
        let StoreKind::Kept(kept) = &mut self.memory else { return Ok(Vec::new()) };
        let dead: Vec<u64> = kept.folder.runs().into_iter().filter(|&other| other != run).collect();
        let all: Vec<u64> = std::iter::once(run).chain(dead.iter().copied()).collect();
        kept.folder.record_runs(&all)?;
        Ok(dead)
    }
}

impl Kept {
    /// Closes the log without another word: what was written stays written.
    fn drop_journal(&mut self) {
        self.at = None;
        self.logged += self.journal.take().map_or(0, |journal| journal.bytes());
    }

    fn journal(&mut self) -> io::Result<&mut Journal> {
        let missing = || io::Error::other("the log is not open: the filter was not recovered");
        self.journal.as_mut().ok_or_else(missing)
    }
}

impl Keeping {
    /// By how many bytes the log grows before a snapshot is taken.
    fn every(&self, engine: &Engine) -> u64 {
        let bytes = match self.spec.filter.parameters.sizing() {
            Some(sizing) => sizing.geometry().bytes(),
            None => engine.gauges().whole().map_or(0, |whole| whole.bytes),
        };
        self.snapshot_bytes.max(bytes / SHARE)
    }
}
