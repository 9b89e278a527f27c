//! The part of the file system that the storage folder needs. Only this file uses `std::fs`. So
//! tests can replace the disk with one that loses power, fills up or fails at any step.

use std::fmt::Debug;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::storage::descriptors;

/// Requests of a storage folder to a file system. Each call is one step, which may fail or be the
/// last one before the power fails.
pub(super) trait Disk: Debug + Send + Sync {
    /// Makes a directory and its parents, for this user alone. Returns those that it made, the
    /// innermost first.
    fn create_dir(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;
    /// Removes an empty directory.
    fn remove_dir(&self, dir: &Path) -> io::Result<()>;
    /// Returns the inode of a file; `None` if there is none.
    fn inode(&self, path: &Path) -> io::Result<Option<u64>>;
    /// Lists the files in a directory.
    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>>;
    /// Opens an existing file to read.
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>>;
    /// Opens a file to read and to append to.
    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Makes a file to append to, for this user alone; empties an existing one.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file and locks it until it is closed, without waiting. Makes the file if there is
    /// none, unless the lock is shared. `Err` inside: another process has the lock.
    fn lock(&self, path: &Path, lock: Lock) -> io::Result<Result<Box<dyn DiskFile>, Busy>>;
    /// Renames a file, and replaces the other one if there is any.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file from its directory.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Opens a directory to sync it.
    fn open_dir(&self, dir: &Path) -> io::Result<Box<dyn DiskDir>>;
}

/// An open directory on a disk.
pub(super) trait DiskDir: Debug + Send + Sync {
    /// Syncs the directory: its new, renamed and removed names survive a loss of power.
    fn sync(&self) -> io::Result<()>;
}

/// File that is open to be read.
pub(super) trait ReadFile: Debug + Send + Sync {
    /// Reads from `offset`; 0 bytes at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Returns the number of its bytes.
    fn len(&self) -> io::Result<u64>;
}

/// File that is open to be read and appended to.
pub(super) trait DiskFile: ReadFile {
    /// Appends all of `bytes` to the file.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;
    /// Cuts the file to `len` bytes.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Syncs the file: its content survives a loss of power.
    fn sync(&self) -> io::Result<()>;
    /// Returns the inode, which tells the file from its copies.
    fn inode(&self) -> io::Result<u64>;
    /// Returns true if any directory still has the file.
    fn is_linked(&self) -> io::Result<bool>;
}

/// A file in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) len: u64,
}

/// Processes that may lock a file in addition to this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    /// No other process may lock it.
    Exclusive,
    /// Others may lock it if they share the lock.
    Shared,
}

/// Another process has the lock. Holds the file, not locked, which names that process.
#[derive(Debug)]
pub(super) struct Busy(pub(super) Box<dyn DiskFile>);

/// Names the start of the machine that this process belongs to, and the namespace whose clock since
/// then it reads.
pub(super) fn boot() -> io::Result<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let clock = std::fs::read_link("/proc/self/ns/time")?;
    Ok(format!("{} {}", id.trim(), clock.display()))
}

/// All of a file that is small.
pub(super) fn read_all(file: &dyn ReadFile) -> io::Result<Vec<u8>> {
    let len = file.len()?;
    let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
    read_exact_at(file, &mut bytes, 0)?;
    Ok(bytes)
}

/// Fills `buffer` from `offset` on.
pub(super) fn read_exact_at(
    file: &dyn ReadFile,
    mut buffer: &mut [u8],
    mut offset: u64,
) -> io::Result<()> {
    while !buffer.is_empty() {
        let read = file.read_at(buffer, offset)?;
        if read == 0 {
            let end = format!("{file:?} became shorter while it was read");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, end));
        }
        buffer = &mut buffer[read..];
        offset += read as u64;
    }
    Ok(())
}

/// The file system of this machine.
#[derive(Debug)]
pub(super) struct RealDisk;

/// A file of this machine, and its path for messages.
struct RealFile {
    file: File,
    path: PathBuf,
}

impl Debug for RealFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.path.display())
    }
}

/// A directory of this machine, and its path for messages.
#[derive(Debug)]
struct RealDir {
    file: File,
    path: PathBuf,
}

/// Adds the attempted operation to an error.
fn named<T>(result: io::Result<T>, verb: &str, path: &Path) -> io::Result<T> {
    result.map_err(|error| {
        descriptors::explained(format_args!("cannot {verb} {}", path.display()), &error)
    })
}

fn opened(options: &OpenOptions, verb: &str, path: &Path) -> io::Result<Box<dyn DiskFile>> {
    let file = named(options.open(path), verb, path)?;
    Ok(Box::new(RealFile { file, path: path.to_owned() }))
}

impl Disk for RealDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let named_dirs = dir.ancestors().filter(|dir| !dir.as_os_str().is_empty());
        let made = named_dirs.take_while(|dir| !dir.exists()).map(Path::to_owned).collect();
        named(DirBuilder::new().recursive(true).mode(0o700).create(dir), "make", dir)?;
        Ok(made)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        named(std::fs::remove_dir(dir), "remove", dir)
    }

    fn inode(&self, path: &Path) -> io::Result<Option<u64>> {
        match std::fs::metadata(path) {
            Ok(metadata) => Ok(Some(metadata.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => named(Err(error), "ask about", path),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let list = || -> io::Result<Vec<Entry>> {
            let mut entries = Vec::new();
            for entry in std::fs::read_dir(dir)? {
                let entry = entry?;
                // The files of this module have only names in UTF-8.
                let Ok(name) = entry.file_name().into_string() else { continue };
                match entry.metadata() {
                    Ok(metadata) if metadata.is_file() => {
                        entries.push(Entry { name, len: metadata.len() });
                    }
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
            entries.sort();
            Ok(entries)
        };
        named(list(), "list", dir)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        Ok(opened(OpenOptions::new().read(true), "open", path)?)
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        opened(OpenOptions::new().read(true).append(true), "open", path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let options = &mut OpenOptions::new();
        let options = options.read(true).append(true).create(true).mode(0o600);
        let file = opened(options, "make", path)?;
        // The system does not truncate a file that it opens to append.
        file.set_len(0)?;
        Ok(file)
    }

    fn lock(&self, path: &Path, lock: Lock) -> io::Result<Result<Box<dyn DiskFile>, Busy>> {
        let options = &mut OpenOptions::new();
        let options = match lock {
            Lock::Exclusive => options.read(true).append(true).create(true).mode(0o600),
            Lock::Shared => options.read(true),
        };
        let file = named(options.open(path), "open", path)?;
        let locked = match lock {
            Lock::Exclusive => file.try_lock(),
            Lock::Shared => file.try_lock_shared(),
        };
        let file = Box::new(RealFile { file, path: path.to_owned() });
        match locked {
            Ok(()) => Ok(Ok(file)),
            Err(TryLockError::WouldBlock) => Ok(Err(Busy(file))),
            Err(TryLockError::Error(error)) => named(Err(error), "lock", path),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        named(std::fs::rename(from, to), "rename", from)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        named(std::fs::remove_file(path), "remove", path)
    }

    fn open_dir(&self, dir: &Path) -> io::Result<Box<dyn DiskDir>> {
        let file = named(File::open(dir), "open", dir)?;
        Ok(Box::new(RealDir { file, path: dir.to_owned() }))
    }
}

impl DiskDir for RealDir {
    fn sync(&self) -> io::Result<()> {
        named(self.file.sync_all(), "sync", &self.path)
    }
}

impl ReadFile for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match self.file.read_at(buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return named(result, "read", &self.path),
            }
        }
    }

    fn len(&self) -> io::Result<u64> {
        named(self.file.metadata(), "ask about", &self.path).map(|metadata| metadata.len())
    }
}

impl DiskFile for RealFile {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        named((&self.file).write_all(bytes), "write", &self.path)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        named(self.file.set_len(len), "cut", &self.path)
    }

    fn sync(&self) -> io::Result<()> {
        named(self.file.sync_data(), "sync", &self.path)
    }

    fn inode(&self) -> io::Result<u64> {
        named(self.file.metadata(), "ask about", &self.path).map(|metadata| metadata.ino())
    }

    fn is_linked(&self) -> io::Result<bool> {
        named(self.file.metadata(), "ask about", &self.path).map(|metadata| metadata.nlink() > 0)
    }
}
