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
mod retire;
mod standing;

use std::io;

use super::begun::Begun;
use super::dir::Dir;
use super::disk::Entry;
use super::segment;

pub use reader::Archive;
pub(super) use retire::retire;
pub use standing::Standing;
pub(super) use standing::{standing, start};

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
    let files = dir.list()?;
    let mut parts = files.iter().filter(|file| is_part(file)).peekable();
    if parts.peek().is_none() {
        return Ok(());
    }
    parts.try_for_each(|part| dir.remove(&part.name))?;
    dir.sync()
}

/// Returns true if a file is a part.
pub(super) fn is_part(file: &Entry) -> bool {
    Part::named(&file.name).is_some()
}
