//! What a recovery brings back.

use std::io::{self, Read};

use crate::filter::ShardId;
use crate::fingerprint::Fingerprint;
use crate::storage::head::Position;

/// A shard as a snapshot has it, but for its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// The shard.
    pub shard: ShardId,
    /// The last record that it holds.
    pub at: Position,
    /// Keys in it.
    pub keys: u64,
    /// How many bytes its body has; none if nothing is in it.
    pub len: u64,
}

/// A filter that is brought back. It is given all of it in order: nothing, then each shard of a
/// snapshot once, then what was added since. Where a snapshot turns out to be damaged, it begins
/// again.
pub trait Restore {
    /// Forgets everything: all shards are empty.
    fn clear(&mut self);
    /// Sets a shard as a snapshot has it, from all bytes of `body`, which the kind of the filter
    /// [saved](crate::filter::FilterKind::save).
    ///
    /// # Errors
    /// As [`FilterKind::load`](crate::filter::FilterKind::load).
    fn load(&mut self, section: Section, body: &mut dyn Read) -> io::Result<()>;
    /// Lets a fingerprint pass once more that a snapshot has as forgotten: its shard, and the 128
    /// bits that the filter makes of it. Comes behind what is loaded.
    fn load_tombstone(&mut self, shard: ShardId, id: u128);
    /// Sets fingerprints of the record that the log has at `at`.
    fn add(&mut self, fingerprints: Vec<Fingerprint>, at: Position);
    /// Lets fingerprints of the record that the log has at `at` pass once more.
    fn forget(&mut self, fingerprints: Vec<Fingerprint>, at: Position);
}
