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

use std::fmt::Write as _;
use std::io;

use serde::{Deserialize, Serialize};

use super::dir::Dir;

/// Name of the file in the folder.
pub(super) const NAME: &str = "lease";

/// Most runs that are remembered, for restarts in quick succession.
const RUNS_MAX: usize = 64;

#[derive(Serialize, Deserialize)]
struct File {
    lock: u64,
    runs: Vec<String>,
    crc: String,
}

/// Reads the ids that `dir` records for the lock with this inode. Returns none if the file is for
/// another lock or cannot be read; then the daemon waits for the lease.
pub(super) fn read(dir: &Dir, inode: u64) -> io::Result<Vec<u64>> {
    let Some(bytes) = dir.read(NAME)? else { return Ok(Vec::new()) };
    let Ok(file) = serde_json::from_slice::<File>(&bytes) else { return Ok(Vec::new()) };
    let runs: Result<Vec<_>, _> =
        file.runs.iter().map(|run| u64::from_str_radix(run, 16)).collect();
    Ok(match runs {
        Ok(runs) if file.lock == inode && file.crc == crc(inode, &runs) => runs,
        _ => Vec::new(),
    })
}

/// Records the ids, newest first, for the lock with this inode.
pub(super) fn write(dir: &Dir, inode: u64, runs: &[u64]) -> io::Result<()> {
    let runs = &runs[..runs.len().min(RUNS_MAX)];
    let hex = runs.iter().map(|run| format!("{run:016x}")).collect();
    let file = File { lock: inode, runs: hex, crc: crc(inode, runs) };
    dir.write_aside(NAME, &serde_json::to_vec(&file)?)?;
    dir.replace(NAME)?;
    dir.sync()
}

fn crc(inode: u64, runs: &[u64]) -> String {
    let mut text = format!("{inode} ");
    for run in runs {
        write!(text, "{run:016x} ").expect("a string takes all");
    }
    format!("{:08x}", crc32c::crc32c(text.as_bytes()))
}
