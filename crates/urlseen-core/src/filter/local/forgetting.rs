//! Filter in memory that forgets single keys, for every kind.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Blob, FilterKind, Full, Gauge, Hashed, Removal};
use crate::filter::layout::native::KeyHash;
use crate::filter::{SHARDS, ShardId, Verdict};

/// The shards of a filter that one owner has, and tombstones: the forgotten keys, if the filter's
/// kind cannot remove keys. A key with a tombstone is unseen until it is inserted again.
#[derive(Debug)]
pub struct ForgettingFilter {
    filter: Box<dyn FilterKind>,
    /// Shards of the forgotten keys, by the 128 bits that the filter makes of a fingerprint.
    tombstones: HashMap<u128, ShardId, Hashed>,
    /// Number of tombstones of all owners.
    count: Arc<AtomicUsize>,
}

impl ForgettingFilter {
    /// Wraps a filter that has forgotten nothing. All owners of a filter share the `count` of
    /// tombstones.
    pub fn new(filter: Box<dyn FilterKind>, count: Arc<AtomicUsize>) -> Self {
        Self { filter, tombstones: HashMap::default(), count }
    }

    /// Prefetches the memory of keys: see [`FilterKind::prefetch`].
    pub fn prefetch(&self, key_hashes: &[KeyHash]) {
        self.filter.prefetch(key_hashes);
    }

    /// Appends a verdict on each of the keys, in their order.
    pub fn test(&self, key_hashes: &[KeyHash], verdicts: &mut Vec<Verdict>) {
        let from = verdicts.len();
        self.filter.test(key_hashes, verdicts);
        if self.tombstones.is_empty() {
            return;
        }
        for (verdict, key_hash) in verdicts[from..].iter_mut().zip(key_hashes) {
            if self.tombstones.contains_key(&key_hash.id()) {
                *verdict = Verdict::Unseen;
            }
        }
    }

    /// Makes room for further keys: see [`FilterKind::reserve`].
    ///
    /// # Errors
    /// The filter is full, and cannot grow.
    pub fn reserve(&mut self, keys: &[u64; SHARDS]) -> Result<(), Full> {
        self.filter.reserve(keys)
    }

    /// Inserts keys: they are seen from now on.
    ///
    /// # Errors
    /// The filter is full, and cannot grow.
    pub fn insert(&mut self, key_hashes: &[KeyHash]) -> Result<(), Full> {
        self.filter.insert(key_hashes)?;
        if !self.tombstones.is_empty() {
            let removed = key_hashes.iter().filter_map(|it| self.tombstones.remove(&it.id()));
            self.count.fetch_sub(removed.count(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Forgets a key: it is unseen until it is inserted again.
    pub fn forget(&mut self, key_hash: KeyHash) {
        if self.filter.remove(key_hash) == Removal::Unsupported
            && self.tombstones.insert(key_hash.id(), key_hash.shard()).is_none()
        {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the gauge of the filter, for any thread.
    pub fn gauge(&self) -> Arc<dyn Gauge> {
        self.filter.gauge()
    }

    /// Saves a shard: see [`FilterKind::save`]. Returns its tombstones, too.
    pub fn save(&self, shard: ShardId, buffer: Vec<u8>) -> (Box<dyn Blob>, Vec<u128>) {
        let tombstones = self.tombstones.iter().filter(|(_, of)| **of == shard);
        (self.filter.save(shard, buffer), tombstones.map(|(&id, _)| id).collect())
    }

    /// Loads a shard: see [`FilterKind::load`]. Tombstones stay.
    ///
    /// # Errors
    /// As [`FilterKind::load`].
    pub fn load(
        &mut self,
        shard: ShardId,
        keys: u64,
        len: u64,
        from: &mut dyn Read,
    ) -> io::Result<()> {
        self.filter.load(shard, keys, len, from)
    }

    /// Empties all shards, and drops the tombstones.
    pub fn clear(&mut self) {
        self.drop_tombstones();
        self.filter.clear();
    }

    fn drop_tombstones(&mut self) {
        self.count.fetch_sub(self.tombstones.len(), Ordering::Relaxed);
        self.tombstones = HashMap::default();
    }
}

impl Drop for ForgettingFilter {
    fn drop(&mut self) {
        self.drop_tombstones();
    }
}
