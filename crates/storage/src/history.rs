//! Log of a folder: follows its files from a position on.

use std::collections::BTreeMap;
use std::io;

use super::disk::{Dir, FolderEntry};
use super::error::{Damage, Lost, OpenError, ReadError};
use super::header::{Begun, HEADER, Header};
use super::record::{Change, RecordKind};
use super::segment::{self, LogEntry, Segment};
use super::snapshot;
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
            match segment.next() {
                Ok(Some(_)) => {}
                Ok(None) => {
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

/// Head that a filter is recovered to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Last batch that Redis has committed.
    At(Head),
    /// The last batch in the folder, if no Redis names one.
    Last,
}

/// The log between a position and a target, and after the target.
#[derive(Debug)]
pub(super) struct SegmentScan {
    pub(super) walk: Walk,
    /// Head of the record with the requested number.
    pub(super) at_number: Option<Head>,
    /// Number of fingerprints that records after the requested number add.
    pub(super) later: u64,
    /// True if the log leads to the target.
    pub(super) is_reached: bool,
    /// A batch in the log with the target's number and another id.
    pub(super) other: Option<Head>,
    /// Cut that makes the target the last batch.
    pub(super) plan: Plan,
    /// Number of batches after the target.
    pub(super) beyond: u64,
}

impl SegmentScan {
    /// Follows the log from `from` to its end. Looks for `target`, and for the head at `number`.
    pub(super) fn new(
        segments: &Segments<'_>,
        from: Position,
        target: Target,
        number: u64,
    ) -> io::Result<Self> {
        let mut at_number = (from.number == number).then_some(from.head);
        let (mut is_reached, mut other) = (false, None);
        let mut meet = |head: Head| match target {
            Target::At(target) if head == target => is_reached = true,
            Target::At(target) if head.seq == target.seq => other = Some(head),
            _ => {}
        };
        meet(from.head);
        let (mut before, mut beyond, mut keep_adds) = (from, None, false);
        let (mut count, mut later) = (0, 0);
        let walk = segments.walk(from, |place, entry| {
            let position = entry.head.position;
            if position.number == number {
                at_number = Some(position.head);
            }
            match target {
                _ if entry.head.kind != RecordKind::Batch => keep_adds |= beyond.is_some(),
                Target::At(target) if position.head.seq > target.seq => {
                    beyond.get_or_insert((place, before));
                    count += 1;
                }
                _ => meet(position.head),
            }
            if position.number > number && entry.head.kind.change() == Some(Change::Add) {
                later += u64::from(entry.head.count);
            }
            before = position;
        })?;
        if target == Target::Last {
            is_reached = walk.other.is_none();
        }
        let (place, end) = match beyond {
            Some((place, end)) => (Some(place), end),
            None => (walk.place, walk.end),
        };
        let plan = Plan { from, end, place, keep_adds };
        Ok(Self { walk, at_number, later, is_reached, other, plan, beyond: count })
    }
}

/// Files and records to drop.
#[derive(Debug)]
pub(super) struct Plan {
    /// Two positions: of the record before the first unchanged record, and of the last unchanged
    /// record.
    pub(super) from: Position,
    pub(super) end: Position,
    /// Place of `end` in the files. `None` if no file reaches `end`.
    pub(super) place: Option<LogPlace>,
    /// True if the log has records other than batches after `end`.
    pub(super) keep_adds: bool,
}

/// End of the log, and its place in the files. `None` if the log must continue in a new file.
pub(super) type Stand = (Position, Option<LogPlace>);

/// Returns true for a snapshot or a file of the log.
pub(super) fn is_history(file: &FolderEntry) -> bool {
    snapshot::seq(&file.name).is_some() || segment::follows(&file.name).is_some()
}

/// Reads the header of a folder. Returns `None` if the folder has no filter yet.
pub(super) fn read_header(dir: &Dir) -> Result<Option<Begun>, OpenError> {
    let path = || dir.path().to_owned();
    // Another process may be making the folder now. It writes the header last, so list the files
    // first.
    let files = dir.list().map_err(|reason| OpenError::unreadable(dir.path(), reason))?;
    let bytes = dir.read(HEADER).map_err(|reason| OpenError::Io { dir: path(), reason })?;
    if let Some(bytes) = bytes {
        let header = Header::decode(dir.path(), &bytes)?;
        return Ok(Some(Begun { dir: Dir::clone(dir), header }));
    }
    let history: Vec<_> = files.iter().filter(|file| is_history(file)).collect();
    match history[..] {
        [] => Ok(None),
        // If `Folder::begin` was interrupted, the folder has only this file and no header.
        [only] if snapshot::seq(&only.name).is_some() && snapshot::EMPTY.contains(&only.len) => {
            Ok(None)
        }
        [first, ..] => Err(OpenError::HeaderMissing { dir: path(), file: first.name.clone() }),
    }
}
