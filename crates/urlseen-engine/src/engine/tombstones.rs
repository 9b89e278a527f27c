//! Fingerprints that are set and are to pass once more, as a filter cannot unset any.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::in_flight::Hashed;
use urlseen_core::filter::ShardId;
use urlseen_core::filter::native::KeyHash;

/// The exact set of what one thread is to let pass once more, by the 128 bits that the layout makes
/// of a fingerprint.
#[derive(Debug)]
pub(super) struct Tombstones {
    keys: HashMap<u128, ShardId, BuildHasherDefault<Hashed>>,
    /// How many all threads have together.
    count: Arc<AtomicUsize>,
}

impl Tombstones {
    /// Nothing is forgotten. `count` is shared by all threads.
    pub(super) fn new(count: Arc<AtomicUsize>) -> Self {
        Self { keys: HashMap::default(), count }
    }

    #[inline]
    pub(super) fn contains(&self, key_hash: KeyHash) -> bool {
        !self.keys.is_empty() && self.keys.contains_key(&key_hash.id())
    }

    /// The key is to pass once more.
    pub(super) fn insert(&mut self, shard: ShardId, id: u128) {
        if self.keys.insert(id, shard).is_none() {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The key was let pass.
    #[inline]
    pub(super) fn remove(&mut self, key_hash: KeyHash) {
        if !self.keys.is_empty() && self.keys.remove(&key_hash.id()).is_some() {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub(super) fn clear(&mut self) {
        self.count.fetch_sub(self.keys.len(), Ordering::Relaxed);
        self.keys = HashMap::default();
    }

    /// All keys with their shards, in no order.
    pub(super) fn ids(&self) -> impl Iterator<Item = (ShardId, u128)> {
        self.keys.iter().map(|(&id, &shard)| (shard, id))
    }
}

impl Drop for Tombstones {
    fn drop(&mut self) {
        self.clear();
    }
}
