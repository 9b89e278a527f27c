//! The extent of an archive, from the ends of its files.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::super::damage::sound_if_there;
use super::super::dir::Dir;
use super::super::header::Header;
use super::super::history::Segments;
use super::super::segment::{self, Segment};
use super::super::snapshot::Snapshots;
use super::part::Part;
use crate::storage::head::Position;

/// Share of the filter's fingerprints in a folder's archive and log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// True if files pruned from the log go to the archive.
    pub is_on: bool,
    /// Number of the archive's parts.
    pub parts: u64,
    /// Bytes of all these parts.
    pub bytes: u64,
    /// Fingerprints in them that were let through.
    pub fingerprints: u64,
    /// Position after which archive and log have everything; `None` if they have all fingerprints
    /// of the filter.
    pub lacks_before: Option<Position>,
}

/// Checks that each part or file of the log follows the one before.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// End of the file before.
    end: Option<Position>,
    lacks_before: Option<Position>,
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

    /// Notes the end of the file.
    pub(super) fn end(&mut self, last: Position) {
        self.end = Some(last);
    }

    pub(super) fn lacks_before(&self) -> Option<Position> {
        self.lacks_before
    }
}

/// Returns the position at which the filter was last known to be empty. Earlier records no longer
/// count.
pub(in crate::storage) fn start(dir: &Dir, header: &Header) -> io::Result<Option<Position>> {
    let all = Snapshots::list(dir, header)?;
    let Some(oldest) = all.sound.last() else { return Ok(None) };
    match oldest.is_empty(dir, header) {
        // The daemon pruned it meanwhile: the later snapshots are not of an empty filter.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        is_empty => Ok(is_empty?.then_some(oldest.first)),
    }
}

/// Reads the ends of an archive's files, but no fingerprints.
pub(in crate::storage) fn standing(dir: &Dir, header: &Header) -> io::Result<Standing> {
    let files = dir.list()?;
    let parts = files.iter().filter_map(|file| Some((super::follows(&file.name)?, file.len)));
    let parts: BTreeMap<u64, u64> = parts.collect();
    let logs: BTreeSet<u64> = Segments::list(dir)?.iter().map(|(follows, _)| follows).collect();
    let (start, mut chain) = (self::start(dir, header)?, Chain::default());
    let (mut fingerprints, mut is_after_log) = (0, false);
    for number in &logs | &parts.keys().copied().collect() {
        let part = || sound_if_there(Part::open(dir, &super::name(number), header.filter()));
        let part = if parts.contains_key(&number) { part()? } else { None };
        fingerprints += part.as_ref().map_or(0, |part| part.fingerprints);
        if start.is_some_and(|start| number < start.number) {
            continue;
        }
        if logs.contains(&number) {
            let log = Segment::open(dir, &segment::name(number), header.filter());
            let Some(log) = sound_if_there(log)? else { continue };
            let follows = log.follows();
            // Records are not read: a file of the log counts as leading to the next one.
            if is_after_log {
                chain.end(follows);
            }
            chain.begin(follows, number == 0 || start == Some(follows));
            is_after_log = true;
        } else if let Some(part) = part {
            chain.begin(part.follows, part.is_first);
            chain.end(part.last);
            is_after_log = false;
        }
    }
    Ok(Standing {
        is_on: super::is_on(dir)?,
        parts: parts.len() as u64,
        bytes: parts.values().sum(),
        fingerprints,
        lacks_before: chain.lacks_before(),
    })
}
