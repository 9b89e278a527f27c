//! Size and completeness of an archive, read from the names and headers of its files.

use std::io;

use serde::Serialize;

use super::super::begun::Begun;
use super::super::damage::sound_if_there;
use super::super::segment::{self, Segment};
use super::super::snapshot::Snapshots;
use super::{Part, files, is_part};
use crate::storage::head::Position;

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
pub(super) struct Chain {
    /// Number of the last record of the previous part or file.
    pub(super) end: Option<u64>,
    /// Position after which the chain has no gap; `None` if the whole chain has no gap.
    pub(super) lacks_before: Option<Position>,
}

impl Chain {
    /// Notes the start of the next file.
    pub(super) fn begin(&mut self, follows: Position, is_first: bool) {
        if is_first {
            self.lacks_before = None;
        } else if self.end != Some(follows.number) {
            self.lacks_before = Some(follows);
        }
    }
}

/// Returns the position at which the filter was last known to be empty. Earlier records no longer
/// count.
pub(in crate::storage) fn start(begun: &Begun) -> io::Result<Option<Position>> {
    let all = Snapshots::list(begun)?;
    let Some(oldest) = all.sound.last() else { return Ok(None) };
    match oldest.is_empty(begun) {
        // The daemon pruned this snapshot meanwhile. Later snapshots are not of an empty filter.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        is_empty => Ok(is_empty?.then_some(oldest.first)),
    }
}

/// Reads the names and headers of an archive's files, but no fingerprints.
pub(in crate::storage) fn standing(begun: &Begun) -> io::Result<Standing> {
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
        is_on: super::is_on(&begun.dir)?,
        parts: parts.len() as u64,
        bytes: parts.iter().map(|part| part.len).sum(),
        lacks_before: chain.lacks_before,
    })
}
