//! Recovery of the filter in the engine's owners.

use std::io::{self, Read};

use crossbeam_channel::bounded;

use super::owner::Job;
use super::{Engine, EngineError, Handle};
use urlseen_core::filter::generation::Generation;
use urlseen_core::filter::{ForgettingFilter, ShardId};
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::limit::Counted;
use urlseen_core::storage::{Copied, Counts, LiveFilter, Position, Restore, Section};

impl Engine {
    /// Aborts the batches that were handed back and not committed, because another filter replaces
    /// this one. Returns the handle for loading that filter.
    ///
    /// # Panics
    /// If a batch is in progress.
    pub fn restoring(&mut self) -> Handle {
        self.drop_uncommitted();
        self.handle()
    }

    /// Waits until the owners have recovered the filter.
    ///
    /// # Errors
    /// An owner has ended, or found that the filter is full.
    pub async fn restored(&mut self) -> Result<(), EngineError> {
        self.settled().await?;
        self.check_room()
    }

    /// Waits like [`Engine::restored`], for callers outside of a runtime.
    pub(crate) fn restored_blocking(&mut self) -> Result<(), EngineError> {
        self.mark();
        while self.marks > 0 {
            let done = self.done.blocking_recv().ok_or(EngineError::Panicked)?;
            self.note(done)?;
        }
        self.check_room()
    }

    fn check_room(&self) -> Result<(), EngineError> {
        self.full.clone().map_or(Ok(()), |full| Err(EngineError::Full(full)))
    }
}

impl Handle {
    /// Sets fingerprints of a generation that belong in the filter. Waits while the mailboxes are
    /// full. No batch may be in progress: an owner that passes parts of a batch to another one must
    /// not wait.
    pub(crate) fn set<'a>(
        &self,
        fingerprints: impl IntoIterator<Item = &'a Fingerprint>,
        generation: Generation,
    ) {
        let owners = self.owners.len();
        let mut parts = vec![Vec::new(); owners];
        for fingerprint in fingerprints {
            let key_hash = self.hasher.key_hash(fingerprint);
            parts[key_hash.shard().owner(owners)].push(key_hash);
        }
        for (owner, key_hashes) in
            parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty())
        {
            self.tell(owner, Job::Set { key_hashes, generation });
        }
    }

    /// Waits for the owner of a shard, and uses its filter. Returns `None` if the owner has ended;
    /// [`Engine::restored`] reports that.
    fn with_filter_of<T>(
        &self,
        shard: ShardId,
        work: impl FnOnce(&mut ForgettingFilter) -> T,
    ) -> Option<T> {
        let (to, lent) = bounded(1);
        self.tell(shard.owner(self.owners.len()), Job::Lend { to });
        let mut lent = self.wait(&lent)?;
        Some(work(&mut lent.owner().filter))
    }

    /// Lets a fingerprint of a shard pass again. `id` is the 128-bit key hash of the fingerprint.
    /// Waits while the mailbox is full.
    pub(crate) fn forgive(&self, shard: ShardId, id: u128) {
        self.tell(shard.owner(self.owners.len()), Job::AddTombstones { shard, ids: vec![id] });
    }
}

impl Restore for Handle {
    fn clear(&mut self) {
        *self.counts() = Counts::default();
        self.tell_all(|| Job::Clear);
    }

    /// Loads the shard on the thread of the caller, so that a slow disk delays no other thread.
    fn load(&mut self, section: Section, body: &mut dyn Read) -> io::Result<()> {
        let Section { shard, keys, len, .. } = section;
        let load = |filter: &mut ForgettingFilter| filter.load(shard, keys, len, body);
        self.with_filter_of(shard, load).unwrap_or(Ok(()))
    }

    fn load_tombstone(&mut self, shard: ShardId, id: u128) {
        self.forgive(shard, id);
    }

    fn add(&mut self, fingerprints: Vec<Fingerprint>, generation: Generation, _: Position) {
        self.set(&fingerprints, generation);
    }

    fn load_counts(&mut self, counts: &[Counted], at: Position) {
        self.counts().load(counts, at);
    }

    fn count(&mut self, changes: &[Counted], at: Position) {
        self.counts().replay(changes, at);
    }

    fn begin_generation(&mut self, generation: Generation) {
        self.tell_all(|| Job::BeginGeneration(generation));
    }

    fn forget(&mut self, fingerprints: Vec<Fingerprint>, _: Position) {
        for fingerprint in &fingerprints {
            let key_hash = self.hasher.key_hash(fingerprint);
            self.forgive(key_hash.shard(), key_hash.id());
        }
    }
}

impl LiveFilter for Handle {
    /// Waits for the shard's owner.
    fn copy(&self, shard: ShardId, buffer: Vec<u8>) -> Option<Copied> {
        let (reply, copied) = bounded(1);
        let owner = &self.owners[shard.owner(self.owners.len())];
        owner.tell(Job::Copy { shard, buffer, reply })?;
        self.wait(&copied)
    }

    fn copy_counts(&self) -> (Vec<Counted>, Position) {
        self.counts().copy()
    }

    fn stand(&self, at: Position) {
        self.counts().stand(at);
        self.tell_all(|| Job::Stand { at });
    }

    fn saved_bytes(&self) -> u64 {
        self.gauges.saved_bytes()
    }

    #[cfg(feature = "simulation")]
    fn is_stepped(&self) -> bool {
        self.stepped.is_some()
    }
}
