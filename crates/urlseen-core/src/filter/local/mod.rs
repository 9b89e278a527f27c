//! Filters in memory. Each kind has a file of its own.
//!
//! A thread has the shards of a filter that are its own as a `Box<dyn FilterKind>`. Calls are
//! dispatched once a batch; loops over keys are inside of the kinds.

mod exact;
mod forgetting;
mod hashed;
#[cfg(test)]
mod kit_tests;
mod native;
mod recent;
mod redisbloom;

use std::any::Any;
use std::fmt::Debug;
use std::io::{self, Read, Write};
use std::iter::Sum;
use std::sync::Arc;

use super::layout::native::{KeyHash, key_hash};
use super::memory::TooLarge;
use super::redisbloom::ReserveError;
use super::{AllocationError, Bits, Kind, SHARDS, Seed, ShardId, Verdict};
use crate::fingerprint::Fingerprint;

pub use exact::ExactShards;
pub use forgetting::ForgettingFilter;
pub use hashed::Hashed;
pub use native::NativeFilter;
pub use recent::Recent;
pub use redisbloom::RedisBloomFilter;

/// The shards of a filter in memory that one owner has. It needs no locks, because only the owner's
/// thread uses it.
///
/// # Panics
/// Methods that take keys or a shard panic if those belong to another owner.
pub trait FilterKind: Any + Debug + Send {
    /// Prefetches the memory that a test of these keys will read, for a test that follows soon.
    fn prefetch(&self, key_hashes: &[KeyHash]) {
        let _ = key_hashes;
    }

    /// Appends a verdict on each of the keys, in their order.
    fn test(&self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>);

    /// Makes room for more keys: this number of them in each shard, by [`ShardId::index`].
    ///
    /// # Errors
    /// The filter is full, and cannot grow.
    fn reserve(&mut self, keys: &[u64; SHARDS]) -> Result<(), Full> {
        let _ = keys;
        Ok(())
    }

    /// Sets the keys: they are seen from now on.
    ///
    /// # Errors
    /// The filter is full, and cannot grow. This does not happen for keys that
    /// [`FilterKind::reserve`] made room for.
    fn insert(&mut self, key_hashes: &[KeyHash]) -> Result<(), Full>;

    /// Removes a key, if the kind supports that.
    fn remove(&mut self, key_hash: KeyHash) -> Removal {
        let _ = key_hash;
        Removal::Unsupported
    }

    /// Publishes the fill to all threads from now on.
    fn gauge(&self) -> Arc<dyn Gauge>;

    /// Saves the current state of a shard. It can be written while the filter is in use. May use
    /// the memory of `buffer`.
    fn save(&self, shard: ShardId, buffer: Vec<u8>) -> Box<dyn Blob>;

    /// Replaces the contents of a shard by `len` bytes that [`FilterKind::save`] produced.
    ///
    /// # Errors
    /// Reading fails; [`io::ErrorKind::InvalidData`] if these bytes are not a saved shard of this
    /// kind; [`io::ErrorKind::OutOfMemory`] if there is not enough memory. After an error the shard
    /// is empty.
    fn load(&mut self, shard: ShardId, keys: u64, len: u64, from: &mut dyn Read) -> io::Result<()>;

    /// Empties all shards of the owner.
    fn clear(&mut self);

    /// Returns the keys, if the kind keeps them.
    fn key_hashes(&self) -> Option<Vec<KeyHash>> {
        None
    }

    /// Returns the bits, part by part, if they alone determine the keys of the filter.
    fn bits(&self) -> Option<Vec<Bits<'_>>> {
        None
    }

    /// Describes each layer, if the filter grows by layers.
    fn layers(&self) -> Vec<String> {
        Vec::new()
    }

    /// Adds the keys of a filter with the same parameters and layers.
    ///
    /// # Errors
    /// The kind does not support this, or this filter has no room for that number of keys.
    fn unite(&mut self, other: &dyn FilterKind) -> Result<(), UniteError> {
        let key_hashes = other.key_hashes().ok_or(UniteError::Unsupported)?;
        self.reserve(&count_by_shard(&key_hashes))?;
        Ok(self.insert(&key_hashes)?)
    }

    /// Begins a generation. Keys that are inserted from now on have this age. Kinds that keep no
    /// ages ignore the call.
    fn begin_generation(&mut self, generation: u32) {
        let _ = generation;
    }

    /// Removes the keys of this generation and of older ones. Kinds that keep no ages keep all
    /// keys.
    fn expire(&mut self, generation: u32) {
        let _ = generation;
    }
}

/// Counts keys by shard, as [`FilterKind::reserve`] takes them.
pub fn count_by_shard(key_hashes: &[KeyHash]) -> [u64; SHARDS] {
    let mut keys = [0; SHARDS];
    for key_hash in key_hashes {
        keys[key_hash.shard().index()] += 1;
    }
    keys
}

/// A shard as it was saved.
pub trait Blob: Debug + Send {
    /// Returns the number of keys in the shard.
    fn keys(&self) -> u64;

    /// Returns the number of bytes of the written shard; 0 if the shard is empty.
    fn len(&self) -> u64;

    /// Returns true if the shard is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the shard, piece by piece.
    ///
    /// # Errors
    /// The writer fails.
    fn write(&self, to: &mut dyn Write) -> io::Result<()>;

    /// Returns the shard's memory, to be reused for the next one.
    fn into_buffer(self: Box<Self>) -> Vec<u8> {
        Vec::new()
    }
}

/// A shard as it was saved: bytes.
#[derive(Debug, Default)]
pub struct Saved {
    /// Number of keys in the shard.
    pub keys: u64,
    /// Bytes of the shard, as they are written.
    pub bytes: Vec<u8>,
}

impl Blob for Saved {
    fn keys(&self) -> u64 {
        self.keys
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(&self.bytes)
    }

    fn into_buffer(self: Box<Self>) -> Vec<u8> {
        self.bytes
    }
}

/// Gauge that shows to any thread the fill of an owner's shards, as of the last change.
pub trait Gauge: Debug + Send + Sync {
    /// Returns the fill of the shards. Takes a few microseconds.
    fn fill(&self) -> Fill;

    /// Share of unseen fingerprints that the filter reports as seen now, as far as they fall into
    /// these shards. The shares of all owners add up. The call takes up to a millisecond.
    fn error_rate(&self) -> f64;

    /// Sets the number of keys of each shard, by [`ShardId::index`]: those that were new.
    fn keys(&self, keys: &mut [u64; SHARDS]);
}

/// Fill of a filter, or of the shards of an owner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fill {
    /// Number of fingerprints in the filter. It is estimated from the set bits if there is no other
    /// source.
    pub keys: u64,
    /// Fingerprints that were new when they were set.
    pub counted: u64,
    /// Number of fingerprints that the filter is made for. It increases when the filter grows.
    pub capacity: u64,
    /// Memory of the filter, in bytes.
    pub bytes: u64,
    /// Number of layers, if the filter grows by layers.
    pub layers: usize,
}

impl Fill {
    /// Returns the number of fingerprints divided by the capacity.
    pub fn share(&self) -> f64 {
        self.keys as f64 / self.capacity.max(1) as f64
    }

    /// Returns this fill with an exact count in place of an estimate: `keys` is the number of
    /// fingerprints that were new when they were set.
    #[must_use]
    pub fn counted(self) -> Self {
        Self { keys: self.counted, ..self }
    }
}

/// A filter of its owners' shards.
impl Sum for Fill {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |all, part| Self {
            keys: all.keys + part.keys,
            counted: all.counted + part.counted,
            capacity: all.capacity + part.capacity,
            bytes: all.bytes + part.bytes,
            layers: all.layers + part.layers,
        })
    }
}

/// Reason why two filters cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UniteError {
    /// The kind has no such operation.
    #[error("two filters of this kind cannot become one")]
    Unsupported,
    /// The filters have other layers.
    #[error("the layers of the filters differ, so their bits mean different things")]
    Layers,
    /// A layer would have more keys than it was made for.
    #[error(
        "together layer {layer} of the filters has about {keys} items, and it is made for \
         {capacity}: RedisBloom could neither count them nor keep its error rate. Make one filter \
         of a larger capacity, and feed it both crawls"
    )]
    LayerFull {
        /// Number of the layer, from 0.
        layer: usize,
        /// Estimated number of its keys.
        keys: u64,
        /// Number of keys that it was made for.
        capacity: u64,
    },
    /// The filter has no room for the keys.
    #[error(transparent)]
    Full(#[from] Full),
}

/// Result of removing a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// The key is not in the filter any more.
    Removed,
    /// Such a filter cannot remove keys.
    Unsupported,
}

/// A filter cannot be created in memory.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The machine does not have enough memory for the filter.
    #[error(transparent)]
    TooLarge(#[from] Box<TooLarge>),
    /// The memory of the filter could not be allocated.
    #[error(transparent)]
    Allocation(#[from] AllocationError),
    /// A filter of RedisBloom cannot be created.
    #[error(
        "the filter does not fit (half of the memory that is available is its limit, as its newest \
         layer is copied while a snapshot is taken); lower filter.capacity, raise \
         filter.error_rate, or give the process more memory: {0}"
    )]
    Reserve(#[from] ReserveError),
    /// The filter's kind is never in memory.
    #[error("the filter kind {0} is one of Redis alone")]
    InRedis(Kind),
}

/// A filter has no room for a key, and cannot grow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Full(pub(crate) String);

/// Computes key hashes from fingerprints: once for each fingerprint, for all uses.
#[derive(Debug, Clone, Copy)]
pub struct KeyHasher {
    seed: Seed,
    rule: fn(Seed, &Fingerprint) -> KeyHash,
}

impl KeyHasher {
    /// Hashes by a rule, under a seed.
    fn new(seed: Seed, rule: fn(Seed, &Fingerprint) -> KeyHash) -> Self {
        Self { seed, rule }
    }

    /// Hashes by the rule of urlseen's own kinds.
    pub(crate) fn of_seed(seed: Seed) -> Self {
        Self::new(seed, key_hash)
    }

    /// Hashes by RedisBloom's rule, which has no seed.
    pub(super) fn of_redisbloom() -> Self {
        Self::new(Seed::new(0), RedisBloomFilter::key_hash)
    }

    /// Hashes a fingerprint by the rule.
    #[inline]
    pub fn key_hash(&self, fingerprint: &Fingerprint) -> KeyHash {
        (self.rule)(self.seed, fingerprint)
    }
}
