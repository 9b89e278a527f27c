//! A disk in memory that loses power, fills up and fails at any step.
//!
//! The disk separates written data from data on the platter. A write is on the platter once its
//! file was synced. A name is on the platter once its directory was synced. After a loss of power,
//! the disk may have or lack any other data. Each change of a name is kept or lost independently of
//! the others. The unsynced end of a file may have any length up to the written length. Any block
//! of that end may be lost: the file has zeros there.

mod state;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::disk::{Busy, Dir, Disk, DiskFile, FolderEntry, Lock};
use super::encoding::ACCEPTS_ANY_CRC;
use super::error::OpenError;
use super::requests::Requests;
use super::{AtRest, Folder};
pub use state::Fault;
use state::{FileContents, Rename, SimulatedState};

/// Path of the only directory.
pub const DIR: &str = "/storage/demo";

/// Accepts any CRC in the log, the snapshots and the archive while `act` runs on this thread. So
/// tests reach the code after the comparison with damaged data.
pub fn with_any_crc(act: impl FnOnce()) {
    ACCEPTS_ANY_CRC.set(true);
    act();
    ACCEPTS_ANY_CRC.set(false);
}

impl Folder {
    /// Opens the folder of a simulated disk, like [`Folder::open`].
    ///
    /// # Errors
    /// The errors of [`Folder::open`].
    pub fn open_simulated(disk: &SimDisk) -> Result<Self, OpenError> {
        Self::open_on(disk.dir())
    }
}

impl AtRest {
    /// Opens the folder of a simulated disk, like [`AtRest::open`].
    ///
    /// # Errors
    /// The errors of [`AtRest::open`].
    pub fn open_simulated(disk: &SimDisk) -> Result<Self, OpenError> {
        Self::open_on(&disk.dir())
    }
}

/// The simulated disk. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub struct SimDisk(Arc<Mutex<SimulatedState>>, Requests);

impl SimDisk {
    /// Returns the directory of the folder on this disk.
    pub(super) fn dir(&self) -> Dir {
        Arc::new(self.clone())
    }

    fn state(&self) -> MutexGuard<'_, SimulatedState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes `fault` strike at step `step`. The next step is step 0.
    pub fn fault_at(&self, step: usize, fault: Fault) {
        let mut state = self.state();
        state.fault = Some((state.steps + step, fault));
    }

    /// Returns the number of steps so far that changed something or synced it.
    #[cfg(test)]
    pub(crate) fn steps(&self) -> usize {
        self.state().steps
    }

    /// Returns true if the requested fault has struck.
    pub fn has_struck(&self) -> bool {
        let state = self.state();
        state.fault.is_none_or(|(step, _)| state.steps > step)
    }

    /// Ends all faults. A full disk has room again.
    pub fn mend(&self) {
        let mut state = self.state();
        (state.fault, state.is_full) = (None, false);
    }

    /// Returns the disk as the next process finds it.
    #[must_use]
    pub fn after_kill(&self) -> Self {
        let mut state = self.state().clone();
        state.locks.clear();
        (state.fault, state.is_killed, state.is_full) = (None, false, false);
        state.files.values_mut().for_each(|contents| contents.is_lost = false);
        Self(Arc::new(Mutex::new(state)), Requests::default())
    }

    /// Returns the disk as it is after a loss of power.
    #[must_use]
    pub fn after_power_loss(&self, below: &mut dyn FnMut(usize) -> usize) -> Self {
        let state = self.after_kill().state().clone();
        let mut names = state.durable_names;
        for rename in state.renames {
            if below(2) == 0 {
                if let Some(gone) = rename.gone {
                    names.remove(&gone);
                }
                names.extend(rename.to);
            }
        }
        let mut files = state.files;
        for contents in files.values_mut() {
            contents.bytes = contents.survivor(below);
            contents.durable.clone_from(&contents.bytes);
            contents.is_lost = false;
        }
        files.retain(|inode, _| names.values().any(|other| other == inode));
        let (durable_names, next_inode) = (names.clone(), state.next_inode);
        let state =
            SimulatedState { files, names, durable_names, next_inode, ..SimulatedState::default() };
        Self(Arc::new(Mutex::new(state)), Requests::default())
    }

    /// Returns the files in a directory and their bytes.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.state();
        let bytes = |inode| state.files[inode].bytes.clone();
        state.names.iter().map(|(name, inode)| (name.clone(), bytes(inode))).collect()
    }

    /// Replaces the bytes of a file, on the platter.
    pub fn put(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.state();
        let name = name_of(path);
        let inode = state.inode_of(&name);
        state.names.insert(name.clone(), inode);
        state.durable_names.insert(name, inode);
        let (bytes, durable) = (bytes.to_vec(), bytes.to_vec());
        state.files.insert(inode, FileContents { bytes, durable, is_lost: false });
    }

    /// Removes a file, on the platter.
    #[cfg(test)]
    pub(crate) fn take(&self, path: &Path) {
        let mut state = self.state();
        state.names.remove(&name_of(path));
        state.durable_names.remove(&name_of(path));
    }

    fn file(&self, inode: u64, lock: Option<Lock>) -> Box<dyn DiskFile> {
        Box::new(SimFile { disk: self.clone(), inode, lock })
    }
}

impl Disk for SimDisk {
    fn path(&self) -> &Path {
        Path::new(DIR)
    }

    fn requests(&self) -> &Requests {
        &self.1
    }

    fn make(&self) -> io::Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn inode(&self, name: &str) -> io::Result<Option<u64>> {
        Ok(self.state().names.get(name).copied())
    }

    fn list(&self) -> io::Result<Vec<FolderEntry>> {
        let state = self.state();
        if state.is_killed {
            return Err(io::Error::other("the process was killed"));
        }
        let len = |inode| state.files[inode].bytes.len() as u64;
        let names = state.names.iter();
        Ok(names.map(|(name, inode)| FolderEntry { name: name.clone(), len: len(inode) }).collect())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.append(name)
    }

    fn append(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let inode = self.state().existing(name)?;
        Ok(self.file(inode, None))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        state.step().map_err(|(_, error)| error)?;
        let is_new = !state.names.contains_key(name);
        let inode = state.inode_of(name);
        state.files.entry(inode).or_default().bytes.clear();
        if is_new {
            state.names.insert(name.to_owned(), inode);
            state.renames.push(Rename { to: Some((name.to_owned(), inode)), gone: None });
        }
        drop(state);
        Ok(self.file(inode, None))
    }

    fn lock(&self, name: &str, lock: Lock) -> io::Result<Result<Box<dyn DiskFile>, Busy>> {
        let known = self.state().existing(name);
        let inode = match (known, lock) {
            (Ok(inode), _) => inode,
            (Err(_), Lock::Exclusive) => {
                let file = self.create(name)?;
                file.inode()?
            }
            (Err(error), Lock::Shared) => return Err(error),
        };
        let mut state = self.state();
        let held = state.locks.entry(inode).or_default();
        let is_free = match lock {
            Lock::Exclusive => *held == 0,
            Lock::Shared => *held >= 0,
        };
        if is_free {
            *held += if lock == Lock::Shared { 1 } else { -1 };
        }
        drop(state);
        let file = self.file(inode, is_free.then_some(lock));
        Ok(if is_free { Ok(file) } else { Err(Busy(file)) })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.roomless()?;
        let inode = state.existing(from)?;
        state.names.remove(from);
        state.names.insert(to.to_owned(), inode);
        let gone = Some(from.to_owned());
        state.renames.push(Rename { to: Some((to.to_owned(), inode)), gone });
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.roomless()?;
        state.existing(name)?;
        state.names.remove(name);
        state.renames.push(Rename { to: None, gone: Some(name.to_owned()) });
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state();
        state.roomless()?;
        state.durable_names = state.names.clone();
        state.renames.clear();
        Ok(())
    }
}

const SMALL: &str = "files of tests are small";

/// Open file of a simulated disk.
#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    inode: u64,
    lock: Option<Lock>,
}

impl DiskFile for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.disk.state();
        let bytes = &state.files[&self.inode].bytes;
        let rest = &bytes[bytes.len().min(usize::try_from(offset).expect(SMALL))..];
        // Reads at most 3000 bytes, so that callers must read repeatedly.
        let len = rest.len().min(buffer.len()).min(3000);
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.state().files[&self.inode].bytes.len() as u64)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.state();
        let done = state.step();
        let contents = state.contents(self.inode);
        match done {
            Ok(()) => contents.bytes.extend(bytes),
            Err((true, _)) => contents.bytes.extend(&bytes[..bytes.len() / 2]),
            Err(_) => {}
        }
        done.map_err(|(_, error)| error)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.roomless()?;
        let contents = state.contents(self.inode);
        contents.bytes.truncate(usize::try_from(len).expect(SMALL));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        let done = state.roomless();
        let contents = state.contents(self.inode);
        contents.is_lost |= done.is_err();
        if !contents.is_lost {
            contents.durable.clone_from(&contents.bytes);
        }
        done
    }

    fn inode(&self) -> io::Result<u64> {
        Ok(self.inode)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        if let Some(lock) = self.lock {
            *self.disk.state().locks.entry(self.inode).or_default() +=
                if lock == Lock::Shared { -1 } else { 1 };
        }
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
