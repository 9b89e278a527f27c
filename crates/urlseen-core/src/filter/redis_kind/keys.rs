//! The Redis keys of one filter.

use std::sync::Arc;

use super::{
    Command, Content, ForeignKey, KindScript, PlacementError, Question, Record, RedisKind,
    question, text,
};
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
    /// Numbers of the Redis keys that can have content, in order.
    keys: Vec<(u32, Content)>,
    script: KindScript,
}

impl RedisFilterKeys {
    /// Creates the keys of a filter whose name, `filter.key`, is `base`.
    pub fn new(base: impl Into<String>, kind: Arc<dyn RedisKind>) -> Self {
        let (keys, script) = (kind.keys(), kind.script());
        Self { base: base.into(), kind, keys, script }
    }

    /// Returns the filter's name, `filter.key`, which its Redis keys begin with.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Returns the kind of the filter with its parameters.
    pub fn kind(&self) -> &dyn RedisKind {
        &*self.kind
    }

    /// Returns the numbers of the Redis keys that can have content, in order, with their content.
    pub fn keys(&self) -> &[(u32, Content)] {
        &self.keys
    }

    /// Returns the Lua functions of the kind.
    pub fn script(&self) -> &KindScript {
        &self.script
    }

    /// Returns the name of a Redis key by its number.
    pub(crate) fn key(&self, number: u32) -> String {
        self.kind.key(&self.base, number)
    }

    /// Returns the names of all Redis keys, including the key of the record.
    pub fn all(&self) -> impl Iterator<Item = String> {
        let record = self.record().map(|record| record.key);
        self.keys.iter().map(|&(number, _)| self.key(number)).chain(record)
    }

    /// Returns Redis keys that only filters of other sizes or variants have.
    pub fn foreign(&self) -> Vec<ForeignKey> {
        self.kind.foreign(&self.base)
    }

    /// Returns the Redis hash in which the kind's project keeps the parameters, if it has one.
    pub(crate) fn record(&self) -> Option<Record> {
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

    /// Returns read-only commands that test a fingerprint. The reply to each command consists of
    /// numbers; 1 stands for a set bit or an existing member.
    ///
    /// # Errors
    /// The kind cannot place the fingerprint.
    pub fn ask(&self, fingerprint: &Fingerprint) -> Result<Vec<Command>, PlacementError> {
        if let [(number, Content::Members)] = self.keys[..] {
            let key = self.key(number).into_bytes();
            return Ok(vec![vec![b"SMISMEMBER".to_vec(), key, text(fingerprint).into()]]);
        }
        Ok(question::bits(self.kind.positions(fingerprint)?, |number| self.key(number)))
    }

    /// Returns the maximum number of items that one script may judge, so that it does not block
    /// Redis for long.
    pub fn most_judged(&self) -> usize {
        (LONGEST / (self.script.cost + ITEM)).max(1)
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
