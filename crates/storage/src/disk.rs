//! Operations of the file system that a storage folder needs. Only this module uses `std::fs`. So
//! tests can use a simulated disk that loses power, fills up or fails at any step.

use std::fmt::Debug;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::requests::Requests;
use urlseen_filter::descriptors;

/// The directory of a storage folder. Each call is one step, which may fail or be the last one
/// before the power fails. Callers name a file by its name in the directory.
pub(super) trait Disk: Debug + Send + Sync {
    /// Returns the path of the directory.
    fn path(&self) -> &Path;
    /// Returns the requests that the disk has not answered yet.
    fn requests(&self) -> &Requests;
    /// Makes the directory and its parents, for this user alone. Returns the directories that it
    /// made, the innermost first.
    fn make(&self) -> io::Result<Vec<PathBuf>>;
    /// Removes an empty directory that [`Disk::make`] has made.
    fn remove_dir(&self, dir: &Path) -> io::Result<()>;
    /// Returns the inode of a file; `None` if there is no such file.
    fn inode(&self, name: &str) -> io::Result<Option<u64>>;
    /// Lists the files in the directory.
    fn list(&self) -> io::Result<Vec<FolderEntry>>;
    /// Opens an existing file to read.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file to read and to append to.
    fn append(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// Makes a file to append to, for this user alone; empties an existing file.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file and locks it until it is closed. Does not wait for a lock. Makes a missing file
    /// for an exclusive lock. Returns `Ok(Err(Busy))` if another process has locked the file.
    fn lock(&self, name: &str, lock: Lock) -> io::Result<Result<Box<dyn DiskFile>, Busy>>;
    /// Renames a file. If another file has the new name, that file is replaced.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file from the directory.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Syncs the directory: its new, renamed and removed names survive a loss of power. The first
    /// call opens the directory. Later calls need no other file descriptor.
    fn sync(&self) -> io::Result<()>;
}

/// Suffix of temporary names. A file with this suffix is incomplete and does not count.
pub(super) const ASIDE: &str = ".tmp";

/// Directory of a storage folder, on some disk.
pub(super) type Dir = Arc<dyn Disk>;

impl dyn Disk {
    /// Removes a file if it exists.
    pub(super) fn remove_if_there(&self, name: &str) -> io::Result<()> {
        match self.remove(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Returns true if the directory still has this open file under this name.
    pub(super) fn has(&self, name: &str, file: &dyn DiskFile) -> io::Result<bool> {
        Ok(self.inode(name)? == Some(file.inode()?))
    }

    /// Reads all of a file; `None` if there is no such file.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match self.open(name) {
            Ok(file) => read_all(&*file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a file under its temporary name and syncs it. The next step is a rename to the final
    /// name.
    pub(super) fn write_aside(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let file = self.create(&aside(name))?;
        file.append(bytes)?;
        file.sync()
    }

    /// Renames a file from its temporary name to its final name.
    pub(super) fn replace(&self, name: &str) -> io::Result<()> {
        self.rename(&aside(name), name)
    }
}

/// Returns the temporary name of a file that is being written.
pub(super) fn aside(name: &str) -> String {
    format!("{name}{ASIDE}")
}

/// A file that is open to be read, and to be appended to if it was opened for that.
pub(super) trait DiskFile: Debug + Send + Sync {
    /// Reads bytes from `offset` on. Returns 0 at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Returns the number of bytes of the file.
    fn len(&self) -> io::Result<u64>;
    /// Appends all of `bytes` to the file.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;
    /// Cuts the file to `len` bytes.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Syncs the file: its content survives a loss of power.
    fn sync(&self) -> io::Result<()>;
    /// Returns the inode of the file. The inode distinguishes the file from its copies.
    fn inode(&self) -> io::Result<u64>;
}

/// A file in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FolderEntry {
    pub(super) name: String,
    pub(super) len: u64,
}

/// Kind of the lock on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    /// No other process may lock the file.
    Exclusive,
    /// Other processes may take a shared lock.
    Shared,
}

/// Open file that another process has locked. The content of the file names that process.
#[derive(Debug)]
pub(super) struct Busy(pub(super) Box<dyn DiskFile>);

/// Returns the id of the boot of the machine, and the time namespace of this process.
pub(super) fn boot() -> io::Result<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let clock = std::fs::read_link("/proc/self/ns/time")?;
    Ok(format!("{} {}", id.trim(), clock.display()))
}

/// Reads all of a small file.
pub(super) fn read_all(file: &dyn DiskFile) -> io::Result<Vec<u8>> {
    let len = file.len()?;
    let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
    read_exact_at(file, &mut bytes, 0)?;
    Ok(bytes)
}

/// Reads bytes of the file from `offset` on, until `buffer` is full.
pub(super) fn read_exact_at(
    file: &dyn DiskFile,
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

/// A directory of this machine.
#[derive(Debug)]
pub(super) struct RealDisk {
    path: PathBuf,
    requests: Requests,
    /// The open directory, after the first sync.
    handle: OnceLock<File>,
}

/// An open file of this machine.
struct RealFile {
    file: File,
    path: PathBuf,
    requests: Requests,
}

impl Debug for RealFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.path.display())
    }
}

/// Puts the attempted operation and the path before the text of an error.
fn named<T>(result: io::Result<T>, verb: &str, path: &Path) -> io::Result<T> {
    result.map_err(|error| {
        descriptors::explained(format_args!("cannot {verb} {}", path.display()), &error)
    })
}

impl RealDisk {
    /// Returns the directory at `path`. It need not exist yet.
    pub(super) fn at(path: &Path) -> Arc<dyn Disk> {
        let (requests, handle) = (Requests::default(), OnceLock::new());
        Arc::new(Self { path: path.to_owned(), requests, handle })
    }

    fn opened(&self, options: &OpenOptions, verb: &str, name: &str) -> io::Result<Box<RealFile>> {
        let path = self.path.join(name);
        let file = named(options.open(&path), verb, &path)?;
        Ok(Box::new(RealFile { file, path, requests: self.requests.clone() }))
    }
}

impl Disk for RealDisk {
    fn path(&self) -> &Path {
        &self.path
    }

    fn requests(&self) -> &Requests {
        &self.requests
    }

    fn make(&self) -> io::Result<Vec<PathBuf>> {
        let dir = &self.path;
        let named_dirs = dir.ancestors().filter(|dir| !dir.as_os_str().is_empty());
        let made = named_dirs.take_while(|dir| !dir.exists()).map(Path::to_owned).collect();
        named(DirBuilder::new().recursive(true).mode(0o700).create(dir), "make", dir)?;
        Ok(made)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        named(std::fs::remove_dir(dir), "remove", dir)
    }

    fn inode(&self, name: &str) -> io::Result<Option<u64>> {
        let _answer = self.requests.begin("a look at the folder");
        let path = self.path.join(name);
        match std::fs::metadata(&path) {
            Ok(metadata) => Ok(Some(metadata.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => named(Err(error), "inspect", &path),
        }
    }

    fn list(&self) -> io::Result<Vec<FolderEntry>> {
        let list = || -> io::Result<Vec<FolderEntry>> {
            let mut entries = Vec::new();
            for entry in std::fs::read_dir(&self.path)? {
                let entry = entry?;
                // All names that this module gives to files are UTF-8.
                let Ok(name) = entry.file_name().into_string() else { continue };
                match entry.metadata() {
                    Ok(metadata) if metadata.is_file() => {
                        entries.push(FolderEntry { name, len: metadata.len() });
                    }
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
            entries.sort();
            Ok(entries)
        };
        named(list(), "list", &self.path)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.opened(OpenOptions::new().read(true), "open", name)?)
    }

    fn append(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.opened(OpenOptions::new().read(true).append(true), "open", name)?)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let options = &mut OpenOptions::new();
        let options = options.read(true).append(true).create(true).mode(0o600);
        let file = self.opened(options, "make", name)?;
        // The system does not truncate a file that it opens to append.
        file.set_len(0)?;
        Ok(file)
    }

    fn lock(&self, name: &str, lock: Lock) -> io::Result<Result<Box<dyn DiskFile>, Busy>> {
        let options = &mut OpenOptions::new();
        let options = match lock {
            Lock::Exclusive => options.read(true).append(true).create(true).mode(0o600),
            Lock::Shared => options.read(true),
        };
        let file = self.opened(options, "open", name)?;
        let locked = match lock {
            Lock::Exclusive => file.file.try_lock(),
            Lock::Shared => file.file.try_lock_shared(),
        };
        match locked {
            Ok(()) => Ok(Ok(file)),
            Err(TryLockError::WouldBlock) => Ok(Err(Busy(file))),
            Err(TryLockError::Error(error)) => named(Err(error), "lock", &file.path),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let from = self.path.join(from);
        named(std::fs::rename(&from, self.path.join(to)), "rename", &from)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.path.join(name);
        named(std::fs::remove_file(&path), "remove", &path)
    }

    fn sync(&self) -> io::Result<()> {
        let handle = if let Some(handle) = self.handle.get() {
            handle
        } else {
            let opened = named(File::open(&self.path), "open", &self.path)?;
            self.handle.get_or_init(|| opened)
        };
        named(handle.sync_all(), "sync", &self.path)
    }
}

impl DiskFile for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let _answer = self.requests.begin("a read");
        loop {
            match self.file.read_at(buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return named(result, "read", &self.path),
            }
        }
    }

    fn len(&self) -> io::Result<u64> {
        named(self.file.metadata(), "inspect", &self.path).map(|metadata| metadata.len())
    }

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
        named(self.file.metadata(), "inspect", &self.path).map(|metadata| metadata.ino())
    }
}
