//! Log of a storage folder, and its writer. The daemon logs every batch before the commit.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use urlseen_filter::Generation;
use urlseen_filter::Lifetimes;
use urlseen_filter::choice::Fsync;
use urlseen_filter::limit::Counted;
use urlseen_fingerprint::Fingerprint;

use super::cut;
use super::disk::DiskFile;
use super::error::sound;
use super::header::Begun;
use super::history::{LogPlace, SegmentScan, Segments, Target};
use super::lock::{Hold, gone};
use super::record::{self, Change, RecordContent, RecordKind, encoded_len};
use super::segment;
use super::snapshot::Snapshots;
use super::sync::{INTERVAL, Syncing, Unsynced};
use crate::head::{Head, Logged, Position};

/// Maximum size in bytes of the buffer that is kept from one record to the next.
const BUFFER: usize = 8 << 20;

/// Approximate maximum size of a record of adds or forgets, in bytes. Recovery reads one record at
/// a time into memory.
const ADDS: usize = 1 << 20;

/// The log of a storage folder, open to be written to by one thread.
///
/// After a failed write or sync, the log takes no more records. The log cuts off the failed record
/// if possible. Every later call fails with the reason of the first failure.
#[derive(Debug)]
pub struct Journal {
    pub(super) begun: Begun,
    fsync: Fsync,
    position: Position,
    /// Generation of the fingerprints that are logged next; [`Generation::FOREVER`] if the
    /// fingerprints of the filter do not expire. `None` until one begins.
    generation: Option<Generation>,
    /// The file that the log appends to.
    file: Arc<dyn DiskFile>,
    /// Place of the end of the log: the last file, and the offset there.
    tail: LogPlace,
    pub(super) unsynced: Arc<Unsynced>,
    /// Thread that syncs the log, if `fsync` is `Interval`. The thread ends with the journal.
    syncing: Option<Syncing>,
    buffer: Vec<u8>,
    bytes: u64,
}

impl Journal {
    pub(super) fn open(
        begun: &Begun,
        position: Position,
        tail: Option<LogPlace>,
        fsync: Fsync,
        hold: &Arc<Hold>,
    ) -> io::Result<Self> {
        let (file, tail) = if let Some(tail) = tail {
            (begun.dir.append(&segment::name(tail.file))?.into(), tail)
        } else {
            let is_empty = Snapshots::list(begun)?.empty_start() == Some(position);
            make(begun, position, if is_empty { 0 } else { position.number + 1 })?
        };
        let expire_after = begun.header.spec.filter.parameters.expire_after();
        let unsynced = Unsynced::new(Arc::clone(hold), position.number, &file);
        let mut journal = Self {
            begun: begun.clone(),
            fsync,
            position,
            generation: expire_after.is_none().then_some(Generation::FOREVER),
            file,
            tail,
            unsynced: Arc::new(unsynced),
            syncing: None,
            buffer: Vec::new(),
            bytes: 0,
        };
        journal.start_syncing(INTERVAL)?;
        Ok(journal)
    }

    /// Starts the thread that syncs the log, if `fsync` asks for it.
    pub(super) fn start_syncing(&mut self, interval: Duration) -> io::Result<()> {
        if self.fsync == Fsync::Interval {
            self.syncing = Some(Syncing::start(Arc::clone(&self.unsynced), interval)?);
        }
        Ok(())
    }

    /// Returns the position of the last record.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Returns the present generation, if the fingerprints expire and a generation has begun.
    pub(super) fn generation(&self) -> Option<Generation> {
        self.generation.filter(|&generation| generation != Generation::FOREVER)
    }

    /// Returns the bytes written since the journal was opened.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Logs that a generation begins. Later fingerprints are let through in this generation.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn begin_generation(&mut self, generation: Generation) -> io::Result<()> {
        let mut group = self.group();
        group.begin_generation(generation)?;
        group.finish().map(drop)
    }

    /// Begins a group of records that are synced together.
    pub fn group(&mut self) -> WriteGroup<'_> {
        WriteGroup { journal: self, records: Vec::new() }
    }

    /// Writes one record, with a single append.
    pub(super) fn write(
        &mut self,
        kind: RecordKind,
        next: Position,
        fingerprints: &[Fingerprint],
        lifetimes: &Lifetimes,
        counted: &[Counted],
    ) -> io::Result<()> {
        self.unsynced.check()?;
        let none = || io::Error::other("no generation of the filter has begun");
        let generation = self.generation.ok_or_else(none)?;
        let synced = self.unsynced.state().synced;
        let content = RecordContent { synced, fingerprints, generation, lifetimes, counted };
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER);
        record::encode(kind, self.position.head, next, content, &mut self.buffer)?;
        let answer = self.begun.dir.requests().begin("a write to the log");
        let appended = self.unsynced.poison_if(self.file.append(&self.buffer));
        drop(answer);
        if let Err(error) = appended {
            // A recovery would also cut off the failed record.
            let _ = self.file.set_len(self.tail.offset);
            return Err(error);
        }
        let written = self.buffer.len() as u64;
        self.tail.offset += written;
        self.bytes += written;
        self.position = next;
        self.unsynced.state().written = next.number;
        Ok(())
    }

    /// Checks quickly that the log takes records, and that the next start will find them.
    ///
    /// # Errors
    /// If an earlier failure closed the log, or its file is gone from the folder.
    pub fn check(&self) -> io::Result<()> {
        self.unsynced.check()?;
        self.unsynced.poison_if(self.check_files())
    }

    /// Fails if the thread that syncs the log has ended, or the log is gone from the folder.
    fn check_files(&self) -> io::Result<()> {
        if self.syncing.as_ref().is_some_and(Syncing::has_ended) {
            // The usual cause is a failed sync, which recorded its reason.
            self.unsynced.check()?;
            return Err(io::Error::other("the thread that syncs the log has ended"));
        }
        self.unsynced.hold.check()?;
        let (dir, name) = (&self.begun.dir, segment::name(self.tail.file));
        if dir.has(&name, &*self.file)? { Ok(()) } else { Err(gone(dir, &name)) }
    }

    /// Begins a new file, so that the earlier files can be dropped after a snapshot covers them.
    /// Does nothing if the present file has no record yet.
    ///
    /// # Errors
    /// If the disk cannot make a file. The log then continues in the old file.
    pub fn roll(&mut self) -> io::Result<()> {
        self.unsynced.check()?;
        if self.tail.file == self.position.number {
            return Ok(());
        }
        match make(&self.begun, self.position, self.tail.file + 1) {
            Ok((file, tail)) => {
                self.unsynced.state().files.push(Arc::clone(&file));
                (self.file, self.tail) = (file, tail);
                Ok(())
            }
            Err(error) => {
                // A replay from here on would read the new file, not the present one.
                let removed = self.begun.dir.remove_if_there(&segment::name(self.position.number));
                let _ = self.unsynced.poison_if(removed);
                Err(error)
            }
        }
    }

    /// Syncs the log: all records are on the disk when the method returns.
    pub fn sync(&mut self) -> io::Result<()> {
        self.check()?;
        self.unsynced.sync()
    }

    /// Drops the batches after `head`, because Redis does not know these batches. Keeps the records
    /// of adds, forgets and generations after `head`. The next record follows `head`. The whole log
    /// is on the disk when the method returns.
    ///
    /// # Errors
    /// If the disk fails, or the log does not have `head` any more.
    pub(crate) fn cut(&mut self, head: Head) -> io::Result<Position> {
        self.unsynced.check()?;
        if self.position.head != head {
            (self.position, self.tail, self.file) =
                self.unsynced.poison_if(self.cut_beyond(head))?;
            self.unsynced.cut(self.position.number, &self.file);
        }
        Ok(self.position)
    }

    /// Cuts the files of the log. Returns the new end of the log, and the file in which the log
    /// continues.
    fn cut_beyond(&self, head: Head) -> io::Result<(Position, LogPlace, Arc<dyn DiskFile>)> {
        // While this guard exists, no snapshot removes files.
        let _turn = self.unsynced.hold.turn();
        let segments = Segments::list(&self.begun)?;
        for &file in segments.files.keys().rev() {
            let Some(from) = sound(segments.open(file))?.map(|segment| segment.follows) else {
                continue;
            };
            if from.head.seq > head.seq {
                continue;
            }
            let target = Target::At(head);
            let scan = SegmentScan::new(&segments, from, target, from.number)?;
            if !scan.is_reached || scan.walk.end != self.position {
                break;
            }
            let (position, tail) = cut::apply(&segments, &scan.plan, &[])?;
            let tail = tail.expect("the file that the walk began in");
            let file = self.begun.dir.append(&segment::name(tail.file))?;
            return Ok((position, tail, file.into()));
        }
        Err(io::Error::other(format!(
            "the log cannot be cut to {head}: it does not have that batch"
        )))
    }

    /// Ends the log: drops the batches after `head`, and syncs the remaining records.
    ///
    /// # Errors
    /// The errors of [`Journal::cut`].
    pub fn close(mut self, head: Head) -> io::Result<Position> {
        self.syncing = None;
        self.cut(head)?;
        self.sync()?;
        Ok(self.position)
    }
}

/// Makes the file that begins after `position`, and names the file `before` it. The file gets its
/// name with its whole header on the disk. Otherwise a crash could leave a file that counts as
/// damaged.
fn make(
    begun: &Begun,
    position: Position,
    before: u64,
) -> io::Result<(Arc<dyn DiskFile>, LogPlace)> {
    let Begun { dir, header } = begun;
    let _answer = dir.requests().begin("a new file of the log");
    let name = segment::name(position.number);
    let header = segment::header(header.filter.get(), position, before);
    dir.write_aside(&name, &header)?;
    dir.replace(&name)?;
    let file = dir.append(&name)?.into();
    Ok((file, LogPlace { file: position.number, offset: header.len() as u64 }))
}

/// Proof that a batch is in the log, with the position of the batch. Only the log makes proofs.
#[derive(Debug)]
#[non_exhaustive]
pub struct Record {
    /// Head that the batch follows.
    pub base: Head,
    /// Position of the batch, and the generation of its fingerprints.
    pub logged: Logged,
}

/// Group of records that are written one by one and synced together.
#[derive(Debug)]
pub struct WriteGroup<'a> {
    journal: &'a mut Journal,
    records: Vec<Record>,
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
