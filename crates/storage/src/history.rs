//! Reads the log from a position on, through all its files.

use std::collections::BTreeMap;
use std::{fmt, io};

use super::error::{Damage, ReadError};
use super::header::Begun;
use super::segment::{self, LogEntry, Segment};
use crate::head::{Head, Position};

/// Files of the log, with their sizes.
#[derive(Debug)]
pub(super) struct Segments<'a> {
    pub(super) begun: &'a Begun,
    /// Size of each file. The key is the number of the last record before the file.
    pub(super) files: BTreeMap<u64, u64>,
}

/// A place in a file of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogPlace {
    /// Number of the last record before the file. The name of the file has the next number.
    pub(super) file: u64,
    pub(super) offset: u64,
}

/// Result of following the log.
#[derive(Debug)]
pub(super) struct Walk {
    /// Position of the last record to which the log leads without a gap; the start itself if there
    /// is none.
    pub(super) end: Position,
    /// Place of `end` in the files; `None` if the log does not lead to the start.
    pub(super) place: Option<LogPlace>,
    /// Head that the log has at the record number of the start, if it differs from the head of the
    /// start. The log then belongs to another history.
    pub(super) other: Option<Head>,
    /// Damage that ended the walk, if there was any.
    pub(super) damage: Option<Damage>,
    /// Records that the damage took. `None` if the log ends there with a record that was never
    /// written to its end.
    pub(super) lost: Option<Lost>,
}

/// Records of the log that cannot be used because of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Number of the records, at least: those that were damaged, and all later ones.
    pub records: u64,
    /// Number of fingerprints in those of the records whose heads can be read.
    pub fingerprints: u64,
}

impl<'a> Segments<'a> {
    pub(super) fn list(begun: &'a Begun) -> io::Result<Self> {
        let files = begun.dir.list()?.into_iter();
        let files = files.filter_map(|file| Some((segment::follows(&file.name)?, file.len)));
        Ok(Self { begun, files: files.collect() })
    }

    /// Returns the names of the files, in the order of their records.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        self.files.keys().map(|&follows| segment::name(follows))
    }

    /// Opens the file that begins after record `follows`.
    pub(super) fn open(&self, follows: u64) -> Result<Segment, ReadError> {
        Segment::open(self.begun, &segment::name(follows))
    }

    /// Returns the damage of a gap after record `number`: the log has a later file, but not the
    /// records before that file. Returns `None` if the log has no later file.
    fn gap(&self, number: u64) -> Option<Damage> {
        let (&follows, _) = self.files.range(number + 1..).next()?;
        let what = "the records before this file are missing";
        Some(Damage::new(segment::name(follows), 0, what))
    }

    /// Calls `visit` with the records after `from`, in order, as long as each is whole and follows
    /// the one before. Records before `from` are not checked closely.
    pub(super) fn walk(
        &self,
        from: Position,
        mut visit: impl FnMut(LogPlace, LogEntry),
    ) -> io::Result<Walk> {
        let mut walk = Walk { end: from, place: None, other: None, damage: None, lost: None };
        let Some((mut file, mut segment)) = self.seek(from, &mut walk)? else {
            return Ok(walk);
        };
        loop {
            let read = match segment.next() {
                Ok(Some(entry)) => {
                    visit(LogPlace { file, offset: entry.offset }, entry);
                    continue;
                }
                Ok(None) => None,
                Err(error) => Some(error.damage()?),
            };
            walk.end = segment.position;
            walk.place = Some(LogPlace { file, offset: segment.offset });
            if read.is_some() {
                let first = walk.end.number + 1;
                let (lost, is_proven) = self.lost(file, segment.offset, first)?;
                let is_torn = !is_proven && segment.is_unfinished()?;
                let lost = Lost { records: lost.records.max(1), ..lost };
                walk.lost = Some(lost).filter(|_| !is_torn);
            }
            walk.damage = read;
            let next = walk.end.number;
            if next == file || !self.files.contains_key(&next) {
                walk.damage = walk.damage.or_else(|| self.gap(next));
                return Ok(walk);
            }
            let here = match self.open(next) {
                Ok(other) if other.follows == walk.end => {
                    (file, segment) = (next, other);
                    continue;
                }
                Ok(_) => {
                    let what = "the file does not follow the one before";
                    Damage::new(segment::name(next), 0, what)
                }
                Err(error) => {
                    // A file gets its name with its whole header, so the header was damaged later.
                    let (lost, _) = self.lost(next, 0, next + 1)?;
                    walk.lost = walk.lost.or(Some(lost).filter(|lost| lost.records > 0));
                    error.damage()?
                }
            };
            walk.damage = walk.damage.or(Some(here));
            return Ok(walk);
        }
    }

    /// Opens the file that has the record after `from`, and goes to that record. If the log does
    /// not lead there, stores the reason in `walk` and returns `None`.
    fn seek(&self, from: Position, walk: &mut Walk) -> io::Result<Option<(u64, Segment)>> {
        let Some((&file, _)) = self.files.range(..=from.number).next_back() else {
            walk.damage = self.gap(from.number);
            return Ok(None);
        };
        let mut segment = match self.open(file) {
            Ok(segment) => segment,
            Err(error) => {
                self.lose(walk, error.damage()?, file)?;
                return Ok(None);
            }
        };
        while segment.position.number < from.number {
            match segment.skip() {
                Ok(true) => {}
                Ok(false) => {
                    walk.damage = self.gap(from.number);
                    return Ok(None);
                }
                Err(error) => {
                    let damage = error.damage()?;
                    // The damage is before `from`, so it does no harm if the record after `from` is
                    // found.
                    if !segment.seek(from)? {
                        self.lose(walk, damage, file)?;
                        return Ok(None);
                    }
                }
            }
        }
        if segment.position != from {
            walk.other = Some(segment.position.head);
            return Ok(None);
        }
        Ok(Some((file, segment)))
    }

    /// Notes damage before the start of the walk, and the later records, which the log no longer
    /// leads to.
    fn lose(&self, walk: &mut Walk, damage: Damage, file: u64) -> io::Result<()> {
        let (lost, _) = self.lost(file, 0, walk.end.number + 1)?;
        (walk.damage, walk.lost) = (Some(damage), Some(lost).filter(|lost| lost.records > 0));
        Ok(())
    }

    /// Searches the log from `offset` in the file `file` on for records from number `first` on.
    /// Returns what is lost if none of them can be used. Also returns true if one of them proves
    /// that the record `first` was once on the disk.
    fn lost(&self, file: u64, offset: u64, first: u64) -> io::Result<(Lost, bool)> {
        let (mut lost, mut is_proven) = (Lost { records: 0, fingerprints: 0 }, false);
        for &later in self.files.range(file..).map(|(later, _)| later) {
            let offset = if later == file { offset } else { 0 };
            let mut segment = Segment::unchecked(self.begun, &segment::name(later), offset)?;
            segment.heads(first, |head| {
                let number = head.position.number;
                lost.records = lost.records.max(number - first + 1);
                lost.fingerprints += u64::from(head.count);
                is_proven |= head.synced >= first && number > first;
                false
            })?;
        }
        Ok((lost, is_proven))
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { records, fingerprints } = self;
        let records_are = if *records == 1 { "record" } else { "records" };
        write!(f, "{records} {records_are} with at least {fingerprints} fingerprints")
    }
}
