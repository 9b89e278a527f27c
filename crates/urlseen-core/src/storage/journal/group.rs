//! Group of records of the log that are synced together.

use std::io;

use super::super::record::{Change, RecordKind, encoded_len};
use super::{Journal, Logged};
use crate::filter::choice::Fsync;
use crate::filter::generation::{Generation, Lifetimes};
use crate::fingerprint::Fingerprint;
use crate::limit::Counted;
use crate::storage::head::{Head, Position};

/// Approximate maximum size of a record of adds or forgets, in bytes. Recovery reads one record at
/// a time into memory.
const ADDS: usize = 1 << 20;

/// Proof that a batch is in the log, with the position of the batch. Only the log makes proofs.
#[derive(Debug)]
pub struct Record {
    base: Head,
    logged: Logged,
}

impl Record {
    /// Returns the head that the batch follows.
    pub fn base(&self) -> Head {
        self.base
    }

    /// Returns the place of the record.
    pub fn logged(&self) -> Logged {
        self.logged
    }
}

/// Group of records that are written one by one and synced together.
#[derive(Debug)]
pub struct WriteGroup<'a> {
    pub(super) journal: &'a mut Journal,
    pub(super) records: Vec<Record>,
}

impl WriteGroup<'_> {
    /// Writes the next batch: its new fingerprints, their lifetimes, and the counts that they
    /// change. The record is in the file when the method returns.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn append(
        &mut self,
        added: &[Fingerprint],
        lifetimes: &Lifetimes,
        counted: &[Counted],
    ) -> io::Result<()> {
        let Position { number, head } = self.journal.position;
        let next = Position { number: number + 1, head: head.next() };
        self.journal.write(RecordKind::Batch, next, added, lifetimes, counted)?;
        self.records.push(Record { base: head, logged: self.logged() });
        Ok(())
    }

    /// Begins a generation: it is the one of all fingerprints that are logged after it. The
    /// generation counts even if Redis never commits the batches around it.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn begin_generation(&mut self, generation: Generation) -> io::Result<()> {
        let Position { number, head } = self.journal.position;
        let before = self.journal.generation.replace(generation);
        let next = Position { number: number + 1, head };
        let none = Lifetimes::default();
        let written = self.journal.write(RecordKind::Generation, next, &[], &none, &[]);
        if written.is_err() {
            self.journal.generation = before;
        }
        written
    }

    /// Writes adds or forgets, with their lifetimes, in as many records as the fingerprints need.
    /// They count even if Redis never commits the batches around them.
    ///
    /// # Errors
    /// If the disk fails. Some of the records may be in the log then.
    pub fn change(
        &mut self,
        change: Change,
        fingerprints: &[Fingerprint],
        lifetimes: &Lifetimes,
    ) -> io::Result<()> {
        let kind = match change {
            Change::Add => RecordKind::Adds,
            Change::Forget => RecordKind::Forgets,
        };
        let mut rest = fingerprints;
        while !rest.is_empty() {
            let mut bytes = 0;
            let count = rest.iter().take_while(|fingerprint| {
                bytes += encoded_len(fingerprint);
                bytes <= ADDS
            });
            let (now, later) = rest.split_at(count.count().max(1));
            let Position { number, head } = self.journal.position;
            let next = Position { number: number + 1, head };
            let begin = fingerprints.len() - rest.len();
            let lifetimes = lifetimes.part(begin..begin + now.len());
            self.journal.write(kind, next, now, &lifetimes, &[])?;
            rest = later;
        }
        Ok(())
    }

    /// Returns the end of the log.
    pub fn logged(&self) -> Logged {
        let Journal { position, generation, .. } = *self.journal;
        // Without a generation, nothing can be logged.
        Logged { at: position, generation: generation.unwrap_or(Generation::FOREVER) }
    }

    /// Ends the group and returns the proofs of its batches, in order. If `fsync` is `Always`, all
    /// records are on the disk when the method returns.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn finish(self) -> io::Result<Vec<Record>> {
        if self.journal.fsync == Fsync::Always {
            self.journal.unsynced.sync()?;
        }
        Ok(self.records)
    }
}
