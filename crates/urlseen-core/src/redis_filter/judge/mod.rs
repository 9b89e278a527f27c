//! What a script needs to judge by a filter that is in Redis: its functions, and the question. Both
//! are the kind's ([`RedisKind`](crate::filter::RedisKind)).

pub mod ask;

use std::sync::Arc;

use crate::filter::RedisFilterKeys;
pub use crate::filter::redis_kind::Question;
use crate::fingerprint::Fingerprint;
pub use ask::{ask, verdict};

/// How long a script may hold Redis up, about, in nanoseconds: what is judged at once is bounded by
/// that.
const LONGEST: usize = 5_000_000;

/// What an unseen item costs Redis, in nanoseconds, on top of what the kind does.
const ITEM: usize = 1_500;

/// How a script judges by a filter.
#[derive(Debug, Clone)]
pub struct Judge(Arc<RedisFilterKeys>);

impl Judge {
    /// By this filter.
    pub fn new(filter: Arc<RedisFilterKeys>) -> Self {
        Self(filter)
    }

    /// The filter.
    pub fn filter(&self) -> &RedisFilterKeys {
        &self.0
    }

    /// The functions that a script calls.
    pub fn lua(&self) -> String {
        self.0.kind().lua()
    }

    /// How many items one script may judge at most, so as not to hold Redis up.
    pub fn most(&self) -> usize {
        (LONGEST / (self.0.kind().cost() + ITEM)).max(1)
    }

    /// The question whether these are seen; `None` stands for what goes on unchecked.
    pub fn question<'a>(
        &self,
        fingerprints: impl Iterator<Item = Option<&'a Fingerprint>>,
    ) -> Question {
        let fingerprints: Vec<_> = fingerprints.collect();
        self.0.question(&fingerprints)
    }
}
