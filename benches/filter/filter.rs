//! urlseen's filter. The benchmark calls it in the same way as the daemon's engine does.

use std::ops::Range;

use urlseen_core::filter::native::{KeyHash, Native};
use urlseen_core::filter::{Seed, Shards, Sizing, Verdict};
use urlseen_core::fingerprint::Fingerprint;

use super::crawl::fingerprint;

/// Number of keys that are tested together, and then set together.
pub const BATCH: usize = 1000;

/// Shards of one filter thread.
pub struct Filter {
    native: Native,
    shards: Shards,
    owner: usize,
    owners: usize,
}

impl Filter {
    /// Allocates an empty filter.
    pub fn new(sizing: Sizing, owner: usize, owners: usize) -> Self {
        let native = Native::new(Seed::new(1), sizing.geometry);
        let shards = Shards::allocate(native, owner, owners).expect("memory");
        Self { native, shards, owner, owners }
    }

    /// Sets the keys that belong to the shards of this thread.
    pub fn fill(&mut self, keys: Range<u64>) {
        let (native, owner, owners) = (self.native, self.owner, self.owners);
        for first in keys.clone().step_by(BATCH) {
            let batch = first..keys.end.min(first + BATCH as u64);
            let mut key_hashes: Vec<KeyHash> =
                batch.map(|key| native.key_hash(&fingerprint(key))).collect();
            key_hashes.retain(|key_hash| key_hash.shard().owner(owners) == owner);
            self.shards.set_all(&key_hashes);
        }
    }

    /// Returns those of `keys` that belong to the shards of this thread.
    pub fn own(&self, keys: &[Fingerprint]) -> Vec<Fingerprint> {
        let is_own =
            |key: &&Fingerprint| self.native.key_hash(key).shard().owner(self.owners) == self.owner;
        keys.iter().filter(is_own).cloned().collect()
    }

    /// Returns the key hash of each key.
    pub fn key_hashes(&self, keys: &[Fingerprint]) -> Vec<KeyHash> {
        keys.iter().map(|key| self.native.key_hash(key)).collect()
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
        self.shards.test_all(key_hashes, &mut verdicts);
        let judged = key_hashes.iter().zip(verdicts);
        let unseen: Vec<KeyHash> = judged
            .filter(|&(_, verdict)| verdict == Verdict::Unseen)
            .map(|(&key_hash, _)| key_hash)
            .collect();
        self.shards.set_all(&unseen);
        unseen.len()
    }

    /// Returns the number of keys that the filter reports as seen. Tests the keys on all
    /// processors.
    pub fn seen(&self, keys: Range<u64>) -> usize {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let of_batch = |first: u64| {
            let batch = first..(first + BATCH as u64).min(keys.end);
            let key_hashes = batch.map(|key| self.native.key_hash(&fingerprint(key)));
            let mut verdicts = Vec::new();
            self.shards.test_all(&key_hashes.collect::<Vec<_>>(), &mut verdicts);
            verdicts.iter().filter(|&&verdict| verdict == Verdict::Seen).count()
        };
        std::thread::scope(|scope| {
            let begin = |thread: usize| {
                let firsts = keys.clone().step_by(BATCH).skip(thread).step_by(threads);
                scope.spawn(move || firsts.map(of_batch).sum::<usize>())
            };
            let running: Vec<_> = (0..threads).map(begin).collect();
            running.into_iter().map(|thread| thread.join().expect("a count")).sum()
        })
    }
}
