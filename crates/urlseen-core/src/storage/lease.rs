//! Runs that may hold the crawl's lease in Redis: the file `lease`.
//!
//! ```text
//! {"lock":131090,"runs":["2b1d9f0c66a1e4d7","…"],"crc":"89abcdef"}
//! ```
//!
//! `lock` is the inode of the folder's file `lock`. A process that holds that lock knows that these
//! runs are dead, but only if it is the very file that they locked. In a copy of the folder they
//! prove nothing. The CRC-32C is that of the inode in decimal and the ids in hex, with a space
//! after each.

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

/// Returns the ids recorded for the lock with this inode. Without them, the lease is waited for.
pub(super) fn read(dir: &Dir, inode: u64) -> Vec<u64> {
    let note = note::read::<Lease>(dir, NAME).filter(|note| note.lock == inode);
    note.map(|note| note.runs.into_iter().map(RandomId::get).collect()).unwrap_or_default()
}

/// Records the ids, newest first, for the lock with this inode. They are on the disk when this
/// returns.
pub(super) fn write(dir: &Dir, inode: u64, runs: &[u64]) -> io::Result<()> {
    let runs = runs.iter().take(RUNS_MAX).map(|&run| RandomId::new(run)).collect();
    note::write(dir, NAME, &Lease { lock: inode, runs })?;
    dir.sync()
}
