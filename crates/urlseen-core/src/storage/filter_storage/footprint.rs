//! Sizes of a storage folder in use, computed without reading its files.

use std::path::PathBuf;
use std::time::SystemTime;

use super::{FilterStorage, LiveFilter};
use crate::filter::choice::Fsync;
use crate::storage::journal::Journal;
use crate::storage::{archive, segment, snapshot};

/// Sizes and settings of a storage folder in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footprint {
    /// Path of the storage folder.
    pub dir: PathBuf,
    /// Setting for the syncs of the log.
    pub fsync: Fsync,
    /// Bytes written to the log since the start.
    pub logged: u64,
    /// Number of snapshots in the folder.
    pub snapshots: u64,
    /// Bytes of the log's files.
    pub log_bytes: u64,
    /// Number of bytes of the folder's archive. The boolean is true if the archive and the log
    /// together have all fingerprints of the filter. `None` without an archive.
    pub archive: Option<(u64, bool)>,
    /// End of the last snapshot in this run.
    pub last_snapshot: Option<SystemTime>,
}

impl<F: LiveFilter> FilterStorage<F> {
    /// Returns the sizes of the folder.
    pub fn footprint(&self) -> Footprint {
        // If the folder cannot be listed, the next read or write fails, too.
        let files = self.folder.dir.list().unwrap_or_default();
        let (mut snapshots, mut log_bytes, mut archive_bytes) = (0, 0, 0);
        for file in &files {
            if snapshot::seq(&file.name).is_some() {
                snapshots += 1;
            } else if segment::follows(&file.name).is_some() {
                log_bytes += file.len;
            } else if archive::is_part(file) {
                archive_bytes += file.len;
            }
        }
        let has_archive = self.archive.is_on || archive_bytes > 0;
        Footprint {
            dir: self.folder.dir().to_owned(),
            fsync: self.policy.fsync,
            logged: self.logged + self.journal.as_ref().map_or(0, Journal::bytes),
            snapshots,
            log_bytes,
            archive: has_archive.then_some((archive_bytes, self.archive.lacks_before.is_none())),
            last_snapshot: self.last_snapshot,
        }
    }
}
