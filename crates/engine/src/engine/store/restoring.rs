//! Recovery of the filter in the engine.

use std::io::{self, Read};

use tokio::sync::oneshot;

use crate::engine::judge::Judge;
use crate::engine::{Engine, EngineError, Handle};
use urlseen_filter::Generation;
use urlseen_filter::limit::Counted;
use urlseen_filter::{KeyHash, ShardId};
use urlseen_fingerprint::Fingerprint;
use urlseen_storage::{Copied, LiveFilter, Position, Restore, Section};

impl Engine {
    /// Aborts the batches that were handed back and not committed, because another filter replaces
    /// this one. Returns the handle for loading that filter.
    ///
    /// # Panics
    /// If a batch is in progress.
    pub fn restoring(&mut self) -> Handle {
        assert_eq!(self.in_progress(), 0, "no batch may be in progress during an abort");
        self.uncommitted = 0;
        self.handle.clone()
    }

    /// Waits until the filter is recovered.
    ///
    /// # Errors
    /// The judge has ended, or the filter is full.
    pub async fn restored(&mut self) -> Result<(), EngineError> {
        let (tell, told) = oneshot::channel();
        self.handle.queue.add(move |judge| drop(tell.send(judge.has_room())));
        told.await.map_err(|_| EngineError::Panicked)?.map_err(EngineError::Full)
    }

    /// Waits like [`Engine::restored`], for callers outside of a runtime.
    pub(crate) fn restored_blocking(&mut self) -> Result<(), EngineError> {
        let room = self.handle.queue.ask(|judge| judge.has_room());
        room.ok_or(EngineError::Panicked)?.map_err(EngineError::Full)
    }
}

impl Handle {
    /// Sets fingerprints of a generation that belong in the filter. Waits while many others wait to
    /// be set.
    pub(crate) fn set(&self, fingerprints: &[Fingerprint], generation: Generation) {
        let key_hashes: Vec<_> = fingerprints.iter().map(|it| self.hasher.key_hash(it)).collect();
        self.queue.add_later(move |judge| judge.set(&key_hashes, generation));
    }

    /// Lets a fingerprint of a shard pass again. `id` is the 128-bit key hash of the fingerprint.
    pub(crate) fn forgive(&self, shard: ShardId, id: u128) {
        let key_hash = KeyHash::named(shard, id);
        self.queue.add_later(move |judge| judge.filter.forget(key_hash));
    }
}

impl Restore for Handle {
    fn clear(&mut self) {
        self.queue.add_later(Judge::clear);
    }

    /// Loads the shard on the thread of the caller, so that a slow disk delays no other thread.
    fn load(&mut self, section: Section, body: &mut dyn Read) -> io::Result<()> {
        let Section { shard, keys, len, .. } = section;
        // If the judge has ended, `Engine::restored` reports that.
        let loaded = self.queue.with(|judge| judge.filter.kind().load(shard, keys, len, body));
        loaded.unwrap_or(Ok(()))
    }

    fn load_tombstone(&mut self, shard: ShardId, id: u128) {
        self.forgive(shard, id);
    }

    fn expect(&mut self, keys: u64) {
        self.queue.add_later(move |judge| judge.expect(keys));
    }

    fn add(&mut self, fingerprints: Vec<Fingerprint>, generation: Generation, _: Position) {
        self.set(&fingerprints, generation);
    }

    fn load_counts(&mut self, counts: &[Counted], at: Position) {
        let counts = counts.to_vec();
        self.queue.add_later(move |judge| judge.counts.load(&counts, at.number));
    }

    fn count(&mut self, changes: &[Counted], at: Position) {
        let changes = changes.to_vec();
        self.queue.add_later(move |judge| judge.counts.replay(&changes, at.number));
    }

    fn begin_generation(&mut self, generation: Generation) {
        self.queue.add_later(move |judge| judge.filter.kind().begin_generation(generation));
    }

    fn forget(&mut self, fingerprints: Vec<Fingerprint>, _: Position) {
        for fingerprint in &fingerprints {
            let key_hash = self.hasher.key_hash(fingerprint);
            self.forgive(key_hash.shard(), key_hash.id());
        }
    }
}

impl LiveFilter for Handle {
    fn copy(&self, shard: ShardId, buffer: Vec<u8>) -> Option<Copied> {
        self.queue.ask(move |judge| judge.copy(shard, buffer))
    }

    fn copy_counts(&self) -> Option<(Vec<Counted>, Position)> {
        self.queue.ask(|judge| (judge.counts.copy(), judge.at))
    }

    fn stand(&self, at: Position) {
        self.queue.add_later(move |judge| judge.at = at);
    }

    fn saved_bytes(&self) -> u64 {
        self.gauge.saved_bytes()
    }

    #[cfg(feature = "simulation")]
    fn is_stepped(&self) -> bool {
        self.queue.threads == 0
    }
}
