//! The Redis keys of one filter.

use std::sync::Arc;

use super::{
    Command, Content, Estimate, ForeignKey, KeyLook, PlacementError, Question, Record, RedisKind,
};
use crate::filter::ShardId;
use crate::filter::layout::BitPosition;
use crate::fingerprint::Fingerprint;

/// The Redis keys of one filter of any kind, and a fingerprint's places in them.
#[derive(Debug, Clone)]
pub struct RedisFilterKeys {
    base: String,
    kind: Arc<dyn RedisKind>,
}

impl RedisFilterKeys {
    /// Names the filter's keys after `base`.
    pub fn new(base: impl Into<String>, kind: Arc<dyn RedisKind>) -> Self {
        Self { base: base.into(), kind }
    }

    /// Returns the name that its keys are named after: `filter.key`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Returns the filter's kind, which does not depend on the name.
    pub fn kind(&self) -> &dyn RedisKind {
        &*self.kind
    }

    /// Returns the numbers of the keys that ever have content, in order.
    pub fn used(&self) -> Vec<u32> {
        self.kind.used()
    }

    /// Returns the name of a key by its number.
    pub fn key(&self, number: u32) -> String {
        self.kind.key(&self.base, number)
    }

    /// Returns the names of all keys, and of the record.
    pub fn all(&self) -> impl Iterator<Item = String> {
        let record = self.record().map(|record| record.key);
        self.used().into_iter().map(|number| self.key(number)).chain(record)
    }

    /// Returns the name of a shard's key.
    pub fn key_of(&self, shard: ShardId) -> String {
        // A shard's number is below 256.
        #[allow(clippy::cast_possible_truncation)]
        self.key(shard.index() as u32)
    }

    /// Returns the most bytes of a shard's key.
    pub fn bytes_of(&self, shard: ShardId) -> u64 {
        // A shard's number is below 256.
        #[allow(clippy::cast_possible_truncation)]
        let content = self.content(shard.index() as u32);
        content.max_bytes().unwrap_or(0)
    }

    /// Returns the content of a key.
    pub fn content(&self, number: u32) -> Content {
        self.kind.content(number)
    }

    /// Returns keys that filters of other sizes and variants have, and this one does not.
    pub fn foreign(&self) -> Vec<ForeignKey> {
        self.kind.foreign(&self.base)
    }

    /// Returns the hash in which another project keeps the parameters.
    pub fn record(&self) -> Option<Record> {
        self.kind.record(&self.base)
    }

    /// Refuses a fingerprint that the kind has no place for.
    ///
    /// # Errors
    /// If there is no place.
    pub fn check(&self, fingerprint: &Fingerprint) -> Result<(), PlacementError> {
        // Every kind has a place for a digest.
        let Fingerprint::Text(_) = fingerprint else { return Ok(()) };
        self.kind.check(fingerprint)
    }

    /// Returns the fingerprint's bits; none if the filter is a set.
    ///
    /// # Errors
    /// If the kind has no place for it.
    pub fn positions(&self, fingerprint: &Fingerprint) -> Result<Vec<BitPosition>, PlacementError> {
        self.kind.positions(fingerprint)
    }

    /// Returns commands that ask for a fingerprint and change nothing.
    ///
    /// # Errors
    /// If the kind has no place for it.
    pub fn ask(&self, fingerprint: &Fingerprint) -> Result<Vec<Command>, PlacementError> {
        self.kind.ask(&self.base, fingerprint)
    }

    /// Returns the question about these fingerprints for a script. `None` is an item that passes
    /// unchecked.
    pub fn question(&self, fingerprints: &[Option<&Fingerprint>]) -> Question {
        self.kind.question(&self.base, fingerprints)
    }

    /// Estimates the filter's content from the findings about all its keys.
    pub fn estimate(&self, looks: &[KeyLook]) -> Estimate {
        self.kind.estimate(looks)
    }
}
