//! The Redis keys of one filter.

use std::sync::Arc;

use super::{Command, ForeignKey, PlacementError, Question, Record, RedisKind};
use crate::fingerprint::Fingerprint;

/// Approximate maximum time for which a script may block Redis, in nanoseconds. It limits the
/// number of items that one script judges.
const LONGEST: usize = 5_000_000;

/// Time that Redis needs for an unseen item, in nanoseconds, in addition to the cost of the kind.
const ITEM: usize = 1_500;

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

    /// Returns the name of a Redis key by its number.
    pub fn key(&self, number: u32) -> String {
        self.kind.key(&self.base, number)
    }

    /// Returns the names of all Redis keys, including the key of the record.
    pub fn all(&self) -> impl Iterator<Item = String> {
        let record = self.record().map(|record| record.key);
        self.kind.used().into_iter().map(|number| self.key(number)).chain(record)
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

    /// Returns read-only commands that test a fingerprint.
    ///
    /// # Errors
    /// The kind cannot place the fingerprint.
    pub fn ask(&self, fingerprint: &Fingerprint) -> Result<Vec<Command>, PlacementError> {
        self.kind.ask(&self.base, fingerprint)
    }

    /// Returns the maximum number of items that one script may judge, so that it does not block
    /// Redis for long.
    pub fn most_judged(&self) -> usize {
        (LONGEST / (self.kind.cost() + ITEM)).max(1)
    }

    /// Returns the question about these fingerprints for a script. `None` stands for an item that
    /// passes unchecked.
    pub fn question<'a>(
        &self,
        fingerprints: impl Iterator<Item = Option<&'a Fingerprint>>,
    ) -> Question {
        self.kind.question(&self.base, &fingerprints.collect::<Vec<_>>())
    }
}
