//! Parts of a script that judges items by a filter in Redis: Lua functions, and a question. The
//! question is the part of the script's arguments that describes the items. Both parts come from
//! the filter's kind ([`RedisKind`](crate::filter::RedisKind)).

pub mod ask;

use std::sync::Arc;

use crate::filter::RedisFilterKeys;
pub use crate::filter::redis_kind::Question;
use crate::fingerprint::Fingerprint;
pub use ask::{ask, verdict};

/// Approximate maximum time for which a script may block Redis, in nanoseconds. It limits the
/// number of items that one script judges.
const LONGEST: usize = 5_000_000;

/// Time that Redis needs for an unseen item, in nanoseconds, in addition to the cost of the kind.
const ITEM: usize = 1_500;

/// Builds a script's functions and questions for a filter.
#[derive(Debug, Clone)]
pub struct Judge(Arc<RedisFilterKeys>);

impl Judge {
    /// Creates the builder for this filter.
    pub fn new(filter: Arc<RedisFilterKeys>) -> Self {
        Self(filter)
    }

    /// Returns the keys of the filter.
    pub fn filter(&self) -> &RedisFilterKeys {
        &self.0
    }

    /// Returns the text of the Lua functions that a script calls.
    pub fn lua(&self) -> String {
        self.0.kind().lua()
    }

    /// Returns the maximum number of items that one script may judge, so that it does not block
    /// Redis for long.
    pub fn most(&self) -> usize {
        (LONGEST / (self.0.kind().cost() + ITEM)).max(1)
    }

    /// Builds the question about these fingerprints. `None` is an item that passes without a check.
    pub fn question<'a>(
        &self,
        fingerprints: impl Iterator<Item = Option<&'a Fingerprint>>,
    ) -> Question {
        let fingerprints: Vec<_> = fingerprints.collect();
        self.0.question(&fingerprints)
    }
}
