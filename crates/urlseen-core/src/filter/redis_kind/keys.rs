//! The Redis keys of one filter.

use std::sync::Arc;

use super::{
    Command, Content, Estimate, ForeignKey, KeyLook, PlacementError, Question, Record, RedisKind,
};
use crate::filter::ShardId;
use crate::filter::layout::BitPosition;
use crate::fingerprint::Fingerprint;

/// Redis keys of one filter of any kind, and the bit positions of fingerprints in them.
#[derive(Debug, Clone)]
pub struct RedisFilterKeys {
    base: String,
    kind: Arc<dyn RedisKind>,
}

impl RedisFilterKeys {
    /// Creates the keys of a filter whose name, `filter.key`, is `base`.
    pub fn new(base: impl Into<String>, kind: Arc<dyn RedisKind>) -> Self {
        Self { base: base.into(), kind }
    }

    /// Returns the filter's name, `filter.key`, which its Redis keys begin with.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Returns the kind of the filter with its parameters.
    pub fn kind(&self) -> &dyn RedisKind {
        &*self.kind
    }

    /// Returns the numbers of the Redis keys that can have content, in order.
    pub fn used(&self) -> Vec<u32> {
        self.kind.used()
    }

    /// Returns the name of a Redis key by its number.
    pub fn key(&self, number: u32) -> String {
        self.kind.key(&self.base, number)
    }

    /// Returns the names of all Redis keys, including the key of the record.
    pub fn all(&self) -> impl Iterator<Item = String> {
        let record = self.record().map(|record| record.key);
        self.used().into_iter().map(|number| self.key(number)).chain(record)
    }

    /// Returns the name of the Redis key that holds a shard.
    pub fn key_of(&self, shard: ShardId) -> String {
        self.key(shard.number())
    }

    /// Returns the maximum length in bytes of the string that holds a shard.
    pub fn bytes_of(&self, shard: ShardId) -> u64 {
        self.content(shard.number()).max_bytes().unwrap_or(0)
    }

    /// Returns the expected content of a Redis key.
    pub fn content(&self, number: u32) -> Content {
        self.kind.content(number)
    }

    /// Returns Redis keys that only filters of other sizes or variants have.
    pub fn foreign(&self) -> Vec<ForeignKey> {
        self.kind.foreign(&self.base)
    }

    /// Returns the Redis hash in which the kind's project keeps the parameters, if it has one.
    pub fn record(&self) -> Option<Record> {
        self.kind.record(&self.base)
    }

    /// Checks that the kind can place a fingerprint.
    ///
    /// # Errors
    /// The kind cannot place the fingerprint.
    pub fn check(&self, fingerprint: &Fingerprint) -> Result<(), PlacementError> {
        // Every kind can place a digest.
        let Fingerprint::Text(_) = fingerprint else { return Ok(()) };
        self.kind.check(fingerprint)
    }

    /// Returns the bit positions of a fingerprint; none if the filter is a set.
    ///
    /// # Errors
    /// The kind cannot place the fingerprint.
    pub fn positions(&self, fingerprint: &Fingerprint) -> Result<Vec<BitPosition>, PlacementError> {
        self.kind.positions(fingerprint)
    }

    /// Returns read-only commands that test a fingerprint.
    ///
    /// # Errors
    /// The kind cannot place the fingerprint.
    pub fn ask(&self, fingerprint: &Fingerprint) -> Result<Vec<Command>, PlacementError> {
        self.kind.ask(&self.base, fingerprint)
    }

    /// Returns the question about these fingerprints for a script. `None` stands for an item that
    /// passes unchecked.
    pub fn question(&self, fingerprints: &[Option<&Fingerprint>]) -> Question {
        self.kind.question(&self.base, fingerprints)
    }

    /// Estimates the number of fingerprints and the error rate, from the findings about the keys.
    pub fn estimate(&self, looks: &[KeyLook]) -> Estimate {
        self.kind.estimate(looks)
    }
}
