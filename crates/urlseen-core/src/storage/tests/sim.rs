//! A disk in memory that loses power, fills up and fails at any step.
//!
//! It separates written data from data on the platter. A write is on the platter once its file was
//! synced, and a name once its directory was. After a loss of power, any of the rest may be there
//! or not. Each change of a name is kept or lost by itself. Of the writes to a file, any part of
//! the length may be kept, and in it any blocks, with zeros in place of the others.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use super::super::disk::{Busy, Disk, DiskDir, DiskFile, Entry, Lock, ReadFile};
use super::random::Random;

/// Bytes that the disk writes at once.
const BLOCK: usize = 64;

/// Fault that strikes at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The process is killed: no later step happens. A write is torn.
    Killed,
    /// The step fails, and the next ones do not. Half of a write is done. Data of a failed sync
    /// never reaches the platter while the process lives, even if a later sync succeeds.
    Failing,
    /// The disk is full from there on: no file can be made, and a write is torn.
    Full,
}

#[derive(Debug, Clone, Default)]
struct State {
    files: BTreeMap<u64, Contents>,
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    renames: Vec<Rename>,
    next_inode: u64,
    locks: HashMap<u64, i64>,
    steps: usize,
    fault: Option<(usize, Fault)>,
    is_killed: bool,
    is_full: bool,
}

/// A change of names: the new file of a name, and the name that is gone for it.
#[derive(Debug, Clone)]
struct Rename {
    to: Option<(PathBuf, u64)>,
    gone: Option<PathBuf>,
}

#[derive(Debug, Clone, Default)]
struct Contents {
    bytes: Vec<u8>,
    durable: Vec<u8>,
    /// True after a failed sync: no data reaches the platter any more, even if a later sync
    /// succeeds.
    is_lost: bool,
}

/// The simulated disk. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub(super) struct SimDisk(Arc<Mutex<State>>);

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    inode: u64,
    lock: Option<Lock>,
}

impl SimDisk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Makes `fault` strike at step `step`, counted from now on, the first being 0.
    pub(super) fn fault_at(&self, step: usize, fault: Fault) {
        let mut state = self.state();
        state.fault = Some((state.steps + step, fault));
    }

    /// Returns the number of steps so far that changed something or synced it.
    pub(super) fn steps(&self) -> usize {
        self.state().steps
    }

    /// Returns true if the requested fault has struck.
    pub(super) fn has_struck(&self) -> bool {
        let state = self.state();
        state.fault.is_none_or(|(step, _)| state.steps > step)
    }

    /// Ends all faults, and gives the disk room.
    pub(super) fn mend(&self) {
        let mut state = self.state();
        (state.fault, state.is_full) = (None, false);
    }

    /// Returns the disk as the next process finds it.
    pub(super) fn after_kill(&self) -> Self {
        let mut state = self.state().clone();
        state.locks.clear();
        (state.fault, state.is_killed, state.is_full) = (None, false, false);
        state.files.values_mut().for_each(|contents| contents.is_lost = false);
        Self(Arc::new(Mutex::new(state)))
    }

    /// Returns the disk as it is after a loss of power.
    pub(super) fn after_power_loss(&self, random: &mut Random) -> Self {
        let state = self.after_kill().state().clone();
        let mut names = state.durable_names;
        for rename in state.renames {
            if random.once_in(2) {
                if let Some(gone) = rename.gone {
                    names.remove(&gone);
                }
                names.extend(rename.to);
            }
        }
        let mut files = state.files;
        for contents in files.values_mut() {
            contents.bytes = contents.survivor(random);
            contents.durable.clone_from(&contents.bytes);
            contents.is_lost = false;
        }
        files.retain(|inode, _| names.values().any(|other| other == inode));
        let (durable_names, next_inode) = (names.clone(), state.next_inode);
        let state = State { files, names, durable_names, next_inode, ..State::default() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Returns the files in a directory and their bytes.
    pub(super) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.state();
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        state
            .names
            .iter()
            .map(|(path, inode)| (name(path), state.files[inode].bytes.clone()))
            .collect()
    }

    /// Replaces the bytes of a file, on the platter.
    pub fn put(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.state();
        let inode = state.inode_of(path);
        state.names.insert(path.to_owned(), inode);
        state.durable_names.insert(path.to_owned(), inode);
        let (bytes, durable) = (bytes.to_vec(), bytes.to_vec());
        state.files.insert(inode, Contents { bytes, durable, is_lost: false });
    }

    /// Removes a file, on the platter.
    pub(super) fn take(&self, path: &Path) {
        let mut state = self.state();
        state.names.remove(path);
        state.durable_names.remove(path);
    }

    fn file(&self, inode: u64, lock: Option<Lock>) -> Box<dyn DiskFile> {
        Box::new(SimFile { disk: self.clone(), inode, lock })
    }
}

impl Contents {
    /// Returns content that may be left after a loss of power.
    fn survivor(&self, random: &mut Random) -> Vec<u8> {
        let (now, then) = (&self.bytes, &self.durable);
        let same = now.iter().zip(then).take_while(|(a, b)| a == b).count();
        let (short, long) = (now.len().min(then.len()), now.len().max(then.len()));
        // No write is in place: differences are appended or cut.
        let len = match random.below(3) {
            0 => then.len(),
            1 => now.len(),
            _ => short + random.below(long - short + 1),
        };
        let source = if now.len() > same { now } else { then };
        let mut bytes = vec![0; len];
        for start in (0..len).step_by(BLOCK) {
            let end = (start + BLOCK).min(len);
            let is_there = random.below(4) > 0;
            for (at, byte) in (start..end).zip(&mut bytes[start..end]) {
                if at < same || is_there {
                    *byte = source.get(at).copied().unwrap_or_default();
                }
            }
        }
        bytes
    }
}

impl State {
    /// Counts a step. `Err` holds true if half of the step is done, and the error.
    fn step(&mut self) -> Result<(), (bool, io::Error)> {
        let killed = || io::Error::other("the process was killed");
        if self.is_killed {
            return Err((false, killed()));
        }
        let step = self.steps;
        self.steps += 1;
        match self.fault {
            Some((at, Fault::Killed)) if at == step => {
                self.is_killed = true;
                Err((true, killed()))
            }
            Some((at, Fault::Failing)) if at == step => {
                Err((true, io::Error::other("input/output error")))
            }
            Some((at, Fault::Full)) if at <= step => {
                let is_first = !self.is_full;
                self.is_full = true;
                Err((is_first, io::ErrorKind::StorageFull.into()))
            }
            _ => Ok(()),
        }
    }

    /// Counts a step that needs no room: a full disk does not fail it.
    fn roomless(&mut self) -> Result<(), io::Error> {
        match self.step() {
            Err((_, error)) if error.kind() != io::ErrorKind::StorageFull => Err(error),
            _ => Ok(()),
        }
    }

    fn inode_of(&mut self, path: &Path) -> u64 {
        self.names.get(path).copied().unwrap_or_else(|| {
            self.next_inode += 1;
            self.next_inode
        })
    }

    fn existing(&self, path: &Path) -> io::Result<u64> {
        if self.is_killed {
            return Err(io::Error::other("the process was killed"));
        }
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Disk for SimDisk {
    fn create_dir(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn inode(&self, path: &Path) -> io::Result<Option<u64>> {
        Ok(self.state().names.get(path).copied())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let state = self.state();
        if state.is_killed {
            return Err(io::Error::other("the process was killed"));
        }
        let own = state.names.iter().filter(|(path, _)| path.parent() == Some(dir));
        Ok(own
            .map(|(path, inode)| Entry {
                name: path.file_name().unwrap().to_str().unwrap().to_owned(),
                len: state.files[inode].bytes.len() as u64,
            })
            .collect())
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        Ok(self.append(path)?)
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let inode = self.state().existing(path)?;
        Ok(self.file(inode, None))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        state.step().map_err(|(_, error)| error)?;
        let is_new = !state.names.contains_key(path);
        let inode = state.inode_of(path);
        state.files.entry(inode).or_default().bytes.clear();
        if is_new {
            state.names.insert(path.to_owned(), inode);
            state.renames.push(Rename { to: Some((path.to_owned(), inode)), gone: None });
        }
        drop(state);
        Ok(self.file(inode, None))
    }

    fn lock(&self, path: &Path, lock: Lock) -> io::Result<Result<Box<dyn DiskFile>, Busy>> {
        let known = self.state().existing(path);
        let inode = match (known, lock) {
            (Ok(inode), _) => inode,
            (Err(_), Lock::Exclusive) => {
                let file = self.create(path)?;
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

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.roomless()?;
        let inode = state.existing(from)?;
        state.names.remove(from);
        state.names.insert(to.to_owned(), inode);
        let gone = Some(from.to_owned());
        state.renames.push(Rename { to: Some((to.to_owned(), inode)), gone });
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.roomless()?;
        state.existing(path)?;
        state.names.remove(path);
        state.renames.push(Rename { to: None, gone: Some(path.to_owned()) });
        Ok(())
    }

    fn open_dir(&self, _: &Path) -> io::Result<Box<dyn DiskDir>> {
        Ok(Box::new(self.clone()))
    }
}

/// The only directory of the disk.
impl DiskDir for SimDisk {
    fn sync(&self) -> io::Result<()> {
        let mut state = self.state();
        state.roomless()?;
        state.durable_names = state.names.clone();
        state.renames.clear();
        Ok(())
    }
}

impl ReadFile for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.disk.state();
        let bytes = &state.files[&self.inode].bytes;
        let rest = &bytes[bytes.len().min(usize::try_from(offset).unwrap())..];
        // A long read never returns all requested bytes.
        let len = rest.len().min(buffer.len()).min(3000);
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.state().files[&self.inode].bytes.len() as u64)
    }
}

impl DiskFile for SimFile {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.state();
        let done = state.step();
        let contents = state.files.get_mut(&self.inode).unwrap();
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
        let contents = state.files.get_mut(&self.inode).unwrap();
        contents.bytes.truncate(usize::try_from(len).unwrap());
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        let done = state.roomless();
        let contents = state.files.get_mut(&self.inode).unwrap();
        contents.is_lost |= done.is_err();
        if !contents.is_lost {
            contents.durable.clone_from(&contents.bytes);
        }
        done
    }

    fn inode(&self) -> io::Result<u64> {
        Ok(self.inode)
    }

    fn is_linked(&self) -> io::Result<bool> {
        Ok(self.disk.state().names.values().any(|inode| *inode == self.inode))
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
