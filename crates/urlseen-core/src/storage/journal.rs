//! The log, which every batch passes on its way to the commit, and its writer.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::cut::{self, Tail};
use super::dir::Dir;
use super::disk::DiskFile;
use super::error::RecoveryError;
use super::history::Segments;
use super::lock::{Shared, Turn, gone};
use super::record::{self, Kind, encoded_len};
use super::scan::{Scan, Target};
use super::segment::{self, Segment};
use super::sync::{INTERVAL, LogHandle, Syncing, Unsynced};
use crate::filter::choice::Fsync;
use crate::fingerprint::Fingerprint;
use crate::storage::head::{Head, Position};

/// About how many bytes of adds go into one record: so many are read into memory at once.
const ADDS: usize = 1 << 20;

/// Bytes of memory that are kept from one record to the next.
const BUFFER: usize = 8 << 20;

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
}

/// The log of a storage folder, open to be written to. One thread has it.
///
/// A failed write or sync is the last: what was to be written is cut off again where that can be
/// done, and all that is asked of the log afterwards fails with the first reason.
#[derive(Debug)]
pub struct Journal {
    dir: Dir,
    filter: u64,
    shared: Arc<Shared>,
    turn: Turn,
    fsync: Fsync,
    position: Position,
    /// The file that is written to, its name, and its size.
    file: Arc<dyn DiskFile>,
    tail: Tail,
    unsynced: Arc<Unsynced>,
    /// Where `fsync` asks for it. Ends with this.
    syncing: Option<Syncing>,
    buffer: Vec<u8>,
    bytes: u64,
}

impl Journal {
    pub(super) fn open(
        dir: &Dir,
        filter: u64,
        position: Position,
        tail: Option<&Tail>,
        fsync: Fsync,
        (shared, turn): (Arc<Shared>, Turn),
    ) -> io::Result<Self> {
        let (file, tail) = match tail {
            Some(tail) => (dir.append(&tail.name)?.into(), tail.clone()),
            None => make(dir, filter, position)?,
        };
        let handle = dir.handle()?;
        let (hold, requests) = (Arc::clone(&shared), dir.requests().clone());
        let unsynced = Unsynced::new(handle, hold, requests, position.number, &file);
        let unsynced = Arc::new(unsynced);
        let mut journal = Self {
            dir: dir.clone(),
            filter,
            shared,
            turn,
            fsync,
            position,
            file,
            tail,
            unsynced,
            syncing: None,
            buffer: Vec::new(),
            bytes: 0,
        };
        journal.start_syncing(INTERVAL)?;
        Ok(journal)
    }

    /// Has the log synced at intervals, if it is to be.
    pub(super) fn start_syncing(&mut self, interval: Duration) -> io::Result<()> {
        if self.fsync == Fsync::Interval {
            self.syncing = Some(Syncing::start(Arc::clone(&self.unsynced), interval)?);
        }
        Ok(())
    }

    /// Where the log stands.
    pub fn position(&self) -> Position {
        self.position
    }

    /// For other threads.
    pub fn handle(&self) -> LogHandle {
        LogHandle::new(&self.unsynced)
    }

    /// Bytes written since the journal was opened.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Begins records that are synced together.
    pub fn group(&mut self) -> Group<'_> {
        Group { journal: self, records: Vec::new() }
    }

    /// Writes the new fingerprints of the batch that follows `base`. They have been written when
    /// this returns.
    ///
    /// # Errors
    /// Where the disk fails; where `base` is not the last batch of the log; where the filter was
    /// brought elsewhere since the journal was made.
    pub fn append(&mut self, base: Head, added: &[Fingerprint]) -> io::Result<Record> {
        let Position { number, head } = self.position;
        if base != head {
            return Err(io::Error::other(format!("the log ends with {head}, not with {base}")));
        }
        let next = Position { number: number + 1, head: base.next() };
        self.write(Kind::Batch, next, added)?;
        self.flush()?;
        Ok(Record { base, position: next })
    }

    /// Writes down fingerprints that count whatever becomes of the batches around them, in as many
    /// records as they need.
    ///
    /// # Errors
    /// The disk fails. Some of the records may have been written then.
    pub fn append_adds(&mut self, fingerprints: &[Fingerprint]) -> io::Result<Position> {
        let position = self.append_always(Kind::Adds, fingerprints)?;
        self.flush().map(|()| position)
    }

    /// The same of fingerprints that are to pass once more.
    ///
    /// # Errors
    /// As [`Journal::append_adds`].
    pub fn append_forgets(&mut self, fingerprints: &[Fingerprint]) -> io::Result<Position> {
        let position = self.append_always(Kind::Forgets, fingerprints)?;
        self.flush().map(|()| position)
    }

    fn append_always(&mut self, kind: Kind, all: &[Fingerprint]) -> io::Result<Position> {
        let mut rest = all;
        while !rest.is_empty() {
            let mut bytes = 0;
            let count = rest.iter().take_while(|fingerprint| {
                bytes += encoded_len(fingerprint);
                bytes <= ADDS
            });
            let (now, later) = rest.split_at(count.count().max(1));
            let next = Position { number: self.position.number + 1, head: self.position.head };
            self.write(kind, next, now)?;
            rest = later;
        }
        Ok(self.position)
    }

    /// Writes one record, in one piece.
    pub(super) fn write(
        &mut self,
        kind: Kind,
        next: Position,
        fingerprints: &[Fingerprint],
    ) -> io::Result<()> {
        self.usable()?;
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER);
        record::encode(kind, self.position.head, next, fingerprints, &mut self.buffer)?;
        let answer = self.dir.requests().begin("a write to the log");
        let appended = self.file.append(&self.buffer);
        drop(answer);
        if let Err(error) = appended {
            self.unsynced.poison(&error);
            // Recovery would cut it off as well.
            let _ = self.file.set_len(self.tail.len);
            return Err(error);
        }
        let written = self.buffer.len() as u64;
        self.tail.len += written;
        self.bytes += written;
        self.position = next;
        self.unsynced.wrote(next.number);
        Ok(())
    }

    /// Syncs what was written, if that is to be on the disk before it counts.
    fn flush(&self) -> io::Result<()> {
        if self.fsync == Fsync::Always { self.unsynced.sync() } else { Ok(()) }
    }

    /// Fails if nothing may be written any more.
    fn usable(&self) -> io::Result<()> {
        self.unsynced.check()?;
        self.shared.still(self.turn).map(drop)
    }

    /// Fails if nothing may be written any more, or a start would not find what was written.
    pub fn check(&self) -> io::Result<()> {
        self.usable()?;
        self.unsynced.poison_if(self.is_synced().and_then(|()| self.in_place()))
    }

    fn is_synced(&self) -> io::Result<()> {
        if self.syncing.as_ref().is_some_and(Syncing::has_ended) {
            // As a rule it failed, and said why.
            self.unsynced.check()?;
            return Err(io::Error::other("the thread that syncs the log has ended"));
        }
        Ok(())
    }

    fn in_place(&self) -> io::Result<()> {
        self.shared.hold.check()?;
        if self.file.is_linked()? { Ok(()) } else { Err(gone(&self.dir, &self.tail.name)) }
    }

    /// Begins a new file, so that those before it can be dropped once a snapshot covers them. Does
    /// nothing if the file has no record yet.
    ///
    /// # Errors
    /// Where no file can be made; the log then goes on in the old one.
    pub fn roll(&mut self) -> io::Result<()> {
        self.usable()?;
        if self.tail.name == segment::name(self.position.number) {
            return Ok(());
        }
        let _answer = self.dir.requests().begin("a new file of the log");
        match make(&self.dir, self.filter, self.position) {
            Ok((file, tail)) => {
                self.unsynced.rolled(&file);
                (self.file, self.tail) = (file, tail);
                Ok(())
            }
            Err(error) => {
                // Half made, it would stand in the way of the file that really comes next.
                match self.dir.remove(&segment::name(self.position.number)) {
                    Err(other) if other.kind() != io::ErrorKind::NotFound => {
                        self.unsynced.poison(&other);
                    }
                    _ => {}
                }
                Err(error)
            }
        }
    }

    /// All that was written is on the disk when this returns.
    pub fn sync(&mut self) -> io::Result<()> {
        self.check()?;
        self.unsynced.sync()
    }

    /// Drops the batches behind `head`, which Redis does not know, and keeps adds among them. The
    /// next record follows it, and it is all on the disk, when this returns.
    ///
    /// # Errors
    /// Where the disk fails, and where the log does not have `head` any more.
    pub fn cut(&mut self, head: Head) -> io::Result<Position> {
        self.usable()?;
        if self.position.head != head {
            let result = self.cut_beyond(head);
            self.unsynced.poison_if(result)?;
        }
        Ok(self.position)
    }

    fn cut_beyond(&mut self, head: Head) -> io::Result<()> {
        // No snapshot drops files meanwhile.
        let shared = Arc::clone(&self.shared);
        let _turn = shared.still(self.turn)?;
        let segments = Segments::list(&self.dir)?;
        let failed = |error| match error {
            RecoveryError::Io(error) => error,
            other => io::Error::other(other),
        };
        for (file, _) in segments.iter().rev() {
            let segment = Segment::open(&self.dir, &segment::name(file), self.filter)?;
            let Ok(from) = segment.map(|segment| segment.follows()) else { continue };
            if from.head.seq > head.seq {
                continue;
            }
            let target = Target::At(head);
            let scan = Scan::new(&self.dir, self.filter, &segments, from, target, from.number);
            let scan = scan.map_err(failed)?;
            if !scan.is_reached || scan.walk.end != self.position {
                break;
            }
            let (position, tail) =
                cut::apply(&self.dir, self.filter, &scan.plan()).map_err(failed)?;
            let tail = tail.expect("the file that the walk began in");
            self.file = self.dir.append(&tail.name)?.into();
            (self.tail, self.position) = (tail, position);
            self.unsynced.cut(position.number, &self.file);
            return Ok(());
        }
        Err(io::Error::other(format!("the log does not have {head} to be cut back to")))
    }

    /// Ends the log: no batch behind `head` stays, and all is on the disk.
    ///
    /// # Errors
    /// As [`Journal::cut`].
    pub fn close(mut self, head: Head) -> io::Result<Position> {
        self.syncing = None;
        self.cut(head)?;
        self.sync()?;
        Ok(self.position)
    }
}

/// Records that are written one by one and synced together.
#[derive(Debug)]
pub struct Group<'a> {
    journal: &'a mut Journal,
    records: Vec<Record>,
}

impl Group<'_> {
    /// Writes a batch that follows the last one.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn append(&mut self, added: &[Fingerprint]) -> io::Result<()> {
        let Position { number, head } = self.journal.position;
        let next = Position { number: number + 1, head: head.next() };
        self.journal.write(Kind::Batch, next, added)?;
        self.records.push(Record { base: head, position: next });
        Ok(())
    }

    /// Writes what [`Journal::append_adds`] does.
    ///
    /// # Errors
    /// As there.
    pub fn append_adds(&mut self, fingerprints: &[Fingerprint]) -> io::Result<Position> {
        self.journal.append_always(Kind::Adds, fingerprints)
    }

    /// Writes what [`Journal::append_forgets`] does.
    ///
    /// # Errors
    /// As there.
    pub fn append_forgets(&mut self, fingerprints: &[Fingerprint]) -> io::Result<Position> {
        self.journal.append_always(Kind::Forgets, fingerprints)
    }

    /// Where the log stands.
    pub fn position(&self) -> Position {
        self.journal.position
    }

    /// The proofs for the batches, in their order. All records are on the disk when this returns,
    /// if `fsync` asks for that.
    ///
    /// # Errors
    /// The disk fails.
    pub fn finish(self) -> io::Result<Vec<Record>> {
        self.journal.flush()?;
        Ok(self.records)
    }
}

/// Makes the file that goes on behind `position`.
fn make(dir: &Dir, filter: u64, position: Position) -> io::Result<(Arc<dyn DiskFile>, Tail)> {
    let name = segment::name(position.number);
    let header = segment::header(filter, position);
    let file = dir.create(&name)?;
    file.append(&header)?;
    Ok((file.into(), Tail { name, len: header.len() as u64 }))
}
