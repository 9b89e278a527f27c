//! Checkpoints of imports into the filter: the file `imports`.
//!
//! ```text
//! {"filter":"2b1d9f0c66a1e4d7","checkpoints":[{"source":"…","version":"…","at":22,"count":1}]}
//! 89abcdef
//! ```
//!
//! The last line is the CRC-32C of all before it. Checkpoints of another filter and unreadable
//! checkpoints are ignored. The import then starts from the beginning, and only takes longer.

use std::io;

use serde::{Deserialize, Serialize};

use super::dir::Dir;
use super::note;
use crate::filter::id::RandomId;

/// Name of the file in the folder.
pub(super) const NAME: &str = "imports";

/// Maximum number of sources to remember. Only the most recently imported sources are kept.
pub(super) const CHECKPOINTS_MAX: usize = 1000;

/// Progress of the import of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Name of the imported source.
    pub source: String,
    /// Version of the source. It distinguishes the source from other content of the same name.
    pub version: String,
    /// Place in the source: everything before it is in the log.
    pub at: u64,
    /// Number of elements of the source before `at`.
    pub count: u64,
}

#[derive(Serialize, Deserialize)]
struct Imports {
    filter: RandomId,
    checkpoints: Vec<Checkpoint>,
}

/// Returns the known checkpoints of imports into `filter`.
pub(super) fn read(dir: &Dir, filter: u64) -> Vec<Checkpoint> {
    let note = note::read::<Imports>(dir, NAME).filter(|note| note.filter.get() == filter);
    note.map(|note| note.checkpoints).unwrap_or_default()
}

/// Records checkpoints, and replaces the earlier ones of the same sources.
pub(super) fn record(dir: &Dir, filter: u64, new: &[Checkpoint]) -> io::Result<()> {
    let mut checkpoints = read(dir, filter);
    checkpoints.retain(|checkpoint| new.iter().all(|new| new.source != checkpoint.source));
    checkpoints.extend_from_slice(new);
    checkpoints.drain(..checkpoints.len().saturating_sub(CHECKPOINTS_MAX));
    note::write(dir, NAME, &Imports { filter: RandomId::new(filter), checkpoints })?;
    dir.sync()
}

/// Deletes all checkpoints.
pub(super) fn clear(dir: &Dir) -> io::Result<()> {
    dir.remove_if_there(NAME)?;
    dir.sync()
}
