//! Keys that the judge found unseen and has not set yet.

use std::collections::{HashSet, VecDeque};

use super::queue::SHORT;
use urlseen_core::filter::lifetime::Lifetime;
use urlseen_core::filter::{Hashed, KeyHash, SHARDS, ShardId};
use urlseen_core::limit::Counted;

/// Set of keys. A key is the 128-bit hash of a fingerprint. The filter uses nothing else of a
/// fingerprint.
pub(super) type Keys = HashSet<u128, Hashed>;

/// Exact set of the keys that were found unseen and are not set yet. Keys of batches are set at the
/// commit. Keys of single questions are set after the log has them.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    keys: Keys,
    /// Judged batches, oldest first.
    pub(super) batches: VecDeque<JudgedBatch>,
    /// Added keys by group of questions, oldest first.
    pub(super) groups: VecDeque<ByLifetime>,
    /// Number of keys in the set, by shard.
    by_shard: ShardCounts,
}

/// Changes of the filter and of the counts that the commit of a judged batch makes.
#[derive(Debug)]
pub(super) struct JudgedBatch {
    pub(super) keys: ByLifetime,
    /// Changes of the counts of limits.
    pub(super) counted: Vec<Counted>,
}

/// Keys of a batch or of a group of questions, by lifetime.
#[derive(Debug, Default)]
pub(super) struct ByLifetime(Vec<(Lifetime, Vec<KeyHash>)>);

impl ByLifetime {
    pub(super) fn push(&mut self, lifetime: Lifetime, key_hash: KeyHash) {
        match self.0.iter_mut().find(|(other, _)| *other == lifetime) {
            Some((_, key_hashes)) => key_hashes.push(key_hash),
            None => self.0.push((lifetime, vec![key_hash])),
        }
    }

    /// Makes room for this number of keys with the default lifetime.
    pub(super) fn reserve(&mut self, keys: usize) {
        if self.0.is_empty() {
            self.0.push((Lifetime::default(), Vec::new()));
        }
        self.0[0].1.reserve(keys);
    }

    /// Returns the shards of a few of the keys.
    pub(super) fn shards(&self) -> Vec<ShardId> {
        let keys = self.iter().flat_map(|(_, key_hashes)| key_hashes);
        keys.take(SHORT + 1).map(KeyHash::shard).collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Lifetime, &[KeyHash])> + Clone {
        self.0.iter().map(|(lifetime, key_hashes)| (*lifetime, &key_hashes[..]))
    }
}

/// Number of keys of each shard.
#[derive(Debug)]
struct ShardCounts([u64; SHARDS]);

impl Default for ShardCounts {
    fn default() -> Self {
        Self([0; SHARDS])
    }
}

impl InFlight {
    /// Returns the number of keys in the set that belong to a shard.
    pub(super) fn in_shard(&self, shard: ShardId) -> u64 {
        self.by_shard.0[shard.index()]
    }

    /// Returns the shards that have keys in the set, with the numbers of these keys.
    pub(super) fn by_shard(&self) -> impl Iterator<Item = (ShardId, u64)> {
        ShardId::all().map(|shard| (shard, self.in_shard(shard))).filter(|&(_, keys)| keys > 0)
    }

    pub(super) fn contains(&self, key_hash: KeyHash) -> bool {
        self.keys.contains(&key_hash.id())
    }

    /// Inserts a key. Returns true if the key was not in the set.
    pub(super) fn insert(&mut self, key_hash: KeyHash) -> bool {
        let is_new = self.keys.insert(key_hash.id());
        self.by_shard.0[key_hash.shard().index()] += u64::from(is_new);
        is_new
    }

    /// Removes a key from the set. Returns true if the key was in the set.
    pub(super) fn remove(&mut self, key_hash: KeyHash) -> bool {
        let was_there = self.keys.remove(&key_hash.id());
        self.by_shard.0[key_hash.shard().index()] -= u64::from(was_there);
        was_there
    }

    /// Forgets a key: its batch or group will not set it. The next item with the key is unseen
    /// again.
    pub(super) fn forget(&mut self, key_hash: KeyHash) {
        if self.remove(key_hash) {
            let lists =
                self.groups.iter_mut().chain(self.batches.iter_mut().map(|it| &mut it.keys));
            let mut lists = lists.flat_map(|list| &mut list.0).map(|(_, list)| list);
            let found = lists.find_map(|list| {
                let place = list.iter().position(|other| other.id() == key_hash.id())?;
                Some(list.swap_remove(place))
            });
            found.expect("a list has each key of the set");
        }
    }

    /// Drops the keys of all batches.
    pub(super) fn drop_batches(&mut self) {
        while let Some(batch) = self.batches.pop_front() {
            for (_, key_hashes) in batch.keys.iter() {
                for &key_hash in key_hashes {
                    self.remove(key_hash);
                }
            }
        }
    }

    /// Removes keys from the set and from their batch, which will not set them.
    pub(super) fn withdraw(&mut self, batch: &mut ByLifetime, keys: &Keys) {
        for (_, key_hashes) in &mut batch.0 {
            key_hashes.retain(|&key_hash| {
                let stays = !keys.contains(&key_hash.id());
                if !stays {
                    self.remove(key_hash);
                }
                stays
            });
        }
    }
}
