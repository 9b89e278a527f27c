//! A snapshot: the filter, shard by shard.

use std::io;

use super::journal::LogHandle;
use super::retention::Retention;
use crate::filter::{Count, ShardId};
use crate::head::Position;

/// Writes a snapshot beside the log, from any thread.
#[derive(Debug)]
pub struct SnapshotWriter {}

/// A snapshot that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Its file name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// The names of the files that went for it.
    pub pruned: Vec<String>,
    /// Whether `horizon_bytes` made the folder reach back less far than it should.
    pub cut_by_bytes: bool,
}

impl SnapshotWriter {
    /// Writes a shard, in order, as it is at `at`; one without bits may have no bytes.
    pub fn write(
        &mut self,
        shard: ShardId,
        count: Count,
        at: Position,
        bytes: &[u8],
    ) -> io::Result<()> {
        todo!()
    }

    /// Makes the snapshot count, once it and the log up to it are on the disk, and drops what is
    /// not needed any more.
    ///
    /// # Panics
    /// If a shard was not written.
    pub fn finish(self, log: &LogHandle, retention: &Retention) -> io::Result<Finished> {
        todo!()
    }
}
