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

/// The shards of a filter in memory that one owner has. Nothing in it is locked: all that is done
/// to it is done by the thread that has it.
///
/// # Panics
/// Methods that take keys or a shard panic if those belong to another owner.
pub trait FilterKind: Any + Debug + Send {
    /// Begins to fetch what a test of these keys looks at, for what is tested soon.
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
    /// The filter is full, and cannot grow. It never is for keys that [`FilterKind::reserve`] made
    /// room for.
    fn insert(&mut self, key_hashes: &[KeyHash]) -> Result<(), Full>;

    /// Takes a key out again, if the kind can do that.
    fn remove(&mut self, key_hash: KeyHash) -> Removal {
        let _ = key_hash;
        Removal::Unsupported
    }

    /// Says how full it is, to any thread, from here on.
    fn gauge(&self) -> Arc<dyn Gauge>;

    /// Saves a shard as it is now, to be written while the filter is worked with. May use the
    /// memory of `buffer`.
    fn save(&self, shard: ShardId, buffer: Vec<u8>) -> Box<dyn Blob>;

    /// Puts what [`FilterKind::save`] gave, `len` bytes, in place of what the shard holds.
    ///
    /// # Errors
    /// Where reading fails; [`io::ErrorKind::InvalidData`] where these are no bytes of such a
    /// shard; [`io::ErrorKind::OutOfMemory`] where there is no memory for them. The shard is empty
    /// then.
    fn load(&mut self, shard: ShardId, keys: u64, len: u64, from: &mut dyn Read) -> io::Result<()>;

    /// Empties all shards of the owner.
    fn clear(&mut self);

    /// Returns the keys, if the kind keeps them.
    fn key_hashes(&self) -> Option<Vec<KeyHash>> {
        None
    }

    /// Returns the bits, part by part, if these alone tell which keys the filter has.
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

    /// Begins a generation: what is inserted from now on has this age. Kinds that keep no ages
    /// ignore it.
    fn begin_generation(&mut self, generation: u32) {
        let _ = generation;
    }

    /// Takes out what is of this generation or an older one. Kinds that keep no ages keep all.
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

    /// Returns the number of bytes that the shard is written in; 0 if nothing is in it.
    fn len(&self) -> u64;

    /// Returns true if nothing is in it.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes it, piece by piece.
    ///
    /// # Errors
    /// Where writing fails.
    fn write(&self, to: &mut dyn Write) -> io::Result<()>;

    /// Gives its memory back, for the next one.
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

/// Shows to any thread how full the shards of an owner are, as of the last call that changed them.
pub trait Gauge: Debug + Send + Sync {
    /// Returns the fill of the shards. Takes a few microseconds.
    fn fill(&self) -> Fill;

    /// The share of unseen fingerprints that the filter takes for seen now, for those that fall on
    /// these shards: the shares of all owners add up. Takes up to a millisecond.
    fn error_rate(&self) -> f64;

    /// Sets the number of keys of each shard, by [`ShardId::index`]: those that were new.
    fn keys(&self, keys: &mut [u64; SHARDS]);
}

/// Fill of a filter, or of the shards of an owner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fill {
    /// Fingerprints in it; estimated from the bits that are set, where only those tell.
    pub keys: u64,
    /// Fingerprints that were new when they were set.
    pub counted: u64,
    /// Fingerprints that it is made for; more once it has grown.
    pub capacity: u64,
    /// The memory that it takes.
    pub bytes: u64,
    /// Its layers, where it grows by layers.
    pub layers: usize,
}

impl Fill {
    /// The share of what it is made for that it holds.
    pub fn share(&self) -> f64 {
        self.keys as f64 / self.capacity.max(1) as f64
    }

    /// The same with the fingerprints that were new when they were set, instead of an estimate.
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

/// Two filters that cannot become one.
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
    /// It is not in the filter any more.
    Removed,
    /// Such a filter cannot take keys out.
    Unsupported,
}

/// A filter cannot be created in memory.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The machine has no memory for it.
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
    /// It is of a kind that is never in memory.
    #[error("the filter kind {0} is one of Redis alone")]
    InRedis(Kind),
}

/// A filter has no room for a key, and cannot grow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Full(pub(crate) String);

/// Makes of fingerprints what a filter knows them by: once, for all that is done with them.
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
