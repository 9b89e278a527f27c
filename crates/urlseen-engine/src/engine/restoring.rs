//! Putting a filter in place that is recovered from somewhere.

use super::Engine;
use super::owner::Job;
use urlseen_core::filter::redisbloom::Filter;
use urlseen_core::filter::{Count, ShardId};
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::storage::Position;

impl Engine {
    /// Puts a shard's bits, as [`Shards::bytes`](urlseen_core::filter::Shards::bytes) gave them, in
    /// place of what it holds. Waits until that is done: shards are large, and none are to queue
    /// up.
    pub fn load(&self, shard: ShardId, bytes: Vec<u8>, count: Count) {
        let (reply, done) = crossbeam_channel::bounded(1);
        self.tell(shard.owner(self.owners.len()), Job::Load { shard, bytes, count, reply });
        // A thread that is gone is noticed by whoever waits for what it judges.
        let _ = done.recv();
    }

    /// Puts a filter of RedisBloom in the place of the one that there is, and waits until it is.
    pub(crate) fn replace(&self, filter: Option<Filter>) {
        let (reply, done) = crossbeam_channel::bounded(1);
        self.tell(0, Job::Replace { filter: filter.map(Box::new), reply });
        // As with a shard.
        let _ = done.recv();
    }

    /// Sets fingerprints that belong in the filter. Waits while the threads have much to do.
    ///
    /// # Panics
    /// If a batch is in progress: threads that pass parts of it on to each other must not have to
    /// wait.
    pub(crate) fn set<'a>(&self, fingerprints: impl IntoIterator<Item = &'a Fingerprint>) {
        assert!(self.progress.is_empty(), "nothing is set while batches are judged");
        let owners = self.owners.len();
        let mut parts = vec![Vec::new(); owners];
        for fingerprint in fingerprints {
            let key_hash = self.hashing.key_hash(fingerprint);
            parts[key_hash.shard().owner(owners)].push(key_hash);
        }
        for (owner, key_hashes) in
            parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty())
        {
            self.tell(owner, Job::Set { key_hashes });
        }
    }

    /// Lets a fingerprint of a shard pass once more, by the 128 bits that the layout makes of it.
    /// Waits while the threads have much to do.
    pub(crate) fn forgive(&self, shard: ShardId, id: u128) {
        self.tell(shard.owner(self.owners.len()), Job::AddTombstones { shard, ids: vec![id] });
    }

    /// The same of fingerprints as they are.
    pub(crate) fn add_tombstones<'a>(
        &self,
        fingerprints: impl IntoIterator<Item = &'a Fingerprint>,
    ) {
        for fingerprint in fingerprints {
            let key_hash = self.hashing.key_hash(fingerprint);
            self.forgive(key_hash.shard(), key_hash.id());
        }
    }

    /// The filter stands at `at`, all shards of it.
    pub(crate) fn stand(&self, at: Position) {
        self.tell_all(|| Job::Stand { at });
    }
}
