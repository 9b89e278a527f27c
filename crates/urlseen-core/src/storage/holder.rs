//! Who holds a storage folder, as its file `lock` says in JSON. Only the lock itself proves
//! anything.

use std::fmt;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::disk::{DiskFile, read_all};
use super::snapshot::unix_ms;

/// Who holds a storage folder, as told to those who would like to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub(crate) pid: u32,
    /// The machine that it runs on.
    pub(crate) host: String,
    /// When it opened the folder, in milliseconds since 1970.
    pub(crate) since: u64,
}

impl Holder {
    /// This process, now.
    pub(super) fn this() -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { pid: std::process::id(), host, since: unix_ms(SystemTime::now()) }
    }

    /// What the file that is locked says; `None` where that is nothing yet.
    pub(super) fn read(file: &dyn DiskFile) -> Option<Self> {
        serde_json::from_slice(&read_all(file).ok()?).ok()
    }

    /// Says so in the file that is locked.
    pub(super) fn write(&self, file: &dyn DiskFile) -> io::Result<()> {
        file.set_len(0)?;
        file.append(&serde_json::to_vec(self)?)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = UNIX_EPOCH.checked_add(Duration::from_millis(self.since)).unwrap_or(UNIX_EPOCH);
        let since = humantime::format_rfc3339_seconds(since);
        write!(f, "process {} on {} (since {since})", self.pid, self.host)
    }
}
