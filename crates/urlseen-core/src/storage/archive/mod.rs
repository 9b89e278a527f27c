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

mod reader;

use std::io;

use serde::Serialize;

use super::disk::{Dir, Entry};
use super::error::sound_if_there;
use super::head::Position;
use super::header::Begun;
use super::history::Segments;
use super::record::HEAD;
use super::segment::{self, Segment};
use super::snapshot::Snapshots;

pub use reader::Archive;

/// The file that says that the folder has an archive.
pub(super) const NAME: &str = "archive";

const PREFIX: &str = "archive-";

/// End of the name of a part before which the filter was empty.
const FIRST: &str = "-first";

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
    pub(super) fn named(name: &str) -> Option<Self> {
        let numbers = name.strip_prefix(PREFIX)?;
        let is_first = numbers.ends_with(FIRST);
        let (first, last) = numbers.trim_end_matches(FIRST).split_once('-')?;
        let follows = first.parse::<u64>().ok()?.checked_sub(1)?;
        let part = Self::new(follows, last.parse().ok()?, is_first);
        (part.name == name).then_some(part)
    }

    /// Returns the file of the log with this name.
    fn in_log(name: &str) -> Option<Self> {
        let (name, follows) = (name.to_owned(), segment::follows(name)?);
        Some(Self { name, follows, last: u64::MAX, is_first: follows == 0 })
    }
}

/// Lists the parts and the files of the log, in the order of their records.
fn files(begun: &Begun) -> io::Result<Vec<Part>> {
    let files = begun.dir.list()?.into_iter().map(|file| file.name);
    let file = |name: String| Part::named(&name).or_else(|| Part::in_log(&name));
    let mut files: Vec<_> = files.filter_map(file).collect();
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
pub(super) fn is_part(file: &Entry) -> bool {
    Part::named(&file.name).is_some()
}

/// Size of a folder's archive, and completeness of archive and log together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Standing {
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

/// Checks that the parts of the archive and the files of the log form a chain without a gap.
#[derive(Debug, Default)]
struct Chain {
    /// Number of the last record of the previous part or file.
    end: Option<u64>,
    /// Position after which the chain has no gap; `None` if the whole chain has no gap.
    lacks_before: Option<Position>,
}

impl Chain {
    /// Notes the start of the next file.
    fn begin(&mut self, follows: Position, is_first: bool) {
        if is_first {
            self.lacks_before = None;
        } else if self.end != Some(follows.number) {
            self.lacks_before = Some(follows);
        }
    }
}

/// Returns the position at which the filter was last known to be empty. Earlier records no longer
/// count.
pub(super) fn start(begun: &Begun) -> io::Result<Option<Position>> {
    let all = Snapshots::list(begun)?;
    Ok(all.sound.last().filter(|oldest| oldest.is_empty()).map(|oldest| oldest.first))
}

/// Reads the names and headers of an archive's files, but no fingerprints.
pub(super) fn standing(begun: &Begun) -> io::Result<Standing> {
    let (start, mut chain) = (self::start(begun)?, Chain::default());
    let mut is_after_log = false;
    for Part { name, follows, last, is_first } in files(begun)? {
        if start.is_some_and(|start| follows < start.number) {
            continue;
        }
        let Some(file) = sound_if_there(Segment::open(begun, &name))? else { continue };
        // The records are not read, so each file of the log is assumed to lead to the next file.
        if is_after_log {
            chain.end = Some(follows);
        }
        chain.begin(file.follows, is_first || start == Some(file.follows));
        (chain.end, is_after_log) = (Some(last), segment::follows(&name).is_some());
    }
    let files = begun.dir.list()?;
    let parts: Vec<_> = files.iter().filter(|file| is_part(file)).collect();
    Ok(Standing {
        is_on: is_on(&begun.dir)?,
        parts: parts.len() as u64,
        bytes: parts.iter().map(|part| part.len).sum(),
        lacks_before: chain.lacks_before,
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
