//! Head of a crawl: the number and the random id of its last committed batch.

use std::fmt;

use serde::{Deserialize, Serialize};
use urlseen_filter::Generation;
use urlseen_filter::id::RandomId;

/// Number and id of a batch that is committed or will be committed.
///
/// The number counts the batches of a history, and the id distinguishes histories. If a restore
/// splits a history in two, both may have a batch with the same number. Only the ids of these
/// batches then differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Number of batches committed since the crawl's state began.
    pub seq: u64,
    /// Random id of the last batch.
    pub commit_id: RandomId,
}

/// Position of a record in a log, or of a shard that has all records up to that record.
///
/// Records of every kind are numbered from 1; only batches change the head. So two positions may
/// have the same head, but differ in the adds after it. Of two positions in one history, the one
/// with the higher number is later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Position {
    /// Number of the record; 0 if the log has no record yet.
    pub number: u64,
    /// Last batch that is logged in this record or in an earlier one.
    #[serde(flatten)]
    pub head: Head,
}

impl Position {
    /// Position of a log that has no record yet.
    pub const START: Self = Self { number: 0, head: Head::START };
}

impl Head {
    /// Head of a crawl that has committed no batch yet.
    pub const START: Self = Self { seq: 0, commit_id: RandomId::new(0) };

    /// Returns the head of the next batch, with a fresh id.
    #[must_use]
    pub fn next(self) -> Self {
        Self { seq: self.seq + 1, commit_id: RandomId::random() }
    }

    /// Reads a head from the texts of its two fields.
    pub fn parse(seq: &str, commit_id: &str) -> Option<Self> {
        Some(Self { seq: seq.parse().ok()?, commit_id: RandomId::parse(commit_id)? })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {}, {}", self.number, self.head)
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "batch {} ({})", self.seq, self.commit_id)
    }
}

/// End of the log after a record, and the generation of the fingerprints of this record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Logged {
    /// Position of the record.
    pub at: Position,
    /// Generation of the fingerprints; [`Generation::FOREVER`] if they do not expire.
    pub generation: Generation,
}

impl Logged {
    /// End of an empty log of fingerprints that do not expire.
    pub const START: Self = Self { at: Position::START, generation: Generation::FOREVER };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_back_and_each_batch_gets_another_id() {
        let head = Head::START.next();
        assert_eq!(head.seq, 1);
        assert_eq!(Head::parse(&head.seq.to_string(), &head.commit_id.to_string()), Some(head));
        assert_ne!(Head::START.next(), head);
        for (seq, commit_id) in [("", "0"), ("1", "0"), ("-1", "0000000000000000"), ("1", "g")] {
            assert_eq!(Head::parse(seq, commit_id), None);
        }
    }
}
