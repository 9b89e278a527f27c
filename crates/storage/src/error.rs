//! Errors of opening and recovering a storage folder: its damage, and the process that holds it.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fmt, io};

use serde::{Deserialize, Serialize};

use super::disk::{DiskFile, read_all};
use super::encoding::{FORMAT, unix_ms};
use crate::head::Head;

/// A storage folder could not be opened.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the messages explain the fields
pub enum OpenError {
    /// The file system failed.
    #[error(
        "the storage folder {dir} cannot be opened: {reason}. Check the disk and the \
         permissions of this process, or name another folder", dir = dir.display()
    )]
    Io { dir: PathBuf, reason: io::Error },
    /// The folder does not exist.
    #[error(
        "there is no storage folder {dir}, so it holds no filter. Name the folder of a crawl that \
         has begun", dir = dir.display()
    )]
    Missing { dir: PathBuf },
    /// Another process has the folder open: either to write, or to read while no process writes.
    #[error(
        "the storage folder {dir} is in use{by}; stop that process, or give this one another \
         storage.dir", dir = dir.display(), by = by(holder.as_ref())
    )]
    Locked { dir: PathBuf, holder: Option<Holder> },
    /// The header is damaged.
    #[error(
        "the header of the storage folder is damaged: {0}; restore the folder from a copy, or \
         remove it and begin with an empty filter: urlseen storage reset"
    )]
    Header(Damage),
    /// The folder has a log or snapshots, but no header.
    #[error(
        "the storage folder {dir} has lost its header (its file `header` is missing, {file} is \
         there); restore the file from a copy, or remove the folder and begin with an empty \
         filter: urlseen storage reset", dir = dir.display()
    )]
    HeaderMissing { dir: PathBuf, file: String },
    /// A version with another format wrote the folder.
    #[error(
        "the storage folder {dir} has format {found}, written by another version of urlseen; this \
         one reads the format {known}. Continue with the version that wrote it. Or begin with an \
         empty filter: remove the folder or set another storage.dir, then urlseen storage reset",
        dir = dir.display(), known = FORMAT
    )]
    Format { dir: PathBuf, found: u64 },
}

fn by(holder: Option<&Holder>) -> String {
    holder.map_or_else(String::new, |holder| format!(" by {holder}"))
}

/// Reason why the filter cannot be recovered to the head of Redis.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the messages explain the fields
pub enum RecoveryError {
    /// The folder's log ends, or is damaged, before the target.
    #[error(
        "Redis stands at {target}, and the storage folder goes no further than {end}: it lacks the \
         fingerprints of {missing} batches{why}. For details, run urlseen storage show. To \
         continue without these batches, run urlseen storage adopt: their URLs are emitted again",
        why = because(damage.as_ref())
    )]
    Behind { target: Head, end: Head, missing: u64, damage: Option<Damage>, best: Option<Head> },
    /// The target is older than every state in the folder.
    #[error(
        "Redis stands at {target}, and the storage folder goes no further back than {oldest}{why}. \
         For details, run urlseen storage show. To continue from here, run urlseen storage adopt \
         or urlseen storage reset",
        why = because(damage.as_ref())
    )]
    Beyond { target: Head, oldest: Head, damage: Option<Damage> },
    /// The folder and Redis have different ids for the same batch number.
    #[error(
        "Redis stands at {target}, and the storage folder has {ours} in its place: these are two \
         histories. Is this another crawl's folder, or an old copy of the right one? For details, \
         run urlseen storage show. To continue from here, run urlseen storage adopt or urlseen \
         storage reset"
    )]
    OtherHistory { target: Head, ours: Head },
    /// No snapshot can be read.
    #[error(
        "the storage folder has no snapshot that can be loaded{why}. Restore the folder from a \
         copy, or continue with an empty filter: urlseen storage reset",
        why = because(damage.as_ref())
    )]
    NoSnapshot { damage: Option<Damage> },
    /// The log is damaged, and the records from the damage on cannot be used.
    #[error(
        "the log is damaged ({damage}), which makes {lost} unusable. Restore the folder from a \
         copy. Or continue without these records, and emit their URLs again: urlseen storage \
         adopt, with --storage DIR for a folder that no crawl uses"
    )]
    Damaged { damage: Damage, lost: Lost },
    /// The folder has no filter yet.
    #[error("the storage folder is new: there is nothing to recover")]
    Fresh,
    /// The file system failed.
    #[error("the storage folder cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl OpenError {
    /// Returns the error of a folder that cannot be read, for this reason.
    pub(super) fn unreadable(dir: &Path, reason: io::Error) -> Self {
        let dir = dir.to_owned();
        match reason.kind() {
            io::ErrorKind::NotFound => Self::Missing { dir },
            _ => Self::Io { dir, reason },
        }
    }
}

impl From<ReadError> for RecoveryError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Damaged(damage) => Self::NoSnapshot { damage: Some(damage) },
            ReadError::Io(error) => Self::Io(error),
        }
    }
}

impl RecoveryError {
    /// Returns the head of the newest loadable state that is not after the target, if it is known.
    pub fn best(&self) -> Option<Head> {
        match self {
            Self::Behind { best, .. } => *best,
            _ => None,
        }
    }
}

fn because(damage: Option<&Damage>) -> String {
    damage.map_or_else(String::new, |damage| format!(" ({damage})"))
}

/// Damaged place in a file of the folder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file} at byte {offset}: {what}")]
pub struct Damage {
    /// Name of the file in the folder.
    pub(crate) file: String,
    /// Offset of the first byte that cannot be read.
    pub(crate) offset: u64,
    /// Kind of the damage, for messages.
    pub(crate) what: &'static str,
}

/// Reason why a file of the folder cannot be read any further.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error(transparent)]
    Damaged(#[from] Damage),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Damage {
    pub(super) fn new(file: impl Into<String>, offset: u64, what: &'static str) -> Self {
        Self { file: file.into(), offset, what }
    }
}

impl ReadError {
    /// Returns the damage, or the error of the disk.
    pub(super) fn damage(self) -> io::Result<Damage> {
        match self {
            Self::Damaged(damage) => Ok(damage),
            Self::Io(error) => Err(error),
        }
    }
}

/// Returns `None` in place of an error that reports damage. Returns all other errors unchanged.
pub(super) fn sound<T>(read: Result<T, ReadError>) -> io::Result<Option<T>> {
    read.map_or_else(|error| error.damage().map(|_| None), |read| Ok(Some(read)))
}

/// Records of the log that cannot be used because of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Number of the records, at least: those that were damaged, and all later ones.
    pub(crate) records: u64,
    /// Number of fingerprints in those of the records whose heads can be read.
    pub(crate) fingerprints: u64,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { records, fingerprints } = self;
        let records_are = if *records == 1 { "record" } else { "records" };
        write!(f, "{records} {records_are} with at least {fingerprints} fingerprints")
    }
}

/// Holder of a storage folder, for messages to other processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Id of the holding process.
    pub(crate) pid: u32,
    /// Name of the holder's machine.
    pub(crate) host: String,
    /// Time at which the holder opened the folder, in milliseconds since 1970.
    pub(crate) since: u64,
}

impl Holder {
    /// Describes this process, now.
    pub(super) fn this() -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { pid: std::process::id(), host, since: unix_ms(SystemTime::now()) }
    }

    /// Reads the locked file; `None` if it names no process yet.
    pub(super) fn read(file: &dyn DiskFile) -> Option<Self> {
        serde_json::from_slice(&read_all(file).ok()?).ok()
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = UNIX_EPOCH.checked_add(Duration::from_millis(self.since)).unwrap_or(UNIX_EPOCH);
        let since = humantime::format_rfc3339_seconds(since);
        write!(f, "process {} on {} (since {since})", self.pid, self.host)
    }
}
