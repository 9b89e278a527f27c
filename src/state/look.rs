//! Looking at a folder without changing it.

use std::path::Path;

use super::error::{Damage, OpenError};
use super::header::Header;
use super::holder::Holder;
use crate::head::Position;

/// What is in a folder.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// What it was made for; `None` if it is new.
    pub header: Option<Header>,
    /// Who writes to it, if anybody does.
    pub holder: Option<Holder>,
    /// Its snapshots, oldest first.
    pub snapshots: Vec<SnapshotLook>,
    /// The files of its log, oldest first.
    pub segments: Vec<SegmentLook>,
    /// Where the log ends.
    pub last: Option<Position>,
    /// What cannot be read.
    pub damages: Vec<Damage>,
}

/// A snapshot as it lies there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotLook {
    /// Its file name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// The lowest position of any shard: where replay starts.
    pub first: Position,
    /// The highest position of any shard.
    pub last: Position,
    /// When it was begun and finished, in milliseconds since 1970.
    pub begun: u64,
    /// When it was finished, in milliseconds since 1970.
    pub finished: u64,
    /// Keys that all shards count.
    pub keys: u64,
}

/// A file of the log as it lies there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentLook {
    /// Its file name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// What its first record follows.
    pub follows: Position,
    /// Its last record that can be read.
    pub last: Position,
    /// Records up to there.
    pub records: u64,
    /// Fingerprints in them.
    pub fingerprints: u64,
}

/// Reads what is in a folder, at rest or not. Writes nothing.
pub fn look(dir: &Path) -> Result<Look, OpenError> {
    todo!()
}
