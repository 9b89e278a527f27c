//! Filters in memory, one file for each kind.
//!
//! Calls of a `Box<dyn FilterKind>` are dispatched once for each batch. The loops over keys are
//! inside the kinds.

#[cfg(test)]
mod expiry_tests;
mod forgetting;
#[cfg(test)]
mod kit_tests;
mod over_frozen;
mod recent;
pub(crate) mod shown;

use std::fmt::Debug;
use std::io::{self, Read, Write};
use std::sync::Arc;

use super::generation::{Generation, Generations};
use super::{AllocationError, KeyHash, Kind, SHARDS, ShardId, SpecError};

pub use crate::native::shards::Shards;
pub(super) use crate::two_choice::filter::TwoChoiceFilter;
pub use forgetting::{ForgettingFilter, Hashed};
pub use over_frozen::OverFrozen;
pub use recent::Recent;

/// Filter in memory of any kind, with all its shards.
pub trait FilterKind: Debug + Send {
    /// Appends a verdict on each key, in the order of the keys.
    fn test(&self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>);

    /// Makes room for this number of further keys in a shard. Returns false if there is none, and
    /// more than [`Effort::Short`] is needed to make it.
    ///
    /// # Errors
    /// The filter is full and cannot grow.
    fn reserve(&mut self, _shard: ShardId, _keys: u64, _effort: Effort) -> Result<bool, Full> {
        Ok(true)
    }

    /// Inserts keys, which never expire. From now on, they are seen.
    ///
    /// # Errors
    /// The filter is full and cannot grow. Keys for which [`FilterKind::reserve`] made room never
    /// cause this error.
    fn insert(&mut self, key_hashes: &[KeyHash]) -> Result<(), Full>;

    /// Removes a key, if the kind supports removals. Returns false if the filter may still report
    /// the key as seen, so that the key needs a tombstone.
    fn remove(&mut self, _key_hash: KeyHash) -> bool {
        false
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

    /// Returns the generations of the keys, if the keys expire.
    fn ages(&mut self) -> Option<&mut dyn Ages> {
        None
    }
}

/// Work that [`FilterKind::reserve`] may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Nothing that takes long, such as growth.
    Short,
    /// Anything that makes the room.
    Any,
}

/// Generations of the keys of a filter.
pub trait Ages {
    /// Begins a generation, unless it or a later one has begun. Keys that are too old are unseen
    /// from then on. If expired keys still take slots, their slots are freed before.
    fn begin(&mut self, generation: Generation);

    /// Inserts keys that were let through in a generation. If the filter has a key, the key gets
    /// the generation. If the generation has expired, the keys are removed. A later generation than
    /// the present one begins.
    ///
    /// # Errors
    /// The same errors as [`FilterKind::insert`].
    fn insert_in(&mut self, generation: Generation, key_hashes: &[KeyHash]) -> Result<(), Full>;

    /// Frees slots of expired keys, for about a tenth of a millisecond. Returns true if there are
    /// further ones.
    fn sweep(&mut self) -> bool;

    /// Returns the generation of a key, if the filter has the key.
    fn generation(&self, key_hash: KeyHash) -> Option<Generation>;
}

impl dyn FilterKind + '_ {
    /// Makes room for these keys, as if all of them were new.
    ///
    /// # Errors
    /// The filter is full and cannot grow.
    pub fn reserve_for(&mut self, key_hashes: &[KeyHash]) -> Result<(), Full> {
        let mut keys = [0; SHARDS];
        for key_hash in key_hashes {
            keys[key_hash.shard().index()] += 1;
        }
        for shard in key_hashes.iter().map(KeyHash::shard) {
            // The first key of a shard makes room for the others.
            let keys = std::mem::take(&mut keys[shard.index()]);
            if keys > 0 {
                self.reserve(shard, keys, Effort::Any)?;
            }
        }
        Ok(())
    }

    /// Inserts keys that were let through in a generation, which counts only if the keys expire:
    /// see [`Ages::insert_in`].
    ///
    /// # Errors
    /// The same errors as [`FilterKind::insert`].
    pub fn insert_in(
        &mut self,
        generation: Generation,
        key_hashes: &[KeyHash],
    ) -> Result<(), Full> {
        match self.ages() {
            Some(ages) => ages.insert_in(generation, key_hashes),
            None => self.insert(key_hashes),
        }
    }

    /// Begins a generation, if the keys expire: see [`Ages::begin`].
    pub fn begin_generation(&mut self, generation: Generation) {
        if let Some(ages) = self.ages() {
            ages.begin(generation);
        }
    }

    /// Adds the keys of a shard of another filter with the same parameters. If both filters have a
    /// key, its later generation counts.
    ///
    /// # Errors
    /// This filter has too little room for the keys.
    ///
    /// # Panics
    /// If the kind does not store keys.
    pub fn unite(&mut self, shard: ShardId, other: &dyn FilterKind) -> Result<(), Full> {
        let mut keys = other.save(shard, Vec::new()).key_hashes(shard).expect("stored keys");
        if let (Some(ages), Some(others)) = (self.ages(), other.gauge().generations()) {
            ages.begin(others.now);
            keys.retain(|&(key_hash, generation)| ages.generation(key_hash) < Some(generation));
        }
        let key_hashes: Vec<_> = keys.iter().map(|&(key_hash, _)| key_hash).collect();
        self.reserve_for(&key_hashes)?;
        insert_dated(self, keys)
    }
}

/// Answer of a filter about a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The key was never set.
    Unseen,
    /// The key was set. A key that was never set gets this wrong answer at the filter's error rate.
    Seen,
}

impl Verdict {
    /// Returns [`Verdict::Seen`] if all the key's bits are set.
    pub fn of(all_set: bool) -> Self {
        if all_set { Self::Seen } else { Self::Unseen }
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

    /// Returns the keys of the shard and their generations, if the kind stores keys. `shard` is the
    /// saved shard.
    fn key_hashes(&self, _shard: ShardId) -> Option<Vec<(KeyHash, Generation)>> {
        None
    }

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
    /// True if the bytes are the ids of the keys, and nothing else.
    pub(crate) has_ids: bool,
}

impl Saved {
    /// Makes the saved state of a shard of bits.
    pub fn bits(keys: u64, bytes: Vec<u8>) -> Self {
        Self { keys, bytes, has_ids: false }
    }
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

    fn key_hashes(&self, shard: ShardId) -> Option<Vec<(KeyHash, Generation)>> {
        let key = |id: &[u8; 16]| KeyHash::named(shard, u128::from_le_bytes(*id));
        let keys = self.bytes.as_chunks().0.iter().map(|id| (key(id), Generation::FOREVER));
        self.has_ids.then(|| keys.collect())
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
    /// Number of bits that the next key sets, if the filter has layers; 0 if it is empty.
    pub hashes: u32,
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

/// Error of a filter that cannot be created in memory.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The memory of the filter could not be allocated.
    #[error(transparent)]
    Allocation(#[from] AllocationError),
    /// A filter of RedisBloom cannot be created.
    #[error(
        "the filter does not fit (it may take half of the available memory, because its newest \
         layer is copied while a snapshot is taken); lower filter.capacity, raise \
         filter.error_rate, or give the process more memory: {0}"
    )]
    Reserve(#[from] SpecError),
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
pub(crate) fn insert_dated(
    filter: &mut dyn FilterKind,
    mut keys: Vec<(KeyHash, Generation)>,
) -> Result<(), Full> {
    keys.sort_by_key(|&(_, generation)| generation);
    for run in keys.chunk_by(|(_, one), (_, next)| one == next) {
        let key_hashes: Vec<_> = run.iter().map(|&(key_hash, _)| key_hash).collect();
        filter.insert_in(run[0].1, &key_hashes)?;
    }
    Ok(())
}

/// Returns the error of a saved shard that does not fit into memory.
pub(crate) fn out_of_memory(full: Full) -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, full)
}
