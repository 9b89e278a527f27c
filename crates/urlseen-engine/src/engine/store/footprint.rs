//! What a filter's storage folder holds, as far as it is known without reading it.

use std::path::PathBuf;
use std::time::SystemTime;

use super::Store;
use crate::config::Fsync;
use urlseen_core::storage::{Journal, Usage};

/// The storage folder of a filter that is worked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footprint {
    /// Where it is.
    pub dir: PathBuf,
    /// When its log is flushed to the disk.
    pub fsync: Fsync,
    /// Bytes written to the log since the start.
    pub logged: u64,
    /// Snapshots in it.
    pub snapshots: u64,
    /// Bytes of log in it.
    pub log_bytes: u64,
    /// Bytes of its archive, and whether archive and log have all that the filter holds; `None`
    /// without one.
    pub archive: Option<(u64, bool)>,
    /// When the last snapshot of this run was finished.
    pub last_snapshot: Option<SystemTime>,
}

impl Store {
    /// What is kept.
    pub fn footprint(&self) -> Footprint {
        // What cannot be listed is told by whoever has to read or write it.
        let usage = self.folder.usage().unwrap_or_default();
        let Usage { snapshots, log_bytes, archive_bytes } = usage;
        let has_archive = self.archive.is_on || archive_bytes > 0;
        Footprint {
            dir: self.folder.dir().to_owned(),
            fsync: self.keeping.fsync,
            logged: self.logged + self.journal.as_ref().map_or(0, Journal::bytes),
            snapshots,
            log_bytes,
            archive: has_archive.then_some((archive_bytes, self.archive.lacks_before.is_none())),
            last_snapshot: self.last_snapshot,
        }
    }
}
