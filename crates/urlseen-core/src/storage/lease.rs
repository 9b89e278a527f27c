//! Runs that may hold the crawl's lease in Redis: the file `lease`.
//!
//! ```text
//! {"lock":131090,"runs":["2b1d9f0c66a1e4d7","…"],"crc":"89abcdef"}
//! ```
//!
//! `lock` is the inode of the folder's file `lock`. A process that holds the lock of the same file
//! knows that these runs have ended. In a copy of the folder, the lock is another file and proves
//! nothing. The CRC-32C is that of the inode in decimal and the ids in hex, with a space after
//! each.

use std::io;

use serde::{Deserialize, Serialize};

use super::dir::Dir;
use super::note;
use crate::filter::id::RandomId;

/// Name of the file in the folder.
pub(super) const NAME: &str = "lease";

/// Maximum number of runs to remember, for restarts in quick succession.
const RUNS_MAX: usize = 64;

#[derive(Serialize, Deserialize)]
struct Lease {
    lock: u64,
    runs: Vec<RandomId>,
}

/// Returns the ids recorded for the lock with this inode. Without these ids, a new run waits until
/// the lease ends.
pub(super) fn read(dir: &Dir, inode: u64) -> Vec<u64> {
    let note = note::read::<Lease>(dir, NAME).filter(|note| note.lock == inode);
    note.map(|note| note.runs.into_iter().map(RandomId::get).collect()).unwrap_or_default()
}

/// Records the ids, newest first, for the lock with this inode. The ids are on the disk when the
/// function returns.
pub(super) fn write(dir: &Dir, inode: u64, runs: &[u64]) -> io::Result<()> {
    let runs = runs.iter().take(RUNS_MAX).map(|&run| RandomId::new(run)).collect();
    note::write(dir, NAME, &Lease { lock: inode, runs })?;
    dir.sync()
}
