//! Storage of a filter in use: its folder, the open log, and its snapshots.
//!
//! The daemon and the library use this module for their filters. The caller writes the records to
//! the log. All calls block.

mod snapshotting;

use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::clock::Moment;
use super::error::RecoveryError;
use super::folder::Folder;
use super::head::{Head, Position};
use super::header::StorageSpec;
use super::history::Target;
use super::journal::Journal;
use super::prune::{self, ArchiveState, Retention};
use super::recovery::Recovered;
use super::restore::LiveFilter;
use super::snapshot_writer::Finished;
use super::{segment, snapshot};
use snapshotting::Snapshotting;
use urlseen_filter::Generation;
use urlseen_filter::choice::Fsync;
use urlseen_filter::id::RandomId;

/// Before a snapshot, the log grows by at least the snapshot's size divided by this number. With a
/// smaller number, starts would replay long logs. With a larger one, large snapshots would be
/// written for few keys.
const SHARE: u64 = 8;

/// Usual number of bytes of a fingerprint in the log.
const LOGGED: u64 = 21;

/// Policy for the syncs, the snapshots and the archive of a filter's storage.
#[derive(Debug, Clone, Copy)]
pub struct StoragePolicy {
    /// Setting for the syncs of the log.
    pub fsync: Fsync,
    /// Number of bytes by which the log grows before a snapshot is taken. If an eighth of the
    /// filter's size is more, the log grows by that eighth.
    pub snapshot_bytes: u64,
    /// Maximum size of all files together, in bytes. It limits the older states that are kept.
    pub horizon_bytes: u64,
    /// True to archive fingerprints that leave the log; `None` keeps the setting of the folder.
    pub archive: Option<bool>,
}

impl Default for StoragePolicy {
    /// Syncs each second, takes a snapshot after 64 MiB of log and has at most 16 GiB of files.
    fn default() -> Self {
        let (snapshot_bytes, horizon_bytes) = (64 << 20, 16 << 30);
        Self { fsync: Fsync::Interval, snapshot_bytes, horizon_bytes, archive: None }
    }
}

/// Sizes and settings of a storage folder in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footprint {
    /// Path of the folder, `storage.dir`.
    pub dir: PathBuf,
    /// Rule for syncing the log, `storage.fsync`.
    pub fsync: String,
    /// Number of snapshots in the folder.
    pub snapshots: u64,
    /// End of the last snapshot in this run, in RFC 3339.
    pub last_snapshot: Option<String>,
    /// Size of the log in the folder, in bytes.
    pub log_bytes: u64,
    /// Number of bytes written to the log since the start.
    pub written_bytes: u64,
    /// Archive of the folder, if it has one.
    pub archive: Option<ArchiveSize>,
}

/// Size of the archive of a folder in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveSize {
    /// Size of the archive, in bytes.
    pub bytes: u64,
    /// True if the archive and the log together have all fingerprints of the filter.
    pub is_whole: bool,
}

/// Oldest state to which a recovery must still be possible after a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// State at a moment that follows from reports of Redis. `None` keeps all earlier states.
    To(Option<Moment>),
    /// The state that a filter without a source needs: the present one, or the oldest one if the
    /// folder has committed batches.
    Alone,
}

/// Storage folder of a filter in use, with its log and its snapshots.
#[derive(Debug)]
pub struct FilterStorage<F> {
    /// Dropped before all other fields.
    snapshotting: Option<Snapshotting<F>>,
    /// The storage folder. To recover or replace its filter, call the methods of this type.
    pub folder: Folder,
    policy: StoragePolicy,
    filter: F,
    /// The open log; `None` until the filter is recovered.
    journal: Option<Journal>,
    /// Generation of the last log that was closed, if the fingerprints expire.
    generation: Option<Generation>,
    /// Bytes written to logs that were closed since the start.
    logged: u64,
    last_snapshot: Option<String>,
    /// Size of the open log, in bytes, at which the next snapshot is due.
    snapshot_at: u64,
    /// Size and completeness of the archive when the log was opened.
    archive: ArchiveState,
}

impl<F: LiveFilter> FilterStorage<F> {
    /// Joins an empty filter and its folder. Call [`FilterStorage::recover`] before anything is
    /// written.
    pub fn new(filter: F, folder: Folder, policy: StoragePolicy) -> Self {
        Self {
            snapshotting: None,
            folder,
            policy,
            filter,
            journal: None,
            generation: None,
            logged: 0,
            last_snapshot: None,
            snapshot_at: 0,
            archive: ArchiveState::default(),
        }
    }

    /// Returns the open log.
    ///
    /// # Errors
    /// The filter was not recovered, or an earlier failure closed the log.
    pub fn journal(&mut self) -> io::Result<&mut Journal> {
        let closed = || io::Error::other("the log is not open: the filter was not recovered");
        self.journal.as_mut().ok_or_else(closed)
    }

    /// Recovers the filter to `target`, and opens the log to continue there: see
    /// [`Folder::recover`]. In a new folder, begins the empty filter of `spec` at `target`.
    ///
    /// # Errors
    /// The errors of [`Folder::recover`].
    pub fn recover(
        &mut self,
        spec: &StorageSpec,
        target: Target,
    ) -> Result<Recovered, RecoveryError> {
        self.snapshotting = None;
        self.drop_journal();
        if self.folder.header().is_none() {
            let at = if let Target::At(at) = target { at } else { Head::START };
            self.folder.begin(spec, RandomId::random(), at)?;
        }
        // A snapshot prunes the log, so the archive must be turned on or off before that.
        if let Some(archive) = self.policy.archive {
            self.folder.keep_archive(archive)?;
        }
        let recovered = self.folder.recover(target, &mut self.filter)?;
        self.open(recovered.position)?;
        // A snapshot should soon cover the part of the log that was replayed.
        self.snapshot_at = self.snapshot_at.saturating_sub(recovered.fingerprints * LOGGED);
        Ok(recovered)
    }

    /// Replaces the content of the folder with the filter in memory, whose head becomes `at`.
    /// Before that, empties the filter if `empties` is true. After a failure, the call can be
    /// repeated. Returns `None` if the filter does not exist any more.
    ///
    /// # Errors
    /// The disk fails.
    pub fn rebase(&mut self, at: Head, empties: bool) -> io::Result<Option<Position>> {
        self.snapshotting = None;
        self.drop_journal();
        if empties {
            self.filter.clear();
        }
        let mut rebase = self.folder.rebase(at)?;
        let at = Some(rebase.position);
        if !rebase.sections.copy(&self.filter, at, &mut || Ok(()))? {
            return Ok(None);
        }
        let position = rebase.finish()?;
        self.open(position)?;
        Ok(Some(position))
    }

    /// Sets the filter's position, and opens the log to continue there.
    fn open(&mut self, position: Position) -> io::Result<()> {
        self.filter.stand(position);
        self.journal = Some(self.folder.journal(position, self.policy.fsync)?);
        if let Some(generation) = self.generation {
            // An earlier state of the filter may be in an earlier generation.
            self.journal()?.begin_generation(generation)?;
            self.filter.begin_generation(generation);
        }
        self.archive = self.folder.archive()?;
        self.snapshot_at = self.every();
        Ok(())
    }

    /// Cuts off the batches after `head`, the last committed batch. The next batch follows `head`.
    ///
    /// # Errors
    /// The disk fails. After that, the filter must be recovered.
    pub fn cut(&mut self, head: Head) -> io::Result<()> {
        let cut = self.journal()?.cut(head);
        if cut.is_err() {
            self.drop_journal();
        }
        cut.map(drop)
    }

    /// Drops the batches after `head`, syncs the log and closes it. Without a `head`, drops no
    /// batch.
    ///
    /// # Errors
    /// The disk fails.
    pub fn close(&mut self, head: Option<Head>) -> io::Result<()> {
        self.snapshotting = None;
        let Some(journal) = self.journal.take() else { return Ok(()) };
        let head = head.unwrap_or(journal.position().head);
        self.logged += journal.bytes();
        journal.close(head).map(drop)
    }

    /// Closes the log without a cut or a sync.
    fn drop_journal(&mut self) {
        if let Some(journal) = self.journal.take() {
            self.logged += journal.bytes();
            self.generation = journal.generation();
        }
    }
}

/// Snapshots of the filter.
impl<F: LiveFilter> FilterStorage<F> {
    /// Returns true if the log has grown enough for a snapshot, and no snapshot is under way.
    pub fn wants_snapshot(&self) -> bool {
        let is_due = |journal: &Journal| journal.bytes() >= self.snapshot_at;
        self.snapshotting.is_none() && self.journal.as_ref().is_some_and(is_due)
    }

    /// Begins a snapshot on a new thread. After it, old snapshots are removed, but the folder can
    /// still recover to every state in its `reach`.
    ///
    /// # Errors
    /// The disk fails. The next snapshot is then due after the usual growth of the log.
    pub fn begin_snapshot(&mut self, reach: Reach) -> io::Result<()> {
        // Two snapshots would write to the same file.
        self.snapshotting = None;
        self.snapshot_at = self.journal()?.bytes() + self.every();
        // The writer comes first: if it cannot open its file, the log gets no new file.
        let journal = self.journal()?;
        let writer = journal.snapshot_writer()?;
        journal.roll()?;
        let horizon = match reach {
            Reach::To(horizon) => horizon,
            Reach::Alone => (journal.position().head == Head::START).then(Moment::now),
        };
        let retention = Retention { horizon, horizon_bytes: self.policy.horizon_bytes };
        self.snapshotting = Some(Snapshotting::begin(self.filter.clone(), writer, retention)?);
        Ok(())
    }

    /// Returns the result of the snapshot that has ended since the last call, or of the snapshot
    /// under way if the caller waits for its end.
    pub fn ended_snapshot(&mut self, is_waited_for: bool) -> Option<io::Result<Finished>> {
        let ended = self.snapshotting.take_if(|it| is_waited_for || it.is_finished())?;
        let finished = ended.join().transpose()?;
        if finished.is_ok() {
            self.last_snapshot =
                Some(humantime::format_rfc3339_millis(SystemTime::now()).to_string());
        }
        Some(finished)
    }

    /// Returns the bytes by which the log grows before a snapshot.
    fn every(&self) -> u64 {
        self.policy.snapshot_bytes.max(self.filter.saved_bytes() / SHARE)
    }

    /// Returns the sizes of the folder.
    pub fn footprint(&self) -> Footprint {
        // If the folder cannot be listed, the next read or write fails, too.
        let (mut snapshots, mut log_bytes, mut bytes) = (0, 0, 0);
        for file in self.folder.dir.list().unwrap_or_default() {
            if snapshot::seq(&file.name).is_some() {
                snapshots += 1;
            } else if segment::follows(&file.name).is_some() {
                log_bytes += file.len;
            } else if prune::is_archived(&file) {
                bytes += file.len;
            }
        }
        let archive = ArchiveSize { bytes, is_whole: self.archive.lacks_before.is_none() };
        Footprint {
            dir: self.folder.dir().to_owned(),
            fsync: self.policy.fsync.to_string(),
            written_bytes: self.logged + self.journal.as_ref().map_or(0, Journal::bytes),
            snapshots,
            log_bytes,
            archive: (self.archive.is_on || bytes > 0).then_some(archive),
            last_snapshot: self.last_snapshot.clone(),
        }
    }
}
