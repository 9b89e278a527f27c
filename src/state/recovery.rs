//! Bringing a filter back.

use super::error::Damage;
use crate::filter::{Count, ShardId};
use crate::fingerprint::Fingerprint;
use crate::head::{Head, Position};

/// Where a filter is to be brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// To the batch that Redis knows as its last.
    At(Head),
    /// As far as the folder goes, where no Redis says.
    Last,
}

/// A filter that is brought back. It is given all of it in order: nothing, then each shard of a
/// snapshot once, then what was added since. Where a snapshot turns out to be damaged, it begins
/// again.
pub trait Restore {
    /// Forgets everything: all shards are empty.
    fn clear(&mut self);
    /// Sets a shard as a snapshot has it: `bytes` are its bits, little endian words of 64, none
    /// where none is set.
    fn load(&mut self, shard: ShardId, count: Count, at: Position, bytes: Vec<u8>);
    /// Sets fingerprints of the record that the log has at `at`.
    fn add(&mut self, fingerprints: Vec<Fingerprint>, at: Position);
}

/// What was brought back, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// Where the log ends now, and the filter stands.
    pub position: Position,
    /// The file name of the snapshot that it began with.
    pub snapshot: String,
    /// Bytes of that snapshot.
    pub snapshot_bytes: u64,
    /// Records of the log that were replayed.
    pub records: u64,
    /// Fingerprints in them.
    pub fingerprints: u64,
    /// What lay beyond the target and was dropped.
    pub cut: Cut,
    /// Files that were passed over or dropped as damaged, and where.
    pub damaged: Vec<Damage>,
}

/// What was dropped of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cut {
    /// Batches that Redis does not know.
    pub batches: u64,
    /// Fingerprints of theirs.
    pub fingerprints: u64,
    /// Bytes, those that could not be read included.
    pub bytes: u64,
}
