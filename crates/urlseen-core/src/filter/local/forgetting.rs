//! Filter in memory that can forget single keys, whatever its kind is.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Blob, FilterKind, Full, Removal};
use crate::filter::generation::Generation;
use crate::filter::layout::native::KeyHash;
use crate::filter::{ShardId, Verdict};

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
    pub fn kind(&self) -> &dyn FilterKind {
        &*self.filter
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

    /// Makes room for further keys in a shard: see [`FilterKind::make_room`].
    ///
    /// # Errors
    /// The filter is full and cannot grow.
    pub fn make_room(&mut self, shard: ShardId, keys: u64) -> Result<(), Full> {
        self.filter.make_room(shard, keys)
    }

    /// Makes room for these keys: see [`FilterKind::make_room_for`].
    ///
    /// # Errors
    /// The filter is full and cannot grow.
    pub fn make_room_for(&mut self, key_hashes: &[KeyHash]) -> Result<(), Full> {
        self.filter.make_room_for(key_hashes)
    }

    /// Inserts keys and removes their tombstones. From now on, the keys are seen.
    ///
    /// # Errors
    /// The filter is full and cannot grow.
    pub fn insert(&mut self, key_hashes: &[KeyHash]) -> Result<(), Full> {
        self.insert_in(Generation::FOREVER, key_hashes)
    }

    /// Inserts keys that were let through in a generation, and removes their tombstones: see
    /// [`FilterKind::insert_in`].
    ///
    /// # Errors
    /// The filter is full and cannot grow.
    pub fn insert_in(
        &mut self,
        generation: Generation,
        key_hashes: &[KeyHash],
    ) -> Result<(), Full> {
        self.filter.insert_in(generation, key_hashes)?;
        if !self.tombstones.is_empty() {
            let removed = key_hashes.iter().filter_map(|it| self.tombstones.remove(&it.id()));
            self.count.fetch_sub(removed.count(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Begins a generation: see [`FilterKind::begin_generation`].
    pub fn begin_generation(&mut self, generation: Generation) {
        self.filter.begin_generation(generation);
    }

    /// Frees slots of expired keys: see [`FilterKind::sweep`].
    pub fn sweep(&mut self) -> bool {
        self.filter.sweep()
    }

    /// Forgets a key. The key is unseen until it is inserted again.
    pub fn forget(&mut self, key_hash: KeyHash) {
        if self.filter.remove(key_hash) == Removal::NeedsTombstone
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

    /// Loads a shard: see [`FilterKind::load`]. All tombstones stay.
    ///
    /// # Errors
    /// The same errors as [`FilterKind::load`].
    pub fn load(
        &mut self,
        shard: ShardId,
        keys: u64,
        len: u64,
        from: &mut dyn Read,
    ) -> io::Result<()> {
        self.filter.load(shard, keys, len, from)
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
