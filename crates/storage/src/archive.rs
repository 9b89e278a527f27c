//! Archive: the files of the log that snapshots cover, under other names.
//!
//! The log has every fingerprint that the filter let through. The daemon removes a file of the log
//! when snapshots cover its records. With an archive, it renames the file instead. So the archive
//! costs no write before a commit, has the format of the log, and gets no records that a recovery
//! cuts off. After a kill, a file is either in the log or in the archive.
//!
//! The empty file `archive` marks a folder with an archive. A folder without that file loses the
//! fingerprints of pruned files. The loss later shows as a gap: a file does not follow the one
//! before.

use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;

use serde::Serialize;
use urlseen_fingerprint::Fingerprint;

use super::disk::{self, Dir};
use super::error::{Damage, ReadError, RecoveryError};
use super::head::Position;
use super::header::Begun;
use super::history::Segments;
use super::reader::AtRest;
use super::record::{Change, HEAD};
use super::recovery::{self, Target};
use super::segment::{self, LogEntry, Segment};
use super::snapshot::Snapshots;

/// The file that says that the folder has an archive.
pub(super) const NAME: &str = "archive";

const PREFIX: &str = "archive-";

/// End of the name of a part before which the filter was empty.
const FIRST: &str = "-first";

/// Number in place of that of the last record of a file of the log, which is not read: any file can
/// follow.
const ANY: u64 = u64::MAX;

/// A part of the archive: a file that was in the log.
///
/// Its name is `archive-`, the numbers of its first and its last record, both in 20 digits, and
/// `-first` if the filter was empty before it.
#[derive(Debug)]
pub(super) struct Part {
    name: String,
    /// Number of the last record before the part.
    pub(super) follows: u64,
    last: u64,
    is_first: bool,
}

impl Part {
    fn new(follows: u64, last: u64, is_first: bool) -> Self {
        let end = if is_first { FIRST } else { "" };
        let name = format!("{PREFIX}{:020}-{last:020}{end}", follows + 1);
        Self { name, follows, last, is_first }
    }

    /// Returns the part with this name. Returns `None` if no part can have the name.
    fn named(name: &str) -> Option<Self> {
        let numbers = name.strip_prefix(PREFIX)?;
        let is_first = numbers.ends_with(FIRST);
        let (first, last) = numbers.trim_end_matches(FIRST).split_once('-')?;
        let follows = first.parse::<u64>().ok()?.checked_sub(1)?;
        let part = Self::new(follows, last.parse().ok()?, is_first);
        (part.name == name).then_some(part)
    }

    /// Returns the part or the file of the log with this name.
    pub(super) fn of(name: &str) -> Option<Self> {
        let in_log =
            |follows| Self { name: name.to_owned(), follows, last: ANY, is_first: follows == 0 };
        Self::named(name).or_else(|| segment::follows(name).map(in_log))
    }
}

/// Lists the parts and the files of the log, in the order of their records.
fn files(begun: &Begun) -> io::Result<Vec<Part>> {
    let mut files: Vec<_> =
        begun.dir.list()?.iter().filter_map(|file| Part::of(&file.name)).collect();
    files.sort_by_key(|file| file.follows);
    Ok(files)
}

/// Returns true if the folder has an archive.
pub(super) fn is_on(dir: &Dir) -> io::Result<bool> {
    Ok(dir.inode(NAME)?.is_some())
}

/// Turns the archive on or off. An archive that is turned off keeps its parts.
pub(super) fn turn(dir: &Dir, on: bool) -> io::Result<()> {
    if is_on(dir)? == on {
        return Ok(());
    }
    if on {
        dir.create(NAME)?.sync()?;
    } else {
        dir.remove(NAME)?;
    }
    dir.sync()
}

/// Removes all parts of the archive. The caller empties the filter.
pub(super) fn clear(dir: &Dir) -> io::Result<()> {
    for part in dir.list()?.iter().filter(|file| is_part(file)) {
        dir.remove(&part.name)?;
    }
    dir.sync()
}

/// Returns true if a file is a part.
pub(super) fn is_part(file: &disk::FolderEntry) -> bool {
    Part::named(&file.name).is_some()
}

/// Size of a folder's archive, and completeness of archive and log together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ArchiveState {
    /// True if files pruned from the log go to the archive.
    pub is_on: bool,
    /// Number of the archive's parts.
    pub parts: u64,
    /// Bytes of all these parts.
    pub bytes: u64,
    /// Position after which the archive and the log together are complete. `None` if they have all
    /// fingerprints of the filter.
    pub lacks_before: Option<Position>,
}

/// Returns the position at which the filter was last known to be empty. Earlier records no longer
/// count.
pub(super) fn start(begun: &Begun) -> io::Result<Option<Position>> {
    let all = Snapshots::list(begun)?;
    Ok(all.sound.last().filter(|oldest| oldest.is_empty()).map(|oldest| oldest.first))
}

/// Follows the parts and the files of the log, which form a chain if nothing is missing, up to the
/// record `until`. `read` reads a file, and returns the number of its last record. Returns the
/// position after which the chain has no gap, and the damage of the files that cannot be read.
fn follow(
    begun: &Begun,
    until: Option<Position>,
    mut read: impl FnMut(&Part, &mut Segment) -> Result<u64, ReadError>,
) -> io::Result<(Option<Position>, Vec<Damage>)> {
    let (start, mut end, mut lacks_before) = (start(begun)?, None, None);
    let mut begin = |follows: Position, is_first: bool, end: Option<u64>| {
        if is_first || start == Some(follows) {
            lacks_before = None;
        } else if end.is_none_or(|end| end != follows.number && end != ANY) {
            lacks_before = Some(follows);
        }
    };
    let is_in = |part: &Part| {
        let is_new = start.is_none_or(|start| part.follows >= start.number);
        is_new && until.is_none_or(|until| part.follows < until.number)
    };
    let names = files(begun)?.into_iter().filter(is_in).map(|part| part.name);
    let damaged = segment::each(begun, names, |mut file| {
        let part = Part::of(&file.name).expect("the name was read before");
        begin(file.follows, part.is_first, end);
        end = Some(read(&part, &mut file)?);
        Ok(())
    })?;
    if let Some(until) = until {
        begin(until, until.number == 0, end);
    }
    Ok((lacks_before, damaged))
}

/// Reads the names and headers of an archive's files, but no fingerprints.
pub(super) fn standing(begun: &Begun) -> io::Result<ArchiveState> {
    let (lacks_before, _) = follow(begun, None, |part, _| Ok(part.last))?;
    let files = begun.dir.list()?;
    let parts: Vec<_> = files.iter().filter(|file| is_part(file)).collect();
    Ok(ArchiveState {
        is_on: is_on(&begun.dir)?,
        parts: parts.len() as u64,
        bytes: parts.iter().map(|part| part.len).sum(),
        lacks_before,
    })
}

/// Removes files of the log, oldest first. If `is_archived` is true, moves them to the archive.
/// After a failure, the next call continues with the files that are left.
///
/// `start` is the position at which the filter was last known to be empty. Records before it no
/// longer count.
pub(super) fn retire(
    begun: &Begun,
    logs: &[u64],
    is_archived: bool,
    start: Option<Position>,
) -> io::Result<()> {
    let dir = &begun.dir;
    for &follows in logs {
        let name = segment::name(follows);
        if is_archived && start.is_none_or(|start| follows >= start.number) {
            let is_first = follows == 0 || start.is_some_and(|start| start.number == follows);
            let part = Part::new(follows, last(begun, follows)?, is_first);
            dir.rename(&name, &part.name)?;
        } else {
            dir.remove(&name)?;
        }
    }
    if logs.is_empty() { Ok(()) } else { dir.sync() }
}

/// Returns the number of the last record of a file of the log, which the next file follows. If
/// there is a gap after the file, returns the maximum that its size permits, which no other file
/// follows.
fn last(begun: &Begun, follows: u64) -> io::Result<u64> {
    let files = Segments::list(begun)?.files;
    let most = follows.saturating_add(files.get(&follows).copied().unwrap_or(0) / HEAD as u64);
    Ok(files.range(follows + 1..).next().map_or(most, |(&next, _)| next.min(most)))
}

/// Fingerprints that a filter let through, as the archive and the log record them.
///
/// Only fingerprints that were ever forgotten are in memory.
#[derive(Debug)]
pub struct Archive<'a> {
    begun: &'a Begun,
    target: Target,
    /// Position after which archive and log are complete. `None` if archive and log have all
    /// fingerprints of the filter.
    pub lacks_before: Option<Position>,
    /// Parts that cannot be read.
    pub damaged: Vec<Damage>,
    /// Fingerprints that were ever forgotten. The value is true if the filter let the fingerprint
    /// through later.
    tombstones: HashMap<Fingerprint, bool>,
}

impl AtRest {
    /// Reads the archive and the log up to `target`.
    ///
    /// # Errors
    /// If the disk fails, or the folder does not lead to `target`.
    pub fn archive(&self, target: Target) -> Result<Archive<'_>, RecoveryError> {
        let begun = self.begun()?;
        let mut tombstones = HashMap::new();
        let (lacks_before, damaged) =
            read(begun, target, &mut |change, fingerprint| match change {
                Change::Forget => drop(tombstones.insert(fingerprint, false)),
                Change::Add => {
                    tombstones.entry(fingerprint).and_modify(|is_through| *is_through = true);
                }
            })?;
        Ok(Archive { begun, target, lacks_before, damaged, tombstones })
    }
}

impl Archive<'_> {
    /// Calls `visit` once with each fingerprint that counts as seen, until `visit` returns a break.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn each(
        mut self,
        mut visit: impl FnMut(&Fingerprint) -> ControlFlow<()>,
    ) -> Result<(), RecoveryError> {
        let (tombstones, mut flow) = (&mut self.tombstones, ControlFlow::Continue(()));
        read(self.begun, self.target, &mut |change, fingerprint| {
            if change == Change::Forget || flow.is_break() {
                return;
            }
            // A fingerprint that passed more than once is visited only the first time.
            let counts = tombstones.get_mut(&fingerprint);
            if counts.is_none_or(std::mem::take) {
                flow = visit(&fingerprint);
            }
        })?;
        Ok(())
    }
}

/// Calls `visit` with each change up to `target`, in order. Returns the position after which
/// archive and log are complete, and the damaged places of the parts.
fn read(
    begun: &Begun,
    target: Target,
    visit: &mut impl FnMut(Change, Fingerprint),
) -> Result<(Option<Position>, Vec<Damage>), RecoveryError> {
    let (way, ()) = recovery::find(begun, target, |_| Ok(()))?;
    let from = way.snapshot.first;
    let mut visit = |entry: LogEntry| {
        entry.changes().for_each(|(change, _, fingerprint)| visit(change, fingerprint));
    };
    let followed = follow(begun, Some(from), |_, file| {
        // A file of the log may continue after the snapshot's first position.
        file.each(from.number, &mut visit)?;
        Ok(file.position.number)
    })?;
    way.replay_all(begun, visit)?;
    Ok(followed)
}
