//! The log: every batch passes it on its way to the commit.

use std::io;

use crate::batch::{Batch, Judged};
use crate::head::{Head, Position};

/// Proof that the log has a batch, under this head. Only a log makes one.
#[derive(Debug)]
pub struct Record {
    base: Head,
    position: Position,
}

/// A batch that the log has.
pub type Logged = Batch<(Judged, Record)>;

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
    /// Writes `batch` down as the one that follows `base`. It has been written when this returns.
    fn append(&mut self, base: Head, batch: Batch<Judged>) -> io::Result<Logged>;
}

/// Remembers nothing: the next start begins with an empty filter.
#[derive(Debug, Default)]
pub struct Volatile {
    /// The number of the last record.
    number: u64,
}

impl Log for Volatile {
    fn append(&mut self, base: Head, batch: Batch<Judged>) -> io::Result<Logged> {
        self.number += 1;
        let position = Position { number: self.number, head: base.next() };
        Ok(batch.with_proof(Record::new(base, position)))
    }
}
