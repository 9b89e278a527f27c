//! Interface of an in-memory filter. A storage folder keeps the content of such a filter.

use super::head::Position;
use super::restore::Restore;
use crate::filter::{Blob, ShardId};
use crate::limit::Counted;

/// An in-memory filter whose content a storage folder keeps. Clones share one filter: the thread of
/// a snapshot copies the shards while other threads use the filter.
pub trait LiveFilter: Restore + Clone + Send + 'static {
    /// Copies a shard as it is now, possibly into the memory of `buffer`. Returns `None` if the
    /// filter does not exist any more.
    fn copy(&self, shard: ShardId, buffer: Vec<u8>) -> Option<Copied>;

    /// Copies the counts of limits as they are now, with the position of the last record whose
    /// changes they have. Returns `None` if the filter does not exist any more.
    fn copy_counts(&self) -> Option<(Vec<Counted>, Position)>;

    /// Sets the position of all shards and of the counts.
    fn stand(&self, at: Position);

    /// Returns about the number of bytes that the filter takes in a snapshot.
    fn saved_bytes(&self) -> u64;

    /// Returns true if the storage must not start threads: its caller does all the work.
    #[cfg(feature = "simulation")]
    fn is_stepped(&self) -> bool {
        false
    }
}

/// Copy of a shard at one position.
#[derive(Debug)]
pub struct Copied {
    /// The keys, as the kind of the filter saved them.
    pub blob: Box<dyn Blob>,
    /// Position of the last record whose changes are in the shard.
    pub at: Position,
    /// The shard's tombstones: the 128-bit key hash of each forgotten fingerprint.
    pub tombstones: Vec<u128>,
}
