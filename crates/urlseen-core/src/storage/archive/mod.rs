//! Archive: files that have every fingerprint that the filter let through. They are next to the
//! log.
//!
//! A file of the log holds the fingerprints of its records. The daemon removes the file when
//! snapshots cover its records. With an archive, the daemon first writes the fingerprints of the
//! file to a [part](part::Part). So the archive costs no write before a commit, and records that a
//! recovery cuts off never get into the archive. A part has the number of the log file that it
//! replaces. If the process is killed before it removes the file of the log, the folder has the
//! file and the part. Then only the file of the log counts. The newest fingerprints are only in the
//! log.
//!
//! The empty file `archive` marks a folder with an archive. A folder without that file loses the
//! fingerprints of pruned files. The loss later shows as a gap: a part or a file of the log does
//! not follow the one before.

mod part;
mod reader;
mod retire;
mod standing;

use std::io;

use super::dir::Dir;
use super::disk::Entry;

pub use reader::Archive;
pub(super) use retire::retire;
pub use standing::Standing;
pub(super) use standing::{standing, start};

/// The file that says that the folder has an archive.
pub(super) const NAME: &str = "archive";

const PREFIX: &str = "archive-";

/// Returns the name of the part that begins after record `follows`.
fn name(follows: u64) -> String {
    format!("{PREFIX}{:020}", follows + 1)
}

/// Returns the number of the last record before the part called `name`. Returns `None` if no part
/// can have this name.
pub(super) fn follows(name: &str) -> Option<u64> {
    let first: u64 = name.strip_prefix(PREFIX)?.parse().ok()?;
    let follows = first.checked_sub(1)?;
    (self::name(follows) == name).then_some(follows)
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
    follows(&file.name).is_some()
}
