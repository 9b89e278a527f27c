//! Filters in memory, one file for each kind.
//!
//! Calls of a `Box<dyn FilterKind>` are dispatched once for each batch. The loops over keys are
//! inside the kinds.

mod exact;
#[cfg(test)]
mod expiry_tests;
mod forgetting;
mod hasher;
#[cfg(test)]
mod kit_tests;
mod native;
mod over_frozen;
mod recent;
mod redisbloom;
mod two_choice;

use std::any::Any;
use std::fmt::Debug;
use std::io::{self, Read, Write};
use std::iter::Sum;
use std::sync::Arc;

use super::generation::{Generation, Generations};
use super::layout::native::KeyHash;
use super::memory::TooLarge;
use super::redisbloom::ReserveError;
use super::{AllocationError, Kind, SHARDS, ShardId, Verdict};

pub use exact::ExactShards;
pub use forgetting::ForgettingFilter;
pub use forgetting::Hashed;
pub use hasher::KeyHasher;
pub use native::NativeFilter;
pub use over_frozen::OverFrozen;
pub use recent::Recent;
pub use redisbloom::RedisBloomFilter;
pub(super) use two_choice::TwoChoiceFilter;

/// Filter in memory of any kind, with all its shards.
pub trait FilterKind: Any + Debug + Send {
    /// Appends a verdict on each key, in the order of the keys.
    fn test(&self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>);

    /// Returns true if this number of further keys can be inserted in a shard without long work,
    /// such as growth.
    fn has_room(&self, _shard: ShardId, _keys: u64) -> bool {
        true
    }

    /// Makes room for this number of further keys in a shard.
    ///
    /// # Errors
    /// The filter is full and cannot grow.
    fn make_room(&mut self, _shard: ShardId, _keys: u64) -> Result<(), Full> {
        Ok(())
    }

    /// Makes room for these keys, as if all of them were new.
    ///
    /// # Errors
    /// The filter is full and cannot grow.
    fn make_room_for(&mut self, key_hashes: &[KeyHash]) -> Result<(), Full> {
        let mut keys = [0; SHARDS];
        for key_hash in key_hashes {
            keys[key_hash.shard().index()] += 1;
        }
        for shard in key_hashes.iter().map(KeyHash::shard) {
            // The first key of a shard makes room for the others.
            let keys = std::mem::take(&mut keys[shard.index()]);
            if keys > 0 {
                self.make_room(shard, keys)?;
            }
        }
        Ok(())
    }

    /// Inserts keys. From now on, they are seen.
    ///
    /// # Errors
    /// The filter is full and cannot grow. Keys for which [`FilterKind::make_room`] made room never
    /// cause this error.
    fn insert(&mut self, key_hashes: &[KeyHash]) -> Result<(), Full>;

    /// Returns true if a client's addition is to be inserted when it is answered, before the log
    /// has it: the answer for a key then follows from the bits of all earlier additions.
    fn inserts_at_once(&self) -> bool {
        false
    }

    /// Inserts keys that were let through in a generation. If a key is in the filter, its
    /// generation is replaced. If the generation has expired, the keys are removed. A later
    /// generation than the present one begins. Kinds whose keys do not expire ignore generations.
    ///
    /// # Errors
    /// As [`FilterKind::insert`].
    fn insert_in(&mut self, _: Generation, key_hashes: &[KeyHash]) -> Result<(), Full> {
        self.insert(key_hashes)
    }

    /// Begins a generation, unless it or a later one has begun. Keys that are too old are unseen
    /// from then on. If expired keys still take slots, their slots are freed before.
    fn begin_generation(&mut self, _generation: Generation) {}

    /// Frees slots of expired keys, for about a tenth of a millisecond. Returns true if there are
    /// further ones.
    fn sweep(&mut self) -> bool {
        false
    }

    /// Returns the generation of a key, if the filter has the key and knows its generation.
    fn generation(&self, _key_hash: KeyHash) -> Option<Generation> {
        None
    }

    /// Removes a key, if the kind supports removals.
    fn remove(&mut self, _key_hash: KeyHash) -> Removal {
        Removal::NeedsTombstone
    }

    /// Returns a gauge that shows the fill to all threads.
    fn gauge(&self) -> Arc<dyn Gauge>;

    /// Saves the current state of a shard. The result can be written while the filter is in use.
    /// May use the memory of `buffer`.
    fn save(&self, shard: ShardId, buffer: Vec<u8>) -> Box<dyn Blob>;

    /// Replaces the contents of a shard by `len` bytes that [`FilterKind::save`] produced.
    ///
    /// # Errors
    /// Reading fails. The error is [`io::ErrorKind::InvalidData`] if these bytes are not a saved
    /// shard of this kind, and [`io::ErrorKind::OutOfMemory`] if there is not enough memory. After
    /// an error the shard is empty.
    fn load(&mut self, shard: ShardId, keys: u64, len: u64, from: &mut dyn Read) -> io::Result<()>;

    /// Removes all keys. The filter keeps its parameters.
    fn clear(&mut self);

    /// Returns all keys, if the kind stores keys.
    fn key_hashes(&self) -> Option<Vec<KeyHash>> {
        None
    }

    /// Returns the keys of a shard, if the kind stores keys.
    fn shard_key_hashes(&self, _shard: ShardId) -> Option<Vec<KeyHash>> {
        None
    }

    /// Returns the number of bits, and the number of bits that the next key sets. Only the content
    /// of an imported filter determines them. Returns 0 for other filters.
    fn shape(&self) -> (u64, u32) {
        (0, 0)
    }

    /// Adds all keys of another filter with the same parameters.
    ///
    /// # Errors
    /// The kind does not store keys, or this filter has too little room for the keys.
    fn unite(&mut self, other: &dyn FilterKind) -> Result<(), UniteError> {
        let key_hashes = other.key_hashes().ok_or(UniteError::Unsupported)?;
        self.make_room_for(&key_hashes)?;
        Ok(self.insert(&key_hashes)?)
    }
}

/// Saved state of a shard.
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

    /// Returns the memory of this state, to be reused for the next shard.
    fn into_buffer(self: Box<Self>) -> Vec<u8> {
        Vec::new()
    }
}

/// Saved state of a shard, as bytes.
#[derive(Debug, Default)]
pub struct Saved {
    /// Number of keys in the shard.
    pub keys: u64,
    /// Bytes of the shard in the form in which they are written.
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

/// Gauge that shows the fill of a filter to all threads. It is updated after each change.
pub trait Gauge: Debug + Send + Sync {
    /// Returns the fill. Takes a few microseconds.
    fn fill(&self) -> Fill {
        Fill::default()
    }

    /// Returns about the number of bytes of a snapshot.
    fn saved_bytes(&self) -> u64 {
        self.fill().bytes
    }

    /// Returns the current error rate. Takes up to a millisecond.
    fn error_rate(&self) -> f64 {
        0.0
    }

    /// Returns the part of [`Gauge::error_rate`] that a frozen filter causes.
    fn frozen_error_rate(&self) -> f64 {
        0.0
    }

    /// Counts the keys by generation. `None` if the keys do not expire.
    fn generations(&self) -> Option<Generations> {
        None
    }
}

/// Fill of a filter, or of a part of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fill {
    /// Number of fingerprints in the filter. The native kind estimates it from the set bits.
    pub keys: u64,
    /// Number of fingerprints that were new when they were set.
    pub counted: u64,
    /// Number of fingerprints that the filter is made for. It increases when the filter grows.
    pub capacity: u64,
    /// Memory of the filter, in bytes.
    pub bytes: u64,
    /// Number of layers, if the filter grows by layers.
    pub layers: usize,
    /// Factor of the capacity from one layer to the next; 0 if the filter does not grow by layers.
    pub expansion: u32,
}

impl Fill {
    /// Returns the number of fingerprints divided by the capacity.
    pub fn share(&self) -> f64 {
        self.keys as f64 / self.capacity.max(1) as f64
    }

    /// Returns this fill with a count instead of an estimate: `keys` is the number of fingerprints
    /// that were new when they were set.
    #[must_use]
    pub fn counted(self) -> Self {
        Self { keys: self.counted, ..self }
    }
}

/// Adds up the fills of all parts of a filter.
impl Sum for Fill {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |all, part| Self {
            keys: all.keys + part.keys,
            counted: all.counted + part.counted,
            capacity: all.capacity + part.capacity,
            bytes: all.bytes + part.bytes,
            layers: all.layers + part.layers,
            expansion: all.expansion.max(part.expansion),
        })
    }
}

/// Reason why two filters cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UniteError {
    /// The kind does not support unions.
    #[error("filters of this kind cannot be united")]
    Unsupported,
    /// The filter has too little room for the keys.
    #[error(transparent)]
    Full(#[from] Full),
}

/// Result of removing a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// The key is no longer in the filter.
    Removed,
    /// The filter may still report the key as seen, so the key needs a tombstone.
    NeedsTombstone,
}

/// Error of a filter that cannot be created in memory.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The available memory is too small for the filter.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The memory of the filter could not be allocated.
    #[error(transparent)]
    Allocation(#[from] AllocationError),
    /// A filter of RedisBloom cannot be created.
    #[error(
        "the filter does not fit (it may take half of the available memory, because its newest \
         layer is copied while a snapshot is taken); lower filter.capacity, raise \
         filter.error_rate, or give the process more memory: {0}"
    )]
    Reserve(#[from] ReserveError),
    /// The memory of a small filter that grows could not be taken.
    #[error(transparent)]
    Full(#[from] Full),
    /// The kind exists only in Redis.
    #[error("the filter kind {0} exists only in Redis, not in memory")]
    InRedis(Kind),
}

/// Error of a full filter that cannot grow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Full(pub(crate) String);

/// Inserts keys that were let through in these generations.
fn insert_dated(
    filter: &mut impl FilterKind,
    mut keys: Vec<(KeyHash, Generation)>,
) -> Result<(), Full> {
    keys.sort_by_key(|&(_, generation)| generation);
    for run in keys.chunk_by(|(_, one), (_, next)| one == next) {
        let key_hashes: Vec<_> = run.iter().map(|&(key_hash, _)| key_hash).collect();
        filter.insert_in(run[0].1, &key_hashes)?;
    }
    Ok(())
}

/// Adds keys of another filter. If both filters have a key, its later generation counts.
fn unite_dated(
    filter: &mut impl FilterKind,
    mut keys: Vec<(KeyHash, Generation)>,
) -> Result<(), UniteError> {
    keys.retain(|&(key_hash, generation)| filter.generation(key_hash) < Some(generation));
    let key_hashes: Vec<_> = keys.iter().map(|&(key_hash, _)| key_hash).collect();
    filter.make_room_for(&key_hashes)?;
    Ok(insert_dated(filter, keys)?)
}

/// Returns the error of a saved shard that does not fit into memory.
fn out_of_memory(full: Full) -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, full)
}
