//! Interfaces of the filter that a folder keeps. A recovery restores it, and snapshots copy it.

use std::io::{self, Read};

use urlseen_filter::Generation;
use urlseen_filter::limit::Counted;
use urlseen_filter::{Blob, ShardId};
use urlseen_fingerprint::Fingerprint;

use crate::head::Position;

/// Head of a shard's section in a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// Id of the section's shard.
    pub shard: ShardId,
    /// Position of the last record whose changes are in the shard.
    pub at: Position,
    /// Number of keys in the shard.
    pub keys: u64,
    /// Bytes of the body; 0 if the shard is empty.
    pub len: u64,
    /// Offset of the body in the snapshot's file.
    pub begin: u64,
}

/// A filter that a recovery restores. The recovery clears the filter, loads each shard of a
/// snapshot once, and then applies the log. If the snapshot is damaged, the recovery starts again
/// with another snapshot.
pub trait Restore {
    /// Removes everything: all shards are empty.
    fn clear(&mut self);
    /// Loads a shard of a snapshot from all bytes of `body`, which the kind of the filter
    /// [saved](urlseen_filter::FilterKind::save).
    ///
    /// # Errors
    /// The errors of [`FilterKind::load`](urlseen_filter::FilterKind::load).
    fn load(&mut self, section: Section, body: &mut dyn Read) -> io::Result<()>;
    /// Loads a tombstone of a snapshot: its fingerprint passes once more. `id` is the 128-bit key
    /// hash of the fingerprint. Tombstones come after all shards.
    fn load_tombstone(&mut self, shard: ShardId, id: u128);
    /// Announces the number of keys that the empty filter will have, so that it need not grow.
    fn expect(&mut self, _keys: u64) {}
    /// Adds those fingerprints of the record at `at` in the log that are stored under a
    /// generation. It is [`Generation::FOREVER`] if the fingerprints do not expire.
    fn add(&mut self, fingerprints: Vec<Fingerprint>, generation: Generation, at: Position);
    /// Forgets the fingerprints of the record at `at` in the log: each passes once more.
    fn forget(&mut self, fingerprints: Vec<Fingerprint>, at: Position);
    /// Loads the counts of a snapshot, which were in it at the position `at`. A filter that neither
    /// limits nor keeps its content may ignore them.
    fn load_counts(&mut self, _counts: &[Counted], _at: Position) {}
    /// Changes counts by the record at `at` in the log, unless the counts already have its changes.
    fn count(&mut self, _changes: &[Counted], _at: Position) {}
    /// Begins a generation, unless it or a later one has begun.
    fn begin_generation(&mut self, generation: Generation);
}

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
