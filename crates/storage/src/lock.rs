//! Lock of a storage folder, and what the threads of its holder share.
//!
//! The file `lock` names the process that holds the lock, in JSON. Only the lock itself proves that
//! the process still has the folder.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::disk::{Busy, Dir, DiskFile, Lock};
use super::error::Holder;
use super::header::{HEADER, NOTES};

/// Name of the locked file.
pub(super) const LOCK: &str = "lock";

/// Maximum number of attempts to make a folder that other processes remove.
const TRIES: usize = 10;

/// Lock of a storage folder. The folder, its log and the writer of a snapshot share it. If the
/// folder was made for the lock and still has no filter, dropping the lock removes the folder.
#[derive(Debug)]
pub(super) struct Hold {
    pub(super) dir: Dir,
    /// The locked file; it keeps the folder locked while it is open.
    lock: Box<dyn DiskFile>,
    /// Inode of the locked file. It distinguishes the file from its copies.
    pub(super) inode: u64,
    /// Directories that were made, the innermost first.
    made: Vec<PathBuf>,
    /// Locked while files of the log are removed or cut.
    turn: Mutex<()>,
}

impl Hold {
    /// Makes a missing folder, and takes its lock without waiting. Returns `Ok(Err(holder))` if
    /// another process has the lock. The holder is `None` if the file does not name the process.
    pub(super) fn take(dir: &Dir) -> io::Result<Result<Self, Option<Holder>>> {
        let mut made = Vec::new();
        for _ in 0..TRIES {
            made.extend(dir.make()?);
            match dir.lock(LOCK, Lock::Exclusive) {
                Ok(Ok(lock)) => {
                    let inode = lock.inode()?;
                    let turn = Mutex::default();
                    let hold = Self { dir: Dir::clone(dir), lock, inode, made, turn };
                    if hold.is_in_place()? {
                        hold.lock.set_len(0)?;
                        hold.lock.append(&serde_json::to_vec(&Holder::this())?)?;
                        return Ok(Ok(hold));
                    }
                    made = Vec::new();
                }
                Ok(Err(Busy(file))) => {
                    // If a shared lock is possible, only readers have the folder open. The file
                    // then names the last writer, which is not the holder.
                    let is_read = dir.lock(LOCK, Lock::Shared)?.is_ok();
                    return Ok(Err(if is_read { None } else { Holder::read(&*file) }));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("other processes keep removing it; start again after they have ended"))
    }

    /// Returns true if the folder still has the locked file.
    fn is_in_place(&self) -> io::Result<bool> {
        self.dir.has(LOCK, &*self.lock)
    }

    /// Waits until no other thread removes or cuts files of the log. None does while the returned
    /// guard exists.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
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
            && matches!(self.dir.inode(HEADER), Ok(None));
        if is_new {
            // If a removal fails, the new folder stays and does no harm. The lock file is removed
            // last, so that processes that wait for it notice the removal.
            let _ = self.dir.remove(NOTES);
            let _ = self.dir.remove(LOCK);
            let _ = self.made.iter().try_for_each(|made| self.dir.remove_dir(made));
        }
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
