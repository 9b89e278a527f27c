//! The writer of the log.

use std::io;

use super::log::{Log, Logged};
use crate::batch::{Batch, Judged};
use crate::fingerprint::Fingerprint;
use crate::head::{Head, Position};

/// The log of a state folder, open to be written to. One thread has it.
#[derive(Debug)]
pub struct Journal {}

/// What other threads may do with the log: see to it that it is on the disk.
#[derive(Debug, Clone)]
pub struct LogHandle {}

impl Journal {
    /// Where the log stands.
    pub fn position(&self) -> Position {
        todo!()
    }

    /// Writes down fingerprints that count whatever becomes of the batches around them. As many
    /// records as they need.
    pub fn append_adds(&mut self, fingerprints: &[Fingerprint]) -> io::Result<Position> {
        todo!()
    }

    /// Begins a new file, so that those before it can be dropped once a snapshot covers them.
    pub fn roll(&mut self) -> io::Result<()> {
        todo!()
    }

    /// All that was written is on the disk when this returns.
    pub fn sync(&mut self) -> io::Result<()> {
        todo!()
    }

    /// For other threads.
    pub fn handle(&self) -> LogHandle {
        todo!()
    }

    /// Drops the batches behind `head`, which Redis does not know, and keeps adds among them. The
    /// next record follows it.
    pub fn cut(&mut self, head: Head) -> io::Result<Position> {
        todo!()
    }

    /// Ends the log: nothing behind `head` stays, and all is on the disk.
    pub fn close(self, head: Head) -> io::Result<Position> {
        todo!()
    }

    /// Bytes written since [`Journal::roll`].
    pub fn bytes_since_roll(&self) -> u64 {
        todo!()
    }

    /// Bytes written since the journal was opened.
    pub fn bytes(&self) -> u64 {
        todo!()
    }
}

impl Log for Journal {
    fn append(&mut self, base: Head, batch: Batch<Judged>) -> io::Result<Logged> {
        todo!()
    }
}

impl LogHandle {
    /// The log is on the disk at least up to record `number` when this returns.
    pub fn sync_to(&self, number: u64) -> io::Result<()> {
        todo!()
    }
}
