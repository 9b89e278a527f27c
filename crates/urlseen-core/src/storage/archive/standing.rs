//! Size and completeness of an archive, read from the headers and trailers of its files.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::Serialize;

use super::super::begun::Begun;
use super::super::damage::sound_if_there;
use super::super::history::Segments;
use super::super::snapshot::Snapshots;
use super::part::Part;
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
    /// Number of fingerprints in the parts: those that the filter let through.
    pub fingerprints: u64,
    /// Position after which the archive and the log together are complete. `None` if they have all
    /// fingerprints of the filter.
    pub lacks_before: Option<Position>,
}

/// Checks that the parts of the archive and the files of the log form a chain without a gap.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// End of the previous part or file.
    pub(super) end: Option<Position>,
    /// Position after which the chain has no gap; `None` if the whole chain has no gap.
    pub(super) lacks_before: Option<Position>,
}

impl Chain {
    /// Notes the start of the next file.
    pub(super) fn begin(&mut self, follows: Position, is_first: bool) {
        if is_first {
            self.lacks_before = None;
        } else if self.end != Some(follows) {
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

/// Reads the headers and trailers of an archive's files, but no fingerprints.
pub(in crate::storage) fn standing(begun: &Begun) -> io::Result<Standing> {
    let files = begun.dir.list()?;
    let parts = files.iter().filter_map(|file| Some((super::follows(&file.name)?, file.len)));
    let parts: BTreeMap<u64, u64> = parts.collect();
    let segments = Segments::list(begun)?;
    let (start, mut chain) = (self::start(begun)?, Chain::default());
    let (mut fingerprints, mut is_after_log) = (0_u64, false);
    let numbers: BTreeSet<u64> = parts.keys().chain(segments.files.keys()).copied().collect();
    for number in numbers {
        let part = || sound_if_there(Part::open(begun, number));
        let part = if parts.contains_key(&number) { part()? } else { None };
        let of_part = part.as_ref().map_or(0, |part| part.fingerprints);
        fingerprints = of_part.saturating_add(fingerprints);
        if start.is_some_and(|start| number < start.number) {
            continue;
        }
        if segments.files.contains_key(&number) {
            let Some(log) = sound_if_there(segments.open(number))? else { continue };
            // The records are not read, so each file of the log is assumed to lead to the next
            // file.
            if is_after_log {
                chain.end = Some(log.follows);
            }
            chain.begin(log.follows, number == 0 || start == Some(log.follows));
            is_after_log = true;
        } else if let Some(part) = part {
            chain.begin(part.follows, part.is_first);
            chain.end = Some(part.last);
            is_after_log = false;
        }
    }
    Ok(Standing {
        is_on: super::is_on(&begun.dir)?,
        parts: parts.len() as u64,
        bytes: parts.values().sum(),
        fingerprints,
        lacks_before: chain.lacks_before,
    })
}
