//! Lock of a storage folder, and the state that the threads of its holder share.
//!
//! The file `lock` names the process that holds the lock, in JSON. Only the lock itself proves that
//! the process still has the folder.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::clock::unix_ms;
use super::dir::Dir;
use super::disk::{Busy, DiskFile, Lock, ReadFile, read_all};
use super::{header, lease};

/// Name of the locked file.
pub(super) const LOCK: &str = "lock";

/// Maximum number of attempts to make a folder that other processes remove.
const TRIES: usize = 10;

/// Lock of a storage folder. Dropping the lock removes a folder that was made for the lock and has
/// no filter yet.
#[derive(Debug)]
pub(super) struct Hold {
    dir: Dir,
    /// The locked file; it keeps the folder locked while it is open.
    lock: Box<dyn DiskFile>,
    inode: u64,
    /// Directories that were made, the innermost first.
    made: Vec<PathBuf>,
}

impl Hold {
    /// Makes a missing folder, and takes its lock without waiting. `Err` inside: another process
    /// has the lock. The holder is `None` if the file does not name it.
    pub(super) fn take(dir: &Dir) -> io::Result<Result<Self, Option<Holder>>> {
        let mut made = Vec::new();
        for _ in 0..TRIES {
            made.extend(dir.make()?);
            match dir.lock(LOCK, Lock::Exclusive) {
                Ok(Ok(lock)) => {
                    let inode = lock.inode()?;
                    let hold = Self { dir: Dir::clone(dir), lock, inode, made };
                    if hold.is_in_place()? {
                        Holder::this().write(&*hold.lock)?;
                        return Ok(Ok(hold));
                    }
                    made = Vec::new();
                }
                Ok(Err(Busy(file))) => {
                    // If the lock can be shared, only readers have it; the file then names the last
                    // writer.
                    let is_read = dir.lock(LOCK, Lock::Shared)?.is_ok();
                    return Ok(Err(if is_read { None } else { Holder::read(&*file) }));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("other processes keep removing it; start again after they have ended"))
    }

    /// Returns the inode. It distinguishes the lock file from its copies.
    pub(super) fn inode(&self) -> u64 {
        self.inode
    }

    /// Returns true if the folder still has the locked file.
    fn is_in_place(&self) -> io::Result<bool> {
        Ok(self.dir.inode(LOCK)? == Some(self.inode))
    }

    /// Fails if the folder does not have the locked file any more.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.is_in_place()? { Ok(()) } else { Err(gone(&self.dir, LOCK)) }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let is_new = !self.made.is_empty()
            && matches!(self.is_in_place(), Ok(true))
            && matches!(self.dir.inode(header::NAME), Ok(None));
        if is_new {
            // If a removal fails, a new folder stays, without harm. The lock file is removed last,
            // so that processes that wait for it notice the removal.
            let _ = self.dir.remove(lease::NAME);
            let _ = self.dir.remove(LOCK);
            let _ = self.made.iter().try_for_each(|made| self.dir.remove_dir(made));
        }
    }
}

/// State that a folder shares with its journals and snapshot writers.
#[derive(Debug)]
pub struct Shared {
    pub(super) hold: Hold,
    /// Number of recoveries, erasures and rebases so far.
    turn: Mutex<Turn>,
    /// True while a snapshot is being written.
    is_writing: AtomicBool,
}

/// Period between two recoveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn(u64);

impl Shared {
    pub(super) fn new(hold: Hold) -> Self {
        Self { hold, turn: Mutex::new(Turn(0)), is_writing: AtomicBool::new(false) }
    }

    /// Returns the current turn, which lasts as long as the guard.
    pub(super) fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails if `turn` has ended. Otherwise the turn lasts as long as the guard.
    pub(super) fn still(&self, turn: Turn) -> io::Result<MutexGuard<'_, Turn>> {
        let current = self.turn();
        if *current == turn {
            return Ok(current);
        }
        Err(io::Error::other("the storage folder was recovered or replaced meanwhile"))
    }

    /// Ends the turn: its journals and snapshot writers fail from now on.
    pub(super) fn next_turn(&self) {
        self.turn().0 += 1;
    }
}

/// Guard of the only snapshot of a folder that is being written.
#[derive(Debug)]
pub(super) struct Writing(pub(super) Arc<Shared>);

impl Writing {
    /// Fails if another snapshot is being written.
    pub(super) fn start(shared: Arc<Shared>) -> io::Result<Self> {
        if shared.is_writing.swap(true, Ordering::AcqRel) {
            return Err(io::Error::other("another snapshot is still being written"));
        }
        Ok(Self(shared))
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.is_writing.store(false, Ordering::Release);
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
    pub(super) fn read(file: &dyn ReadFile) -> Option<Self> {
        serde_json::from_slice(&read_all(file).ok()?).ok()
    }

    /// Writes the holder into the locked file.
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

/// Builds the error that `file` is gone from the folder, or was replaced.
pub(super) fn gone(dir: &Dir, file: &str) -> io::Error {
    io::Error::other(format!(
        "the storage folder {} was removed or replaced while this process worked with it (its file \
         {file} is missing or was replaced): the next start would not find the seen URLs. Restore \
         the folder from a copy, or continue with an empty filter: urlseen storage reset",
        dir.path().display()
    ))
}
