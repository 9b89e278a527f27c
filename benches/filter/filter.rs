//! urlseen's filters. The benchmark calls them in the same way as the daemon's engine does.

use std::ops::Range;

use urlseen_core::filter::native::KeyHash;
use urlseen_core::filter::{FilterKind, KeyHasher, Kind, Sizing, Verdict};
use urlseen_core::fingerprint::Fingerprint;

use super::crawl::fingerprint;

/// Number of keys that are tested together, and then set together.
pub const BATCH: usize = 1000;

/// Shards of one filter thread.
pub struct Filter {
    hasher: KeyHasher,
    kind: Box<dyn FilterKind>,
    owner: usize,
    owners: usize,
}

impl Filter {
    /// Allocates an empty filter.
    pub fn new(kind: Kind, sizing: Sizing, owner: usize, owners: usize) -> Self {
        Self::beginning(kind, sizing, sizing.capacity.get(), owner, owners)
    }

    /// Allocates an empty filter with room for `begin` keys. If it grows, it keeps its error rate
    /// up to the capacity.
    pub fn beginning(kind: Kind, sizing: Sizing, begin: u64, owner: usize, owners: usize) -> Self {
        let parameters = kind.read(&|name| match name {
            "filter.capacity" => Some(begin.to_string()),
            "filter.grow_to" => Some(sizing.capacity.get().to_string()),
            "filter.error_rate" => Some(sizing.error_rate.to_string()),
            "filter.seed" => Some("1".to_owned()),
            _ => None,
        });
        let parameters = parameters.expect("parameters of the kind");
        let kind = parameters.build(owner, owners).expect("memory");
        Self { hasher: parameters.hasher(), kind, owner, owners }
    }

    /// Allocates the empty filters of this number of owners.
    pub fn all(kind: Kind, sizing: Sizing, owners: usize) -> Vec<Self> {
        (0..owners).map(|owner| Self::new(kind, sizing, owner, owners)).collect()
    }

    /// Returns the number of bits of memory.
    pub fn bits(&self) -> u64 {
        8 * self.kind.gauge().fill().bytes
    }

    /// Sets the keys that belong to the shards of this thread.
    pub fn fill(&mut self, keys: Range<u64>) {
        let (hasher, owner, owners) = (self.hasher, self.owner, self.owners);
        for first in keys.clone().step_by(BATCH) {
            let batch = first..keys.end.min(first + BATCH as u64);
            let mut key_hashes: Vec<KeyHash> =
                batch.map(|key| hasher.key_hash(&fingerprint(key))).collect();
            key_hashes.retain(|key_hash| key_hash.shard().owner(owners) == owner);
            self.kind.insert(&key_hashes).expect("memory");
        }
    }

    /// Returns those of `keys` that belong to the shards of this thread.
    pub fn own(&self, keys: &[Fingerprint]) -> Vec<Fingerprint> {
        let is_own =
            |key: &&Fingerprint| self.hasher.key_hash(key).shard().owner(self.owners) == self.owner;
        keys.iter().filter(is_own).cloned().collect()
    }

    /// Returns the key hash of each key.
    pub fn key_hashes(&self, keys: &[Fingerprint]) -> Vec<KeyHash> {
        keys.iter().map(|key| self.hasher.key_hash(key)).collect()
    }

    /// Tests keys and sets the unseen ones. Returns the number of unseen keys.
    pub fn judge(&mut self, keys: &[Fingerprint]) -> usize {
        keys.chunks(BATCH).map(|batch| self.judge_batch(&self.key_hashes(batch))).sum()
    }

    /// Tests key hashes and sets the unseen ones. Returns the number of unseen key hashes.
    pub fn judge_key_hashes(&mut self, key_hashes: &[KeyHash]) -> usize {
        key_hashes.chunks(BATCH).map(|batch| self.judge_batch(batch)).sum()
    }

    fn judge_batch(&mut self, key_hashes: &[KeyHash]) -> usize {
        let mut verdicts = Vec::new();
        self.kind.test(key_hashes, &mut verdicts);
        let judged = key_hashes.iter().zip(verdicts);
        let unseen: Vec<KeyHash> = judged
            .filter(|&(_, verdict)| verdict == Verdict::Unseen)
            .map(|(&key_hash, _)| key_hash)
            .collect();
        self.kind.insert(&unseen).expect("memory");
        unseen.len()
    }

    /// Returns the number of keys in the shards of this thread that the filter reports as seen.
    pub fn seen(&self, keys: Range<u64>) -> usize {
        let of_batch = |first: u64| {
            let batch = first..(first + BATCH as u64).min(keys.end);
            let key_hashes = batch.map(|key| self.hasher.key_hash(&fingerprint(key)));
            let own = key_hashes.filter(|it| it.shard().owner(self.owners) == self.owner);
            let mut verdicts = Vec::new();
            self.kind.test(&own.collect::<Vec<_>>(), &mut verdicts);
            verdicts.iter().filter(|&&verdict| verdict == Verdict::Seen).count()
        };
        keys.clone().step_by(BATCH).map(of_batch).sum()
    }
}
