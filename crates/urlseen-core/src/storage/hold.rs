//! The lock of a storage folder, held by the one process that writes there.

use std::io;
use std::path::PathBuf;

use super::disk::{Busy, Dir, DiskFile, Lock};
use super::holder::Holder;
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

/// Says that `file` is not in the folder any more, or another one in its place.
pub(super) fn gone(dir: &Dir, file: &str) -> io::Error {
    io::Error::other(format!(
        "the storage folder {} was removed or replaced while this process worked with it (its file \
         {file} is gone, or another one): a start would not find what was seen. Bring the folder \
         back from a copy, or go on with an empty filter: urlseen storage reset",
        dir.path().display()
    ))
}
