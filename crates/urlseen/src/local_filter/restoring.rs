//! Recovery and snapshots of a filter that is stored in a folder.

use std::io::{self, Read};

use super::shared::SharedFilter;
use urlseen_filter::Generation;
use urlseen_filter::limit::{Counted, Counts};
use urlseen_filter::{KeyHash, ShardId};
use urlseen_fingerprint::Fingerprint;
use urlseen_storage::{Copied, LiveFilter, Position, Restore, Section};

impl Restore for SharedFilter {
    fn clear(&mut self) {
        let mut state = self.lock();
        state.filter.clear();
        state.counts = Counts::default();
    }

    fn load(&mut self, section: Section, body: &mut dyn Read) -> io::Result<()> {
        let Section { shard, keys, len, .. } = section;
        self.lock().filter.kind().load(shard, keys, len, body)
    }

    fn load_tombstone(&mut self, shard: ShardId, id: u128) {
        self.lock().filter.forget(KeyHash::named(shard, id));
    }

    fn add(&mut self, fingerprints: Vec<Fingerprint>, generation: Generation, _: Position) {
        let key_hashes = self.key_hashes(&fingerprints);
        let mut state = self.lock();
        let full = state.filter.insert(generation, &key_hashes).err();
        state.full = state.full.take().or(full);
    }

    fn load_counts(&mut self, counts: &[Counted], at: Position) {
        self.lock().counts.load(counts, at.number);
    }

    fn count(&mut self, changes: &[Counted], at: Position) {
        self.lock().counts.replay(changes, at.number);
    }

    fn begin_generation(&mut self, generation: Generation) {
        self.lock().filter.kind().begin_generation(generation);
    }

    fn forget(&mut self, fingerprints: Vec<Fingerprint>, _: Position) {
        let mut state = self.lock();
        for fingerprint in &fingerprints {
            state.filter.forget(self.key_hash(fingerprint));
        }
    }
}

impl LiveFilter for SharedFilter {
    fn copy(&self, shard: ShardId, buffer: Vec<u8>) -> Option<Copied> {
        let state = self.lock();
        let (blob, tombstones) = state.filter.save(shard, buffer);
        Some(Copied { blob, at: state.at, tombstones })
    }

    fn copy_counts(&self) -> Option<(Vec<Counted>, Position)> {
        let state = self.lock();
        Some((state.counts.copy(), state.at))
    }

    fn stand(&self, at: Position) {
        self.lock().at = at;
    }

    fn saved_bytes(&self) -> u64 {
        self.gauge().saved_bytes()
    }
}
