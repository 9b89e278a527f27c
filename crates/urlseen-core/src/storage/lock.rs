//! The lock of a storage folder: who holds it, and what its holder's threads share.
//!
//! The file `lock` says in JSON which process holds it. Only the lock itself proves anything.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::clock::unix_ms;
use super::dir::Dir;
use super::disk::{Busy, DiskFile, Lock, read_all};
use super::{header, lease};

/// The name of the file that is locked.
pub(super) const LOCK: &str = "lock";

/// Most tries to make a folder that others remove.
const TRIES: usize = 10;

/// A storage folder's lock. Dropped, it removes a folder that was made for it and never begun.
#[derive(Debug)]
pub(super) struct Hold {
    dir: Dir,
    /// Open, it keeps the folder locked.
    lock: Box<dyn DiskFile>,
    inode: u64,
    /// The directories that were made, the innermost first.
    made: Vec<PathBuf>,
}

impl Hold {
    /// Makes the folder where there is none, and takes its lock without waiting for it. `Err`
    /// inside: another process has it, and may have said which.
    pub(super) fn take(dir: &Dir) -> io::Result<Result<Self, Option<Holder>>> {
        let mut made = Vec::new();
        for _ in 0..TRIES {
            made.extend(dir.make()?);
            match dir.lock(LOCK, Lock::Exclusive) {
                Ok(Ok(lock)) => {
                    let inode = lock.inode()?;
                    let hold = Self { dir: dir.clone(), lock, inode, made };
                    if hold.is_in_place()? {
                        Holder::this().write(&*hold.lock)?;
                        return Ok(Ok(hold));
                    }
                    made = Vec::new();
                }
                Ok(Err(Busy(file))) => {
                    // Where the lock can be shared only readers have it, and the file names who
                    // wrote last.
                    let is_read = dir.lock(LOCK, Lock::Shared)?.is_ok();
                    return Ok(Err(if is_read { None } else { Holder::read(&*file) }));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("other processes go on removing it; start again once they ended"))
    }

    /// Returns the inode, which tells the lock from its copies.
    pub(super) fn inode(&self) -> u64 {
        self.inode
    }

    /// Returns true if the folder still has the file that is locked.
    fn is_in_place(&self) -> io::Result<bool> {
        Ok(self.dir.inode(LOCK)? == Some(self.inode))
    }

    /// Fails where the folder does not have the file any more that is locked.
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
            // What cannot be removed is a new folder, as good as none. The lock goes last: those
            // who wait for it see that it is gone.
            let _ = self.dir.remove(lease::NAME);
            let _ = self.dir.remove(LOCK);
            let _ = self.made.iter().try_for_each(|made| self.dir.remove_dir(made));
        }
    }
}

/// What a folder has in common with the journals and snapshot writers that came from it.
#[derive(Debug)]
pub struct Shared {
    pub(super) hold: Hold,
    /// Counts how often the filter was brought elsewhere.
    turn: Mutex<Turn>,
    /// Whether a snapshot is being written.
    is_writing: AtomicBool,
}

/// A time between two recoveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn(u64);

impl Shared {
    pub(super) fn new(hold: Hold) -> Self {
        Self { hold, turn: Mutex::new(Turn(0)), is_writing: AtomicBool::new(false) }
    }

    /// The current turn, which lasts as long as the guard does.
    pub(super) fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails if it is not `turn` any more; lets it last as long as the guard does.
    pub(super) fn still(&self, turn: Turn) -> io::Result<MutexGuard<'_, Turn>> {
        let current = self.turn();
        if *current == turn {
            return Ok(current);
        }
        Err(io::Error::other("the filter was brought elsewhere meanwhile"))
    }

    /// Ends the turn: what came from it is of no use any more.
    pub(super) fn next_turn(&self) {
        self.turn().0 += 1;
    }

    /// Fails if a snapshot is being written, or else says that one is.
    pub(super) fn start_writing(&self) -> io::Result<()> {
        if self.is_writing.swap(true, Ordering::AcqRel) {
            return Err(io::Error::other("another snapshot is still being written"));
        }
        Ok(())
    }

    /// No snapshot is being written any more.
    pub(super) fn stop_writing(&self) {
        self.is_writing.store(false, Ordering::Release);
    }
}

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

/// Says that `file` is not in the folder any more, or another one in its place.
pub(super) fn gone(dir: &Dir, file: &str) -> io::Error {
    io::Error::other(format!(
        "the storage folder {} was removed or replaced while this process worked with it (its file \
         {file} is gone, or another one): a start would not find what was seen. Bring the folder \
         back from a copy, or continue with an empty filter: urlseen storage reset",
        dir.path().display()
    ))
}
