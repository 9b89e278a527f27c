//! The directory of a storage folder, on some disk.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{Busy, Disk, DiskDir, DiskFile, Entry, Lock, ReadFile, read_all};
use super::requests::{NotedFile, Requests};

/// Ending of the names of files that are being written aside; these do not count.
pub(super) const ASIDE: &str = ".tmp";

/// A directory on some disk.
#[derive(Debug, Clone)]
pub(super) struct Dir {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    requests: Requests,
}

impl Dir {
    pub(super) fn new(disk: Arc<dyn Disk>, path: &Path) -> Self {
        Self { disk, path: path.to_owned(), requests: Requests::default() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what the disk has not answered yet.
    pub(super) fn requests(&self) -> &Requests {
        &self.requests
    }

    pub(super) fn make(&self) -> io::Result<Vec<PathBuf>> {
        self.disk.create_dir(&self.path)
    }

    pub(super) fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.remove_dir(dir)
    }

    pub(super) fn inode(&self, name: &str) -> io::Result<Option<u64>> {
        let _answer = self.requests.begin("a look at the folder");
        self.disk.inode(&self.path.join(name))
    }

    pub(super) fn list(&self) -> io::Result<Vec<Entry>> {
        self.disk.list(&self.path)
    }

    pub(super) fn open(&self, name: &str) -> io::Result<Box<dyn ReadFile>> {
        let file = self.disk.open(&self.path.join(name))?;
        Ok(Box::new(NotedFile::new(file, self.requests.clone())))
    }

    pub(super) fn append(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.append(&self.path.join(name))
    }

    pub(super) fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.create(&self.path.join(name))
    }

    pub(super) fn lock(
        &self,
        name: &str,
        lock: Lock,
    ) -> io::Result<Result<Box<dyn DiskFile>, Busy>> {
        self.disk.lock(&self.path.join(name), lock)
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(&self.path.join(from), &self.path.join(to))
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(&self.path.join(name))
    }

    /// Removes a file, unless there is none.
    pub(super) fn remove_if_there(&self, name: &str) -> io::Result<()> {
        match self.remove(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Opens the directory. A sync through this handle needs no other file descriptor.
    pub(super) fn handle(&self) -> io::Result<Box<dyn DiskDir>> {
        self.disk.open_dir(&self.path)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.handle()?.sync()
    }

    /// Reads all of a file; `None` if there is none.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match self.open(name) {
            Ok(file) => read_all(&*file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a file aside and syncs it, for [`Dir::replace`].
    pub(super) fn write_aside(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let file = self.create(&aside(name))?;
        file.append(bytes)?;
        file.sync()
    }

    /// Renames a file written aside to its final name.
    pub(super) fn replace(&self, name: &str) -> io::Result<()> {
        self.rename(&aside(name), name)
    }
}

/// Returns the name of a file while it is written aside.
pub(super) fn aside(name: &str) -> String {
    format!("{name}{ASIDE}")
}
