//! How much a storage folder holds, from the names and sizes of its files alone.

use std::io;

use super::folder::Folder;
use super::{archive, segment, snapshot};

/// What lies in a storage folder.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Snapshots.
    pub snapshots: u64,
    /// Bytes of log.
    pub log_bytes: u64,
    /// Bytes of the archive.
    pub archive_bytes: u64,
}

impl Folder {
    /// What lies in it now.
    pub fn usage(&self) -> io::Result<Usage> {
        let mut usage = Usage::default();
        for file in self.place().list()? {
            usage.snapshots += u64::from(snapshot::seq(&file.name).is_some());
            if segment::follows(&file.name).is_some() {
                usage.log_bytes += file.len;
            }
            if archive::is_part(&file) {
                usage.archive_bytes += file.len;
            }
        }
        Ok(usage)
    }
}
