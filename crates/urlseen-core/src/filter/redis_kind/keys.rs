//! The keys of one filter.

use std::sync::Arc;

use super::{
    Command, Content, Estimate, ForeignKey, KeyLook, PlacementError, Question, Record, RedisKind,
};
use crate::filter::ShardId;
use crate::filter::layout::BitPosition;
use crate::fingerprint::Fingerprint;

/// The Redis keys of one filter, of whatever kind, and what of them belongs to a fingerprint.
#[derive(Debug, Clone)]
pub struct RedisFilterKeys {
    base: String,
    kind: Arc<dyn RedisKind>,
}

impl RedisFilterKeys {
    /// The filter whose keys are named after `base`.
    pub fn new(base: impl Into<String>, kind: Arc<dyn RedisKind>) -> Self {
        Self { base: base.into(), kind }
    }

    /// What its keys are named after: `filter.key`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// What is the same wherever the filter is.
    pub fn kind(&self) -> &dyn RedisKind {
        &*self.kind
    }

    /// The numbers of the keys that ever hold anything, in order.
    pub fn used(&self) -> Vec<u32> {
        self.kind.used()
    }

    /// The name of a key by its number.
    pub fn key(&self, number: u32) -> String {
        self.kind.key(&self.base, number)
    }

    /// The names of all keys, with what stands beside the filter.
    pub fn all(&self) -> impl Iterator<Item = String> {
        let record = self.record().map(|record| record.key);
        self.used().into_iter().map(|number| self.key(number)).chain(record)
    }

    /// The name of the key of a shard.
    pub fn key_of(&self, shard: ShardId) -> String {
        // Below 256.
        #[allow(clippy::cast_possible_truncation)]
        self.key(shard.index() as u32)
    }

    /// Bytes of the key of a shard.
    pub fn bytes_of(&self, shard: ShardId) -> u64 {
        // Below 256.
        #[allow(clippy::cast_possible_truncation)]
        let content = self.content(shard.index() as u32);
        content.max_bytes().unwrap_or(0)
    }

    /// What a key holds.
    pub fn content(&self, number: u32) -> Content {
        self.kind.content(number)
    }

    /// Keys that filters of other sizes and variants have, and this one does not.
    pub fn foreign(&self) -> Vec<ForeignKey> {
        self.kind.foreign(&self.base)
    }

    /// The hash in which its project keeps what it was made for.
    pub fn record(&self) -> Option<Record> {
        self.kind.record(&self.base)
    }

    /// Refuses a fingerprint that the kind has no place for.
    ///
    /// # Errors
    /// It has none.
    pub fn check(&self, fingerprint: &Fingerprint) -> Result<(), PlacementError> {
        // A digest has a place in each.
        let Fingerprint::Text(_) = fingerprint else { return Ok(()) };
        self.kind.check(fingerprint)
    }

    /// The fingerprint's bits; none where it is a member of a set.
    ///
    /// # Errors
    /// The kind has no place for it.
    pub fn positions(&self, fingerprint: &Fingerprint) -> Result<Vec<BitPosition>, PlacementError> {
        self.kind.positions(fingerprint)
    }

    /// Commands that ask for a fingerprint and change nothing.
    ///
    /// # Errors
    /// The kind has no place for it.
    pub fn ask(&self, fingerprint: &Fingerprint) -> Result<Vec<Command>, PlacementError> {
        self.kind.ask(&self.base, fingerprint)
    }

    /// What a script judges these by; `None` stands for what goes on unchecked.
    pub fn question(&self, fingerprints: &[Option<&Fingerprint>]) -> Question {
        self.kind.question(&self.base, fingerprints)
    }

    /// What looks at all of the [`RedisFilterKeys::used`] keys say of the filter.
    pub fn estimate(&self, looks: &[KeyLook]) -> Estimate {
        self.kind.estimate(looks)
    }
}
