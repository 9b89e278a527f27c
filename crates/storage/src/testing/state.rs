//! State of the simulated disk.

use std::collections::{BTreeMap, HashMap};
use std::io;

/// Bytes that the disk writes at once.
const BLOCK: usize = 64;

#[derive(Debug, Clone, Default)]
pub(super) struct FileContents {
    pub(super) bytes: Vec<u8>,
    pub(super) durable: Vec<u8>,
    /// True after a failed sync: no data reaches the platter any more, even if a later sync
    /// succeeds.
    pub(super) is_lost: bool,
}

impl FileContents {
    /// Returns content that may be left after a loss of power.
    pub(super) fn survivor(&self, below: &mut dyn FnMut(usize) -> usize) -> Vec<u8> {
        let (now, then) = (&self.bytes, &self.durable);
        let same = now.iter().zip(then).take_while(|(a, b)| a == b).count();
        let (short, long) = (now.len().min(then.len()), now.len().max(then.len()));
        // No write changes bytes in place, so the two versions differ only at the end.
        let len = match below(3) {
            0 => then.len(),
            1 => now.len(),
            _ => short + below(long - short + 1),
        };
        let source = if now.len() > same { now } else { then };
        let mut bytes = vec![0; len];
        for start in (0..len).step_by(BLOCK) {
            let end = (start + BLOCK).min(len);
            let is_there = below(4) > 0;
            for (at, byte) in (start..end).zip(&mut bytes[start..end]) {
                if at < same || is_there {
                    *byte = source.get(at).copied().unwrap_or_default();
                }
            }
        }
        bytes
    }
}

/// Fault that strikes at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process is killed: no later step happens. If the step is a write, only a part of it is
    /// done.
    Killed,
    /// The step fails, and later steps succeed. Half of a failed write is done. Data of a failed
    /// sync never reaches the platter while the process lives, even if a later sync succeeds.
    Failing,
    /// The disk is full from this step on: no file can be made, and only a part of a write is done.
    Full,
}

/// Everything on the disk.
#[derive(Debug, Clone, Default)]
pub(super) struct SimulatedState {
    pub(super) files: BTreeMap<u64, FileContents>,
    pub(super) names: BTreeMap<String, u64>,
    pub(super) durable_names: BTreeMap<String, u64>,
    pub(super) renames: Vec<Rename>,
    pub(super) next_inode: u64,
    pub(super) locks: HashMap<u64, i64>,
    pub(super) steps: usize,
    pub(super) fault: Option<(usize, Fault)>,
    pub(super) is_killed: bool,
    pub(super) is_full: bool,
}

/// A change of names: a name with its new file, and the old name that is gone.
#[derive(Debug, Clone)]
pub(super) struct Rename {
    pub(super) to: Option<(String, u64)>,
    pub(super) gone: Option<String>,
}

impl SimulatedState {
    pub(super) fn contents(&mut self, inode: u64) -> &mut FileContents {
        self.files.get_mut(&inode).expect("an open file has its contents")
    }

    /// Counts a step. If the step fails, returns the error, and true if half of the step is done.
    pub(super) fn step(&mut self) -> Result<(), (bool, io::Error)> {
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

    /// Counts a step that needs no room: it succeeds on a full disk, too.
    pub(super) fn roomless(&mut self) -> Result<(), io::Error> {
        match self.step() {
            Err((_, error)) if error.kind() != io::ErrorKind::StorageFull => Err(error),
            _ => Ok(()),
        }
    }

    pub(super) fn inode_of(&mut self, name: &str) -> u64 {
        self.names.get(name).copied().unwrap_or_else(|| {
            self.next_inode += 1;
            self.next_inode
        })
    }

    pub(super) fn existing(&self, name: &str) -> io::Result<u64> {
        if self.is_killed {
            return Err(io::Error::other("the process was killed"));
        }
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
