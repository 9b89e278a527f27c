//! The log: every batch passes it on its way to the commit.

use std::io;

use crate::fingerprint::Fingerprint;
use crate::storage::head::{Head, Position};

/// Proof that the log has a batch, under this head. Only a log makes one.
#[derive(Debug)]
pub struct Record {
    base: Head,
    position: Position,
}

impl Record {
    /// The head that the batch follows.
    pub fn base(&self) -> Head {
        self.base
    }

    /// The head that the batch becomes when it is committed.
    pub fn head(&self) -> Head {
        self.position.head
    }

    /// Where the log stands with this record as its last.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The proof for the batch that follows `base` and was written down as `position`.
    pub(super) fn new(base: Head, position: Position) -> Self {
        Self { base, position }
    }
}

/// Takes down each batch before it is committed, so that the filter can be brought back to what
/// Redis knows.
pub trait Log {
    /// Writes the new fingerprints of the batch that follows `base`. They have been written when
    /// this returns.
    fn append(&mut self, base: Head, added: &[Fingerprint]) -> io::Result<Record>;
}

/// Remembers nothing: the next start begins with an empty filter.
#[derive(Debug, Default)]
pub struct Volatile {
    /// The number of the last record.
    number: u64,
}

impl Log for Volatile {
    fn append(&mut self, base: Head, _: &[Fingerprint]) -> io::Result<Record> {
        self.number += 1;
        let position = Position { number: self.number, head: base.next() };
        Ok(Record::new(base, position))
    }
}
