//! Following the log from one position on, through all its files.

use std::collections::BTreeMap;
use std::io;

use super::damage::Damage;
use super::dir::Dir;
use super::error::RecoveryError;
use super::segment::{self, Entry, Segment, Stop};
use crate::storage::head::{Head, Position};

/// The files of the log by what their first record follows, and their sizes.
#[derive(Debug)]
pub(super) struct Segments(BTreeMap<u64, u64>);

/// A place in a file of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// What the file's first record follows: it names the file.
    pub(super) file: u64,
    pub(super) offset: u64,
}

/// What was found by following the log.
#[derive(Debug)]
pub(super) struct Walk {
    /// Where the records end that lead on from the start; the start itself if none does.
    pub(super) end: Position,
    /// Where in the files that is; `None` if no file comes up to the start.
    pub(super) place: Option<Place>,
    /// What the log has at the start's number, if not the start: it is another history's.
    pub(super) other: Option<Head>,
    /// What is wrong there, if the log does not simply end.
    pub(super) damage: Option<Damage>,
}

impl Segments {
    pub(super) fn list(dir: &Dir) -> io::Result<Self> {
        let files = dir.list()?.into_iter();
        Ok(Self(files.filter_map(|file| Some((segment::follows(&file.name)?, file.len))).collect()))
    }

    /// By what their first records follow, oldest first.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + Clone {
        self.0.iter().map(|(&follows, &len)| (follows, len))
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.0.values().sum()
    }

    /// The first file behind `number` that is not the one directly behind it.
    fn gap(&self, number: u64) -> Option<Damage> {
        let (&follows, _) = self.0.range(number + 1..).next()?;
        let what = "the records before this file are missing";
        Some(Damage { file: segment::name(follows), offset: 0, what })
    }

    /// Calls `visit` with the records behind `from`, in order, as far as they are whole and each
    /// follows the one before. What comes before `from` is not looked at closely.
    pub(super) fn walk(
        &self,
        dir: &Dir,
        filter: u64,
        from: Position,
        mut visit: impl FnMut(Place, &Entry<'_>),
    ) -> Result<Walk, RecoveryError> {
        let mut walk = Walk { end: from, place: None, other: None, damage: None };
        let Some((mut file, mut segment)) = self.seek(dir, filter, from, &mut walk)? else {
            return Ok(walk);
        };
        loop {
            match segment.next() {
                Ok(entry) => {
                    visit(Place { file, offset: entry.offset }, &entry);
                    continue;
                }
                Err(Stop::End) => walk.damage = None,
                Err(stop) => walk.damage = Some(damage(stop, file, &segment)?),
            }
            walk.end = segment.position();
            walk.place = Some(Place { file, offset: segment.offset() });
            let next = walk.end.number;
            if next == file || !self.0.contains_key(&next) {
                walk.damage = walk.damage.or_else(|| self.gap(next));
                return Ok(walk);
            }
            let here = match Segment::open(dir, &segment::name(next), filter)? {
                Ok(other) if other.follows() == walk.end => {
                    (file, segment) = (next, other);
                    continue;
                }
                Ok(_) => {
                    let what = "the file does not follow the one before";
                    Damage { file: segment::name(next), offset: 0, what }
                }
                Err(here) => here,
            };
            walk.damage = walk.damage.or(Some(here));
            return Ok(walk);
        }
    }

    /// Opens the file that has the record behind `from`, right before that record; `None` if the
    /// log does not lead there, and then `walk` says why.
    fn seek(
        &self,
        dir: &Dir,
        filter: u64,
        from: Position,
        walk: &mut Walk,
    ) -> Result<Option<(u64, Segment)>, RecoveryError> {
        let Some((&file, _)) = self.0.range(..=from.number).next_back() else {
            walk.damage = self.gap(from.number);
            return Ok(None);
        };
        let mut segment = match Segment::open(dir, &segment::name(file), filter)? {
            Ok(segment) => segment,
            Err(damage) => {
                walk.damage = Some(damage);
                return Ok(None);
            }
        };
        while segment.position().number < from.number {
            match segment.skip() {
                Ok(()) => {}
                Err(Stop::End) => {
                    walk.damage = self.gap(from.number);
                    return Ok(None);
                }
                Err(stop) => {
                    let damage = damage(stop, file, &segment)?;
                    // It is before what matters, if what matters is to be found.
                    if !segment.seek(from)? {
                        walk.damage = Some(damage);
                        return Ok(None);
                    }
                }
            }
        }
        if segment.position() != from {
            walk.other = Some(segment.position().head);
            return Ok(None);
        }
        Ok(Some((file, segment)))
    }
}

/// Where and how a file of the log is damaged, unless something else stopped its reading.
fn damage(stop: Stop, file: u64, segment: &Segment) -> Result<Damage, RecoveryError> {
    match stop {
        Stop::Damaged(damage) => Ok(damage),
        Stop::Io(error) => Err(error.into()),
        Stop::UnknownKind(kind) => {
            let (file, offset) = (segment::name(file), segment.offset());
            Err(RecoveryError::UnknownKind { file, offset, kind })
        }
        Stop::End => unreachable!("the end of a file is no damage"),
    }
}
