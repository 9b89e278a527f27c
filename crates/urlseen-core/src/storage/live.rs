//! Interface between a filter in memory and its storage folder.

use super::head::Position;
use super::restore::Restore;
use crate::filter::{Blob, ShardId};

/// A filter in memory that is kept in a storage folder. Clones are the same filter: the thread of a
/// snapshot copies its shards while other threads use it.
pub trait LiveFilter: Restore + Clone + Send + 'static {
    /// Copies a shard as it is now, possibly into the memory of `buffer`. Returns `None` if the
    /// filter is gone.
    fn copy(&self, shard: ShardId, buffer: Vec<u8>) -> Option<Copied>;

    /// Sets the position of all shards.
    fn stand(&self, at: Position);

    /// Returns the bytes of memory that the filter takes.
    fn bytes(&self) -> u64;
}

/// Copy of a shard at one position.
#[derive(Debug)]
pub struct Copied {
    /// The keys, as the kind of the filter saved them.
    pub blob: Box<dyn Blob>,
    /// The last record in the shard.
    pub at: Position,
    /// The shard's tombstones, by the 128 bits that the filter makes of a fingerprint.
    pub tombstones: Vec<u128>,
}
