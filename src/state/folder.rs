//! The state folder, held by the one process that writes it.

use std::fmt;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::{OpenError, Unrecoverable};
use super::header::{Difference, Header, Pins};
use super::journal::Journal;
use super::rebase::Rebase;
use super::recovery::{Recovered, Restore, Target};
use super::snapshot::SnapshotWriter;
use crate::config::Fsync;
use crate::head::{Head, Position};

/// A state folder, locked: nobody else writes to it while this lives, nor while a [`Journal`] or a
/// [`SnapshotWriter`] that came from it does.
#[derive(Debug)]
pub struct Folder {}

/// Who holds a state folder, as told to those who would like to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// The machine that it runs on.
    pub host: String,
    /// When it opened the folder, in milliseconds since 1970.
    pub since: u64,
}

impl Folder {
    /// Opens a folder to write to; makes it (readable by this user alone) where there is none.
    /// Takes its lock without waiting for it, and removes what was left half written.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        todo!()
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        todo!()
    }

    /// What it was made for; `None` as long as it was not begun. The seed and the geometry that
    /// the filter must be started with are in here.
    pub fn header(&self) -> Option<&Header> {
        todo!()
    }

    /// Makes a new folder the memory of an empty filter at `at`. A seed that `pins` leave open is
    /// drawn. Everything is on the disk when this returns; before that, the folder counts as new.
    ///
    /// # Panics
    /// If it was begun before: see [`Folder::erase`].
    pub fn begin(&mut self, pins: &Pins, filter: u64, at: Head) -> io::Result<&Header> {
        todo!()
    }

    /// Forgets everything: the folder is as new. Killed in between, some of it is gone, and it
    /// must be done again.
    pub fn erase(&mut self) -> io::Result<()> {
        todo!()
    }

    /// Compares what it was made for with what is wanted of it. Empty for a new folder.
    pub fn check(&self, pins: &Pins) -> Result<(), Vec<Difference>> {
        todo!()
    }

    /// The ids of the runs that may hold the crawl's lease, newest first; none where this is a
    /// copy of the folder that they were recorded in.
    pub fn runs(&self) -> Vec<u64> {
        todo!()
    }

    /// Records the ids of runs, newest first; no more than 16 are kept. On the disk when this
    /// returns.
    pub fn record_runs(&mut self, runs: &[u64]) -> io::Result<()> {
        todo!()
    }

    /// Brings the filter to `target`, from the newest snapshot that leads there and the log, and
    /// drops what lies beyond it, so that the log can go on from there. What lies beyond is gone
    /// for good when this returns, and nothing is changed where it fails. Journals and snapshot
    /// writers made before are of no use any more.
    pub fn recover(
        &mut self,
        target: Target,
        filter: &mut dyn Restore,
    ) -> Result<Recovered, Unrecoverable> {
        todo!()
    }

    /// The best state at or below `target`, on its history as far as that is known, that
    /// [`Folder::recover`] could load.
    pub fn best(&self, target: Head) -> io::Result<Option<Head>> {
        todo!()
    }

    /// Makes the filter as the caller has it the only thing remembered, at `at`: what it holds is
    /// written through the writer returned, every shard once, and then all older files go. Killed
    /// in between, the folder is as it was, or recovers to `at`.
    pub fn rebase(&mut self, at: Head) -> io::Result<Rebase> {
        todo!()
    }

    /// The log, to go on from `position`: what [`Recovered::position`] or [`Rebase::finish`] said.
    pub fn journal(&mut self, position: Position, fsync: Fsync) -> io::Result<Journal> {
        todo!()
    }

    /// Begins a snapshot. Roll the journal first: the log can then be dropped up to there.
    pub fn snapshot_writer(&self) -> io::Result<SnapshotWriter> {
        todo!()
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = std::time::UNIX_EPOCH + std::time::Duration::from_millis(self.since);
        let since = humantime::format_rfc3339_seconds(since);
        write!(f, "process {} on {} (since {since})", self.pid, self.host)
    }
}
