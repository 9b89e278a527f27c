//! Filter in memory that can forget single keys, whatever its kind is.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Blob, FilterKind, Full};
use crate::generation::Generation;
use crate::{KeyHash, ShardId, Verdict};

/// Filter in memory, with its tombstones. A tombstone is a forgotten key of a filter whose kind
/// cannot remove keys. A key with a tombstone is unseen until it is inserted again.
#[derive(Debug)]
pub struct ForgettingFilter {
    filter: Box<dyn FilterKind>,
    /// Shards of the forgotten keys, by the ids of the keys.
    tombstones: HashMap<u128, ShardId, Hashed>,
    /// Number of tombstones, for all threads.
    count: Arc<AtomicUsize>,
}

impl ForgettingFilter {
    /// Wraps an empty filter.
    pub fn new(filter: Box<dyn FilterKind>) -> Self {
        Self { filter, tombstones: HashMap::default(), count: Arc::default() }
    }

    /// Returns the number of tombstones, which all threads can read.
    pub fn count(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.count)
    }

    /// Returns the filter without the tombstones.
    pub fn kind(&mut self) -> &mut dyn FilterKind {
        &mut *self.filter
    }

    /// Appends a verdict on each key, in the order of the keys.
    pub fn test(&mut self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>) {
        let from = verdicts.len();
        self.filter.test(key_hashes, verdicts);
        if !self.tombstones.is_empty() {
            for (verdict, key_hash) in verdicts[from..].iter_mut().zip(key_hashes) {
                if self.tombstones.contains_key(&key_hash.id()) {
                    *verdict = Verdict::Unseen;
                }
            }
        }
    }

    /// Inserts keys that were let through in a generation, and removes their tombstones: see
    /// [`Ages::insert_in`](super::Ages::insert_in).
    ///
    /// # Errors
    /// The filter is full and cannot grow.
    pub fn insert(&mut self, generation: Generation, key_hashes: &[KeyHash]) -> Result<(), Full> {
        self.filter.insert_in(generation, key_hashes)?;
        if !self.tombstones.is_empty() {
            let removed = key_hashes.iter().filter_map(|it| self.tombstones.remove(&it.id()));
            self.count.fetch_sub(removed.count(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Forgets a key. The key is unseen until it is inserted again.
    pub fn forget(&mut self, key_hash: KeyHash) {
        if !self.filter.remove(key_hash)
            && self.tombstones.insert(key_hash.id(), key_hash.shard()).is_none()
        {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Saves a shard: see [`FilterKind::save`]. Also returns the tombstones of the shard.
    pub fn save(&self, shard: ShardId, buffer: Vec<u8>) -> (Box<dyn Blob>, Vec<u128>) {
        let tombstones = self.tombstones.iter().filter(|(_, of)| **of == shard);
        (self.filter.save(shard, buffer), tombstones.map(|(&id, _)| id).collect())
    }

    /// Removes all keys from the shards, and all tombstones.
    pub fn clear(&mut self) {
        self.tombstones = HashMap::default();
        self.count.store(0, Ordering::Relaxed);
        self.filter.clear();
    }
}

/// Hasher for 128-bit hashes. It uses half of their bits.
pub type Hashed = BuildHasherDefault<HalfHasher>;

/// The state of [`Hashed`].
#[derive(Debug, Default)]
pub struct HalfHasher(u64);

impl Hasher for HalfHasher {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only 128-bit hashes are hashed");
    }

    #[allow(clippy::cast_possible_truncation)] // Half of a hash is a hash, too.
    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
