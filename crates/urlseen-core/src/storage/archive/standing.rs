//! The extent of an archive, from the ends of its files.

use std::collections::BTreeSet;
use std::io;

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
    let mut standing = Standing { is_on: super::is_on(dir)?, ..Standing::default() };
    let files = dir.list()?;
    let parts = files.iter().filter_map(|file| Some((super::follows(&file.name)?, file.len)));
    let parts: Vec<_> = parts.collect();
    let logs: BTreeSet<u64> = Segments::list(dir)?.iter().map(|(follows, _)| follows).collect();
    let numbers: BTreeSet<u64> =
        logs.iter().copied().chain(parts.iter().map(|&(number, _)| number)).collect();
    let (start, mut chain) = (self::start(dir, header)?, Chain::default());
    for (number, len) in parts {
        standing.parts += 1;
        standing.bytes += len;
        if let Some(part) = opened(Part::open(dir, &super::name(number), header.filter()))? {
            standing.fingerprints += part.fingerprints;
        }
    }
    let mut before = None;
    for number in numbers {
        if start.is_some_and(|start| number < start.number) {
            continue;
        }
        if logs.contains(&number) {
            let name = segment::name(number);
            let Some(log) = opened(Segment::open(dir, &name, header.filter()))? else { continue };
            let follows = log.follows();
            // This does not read the file's records: it assumes that they lead to the next file of
            // the log.
            if before == Some(true) {
                chain.end(follows);
            }
            chain.begin(follows, number == 0 || start == Some(follows));
            before = Some(true);
        } else {
            let name = super::name(number);
            let Some(part) = opened(Part::open(dir, &name, header.filter()))? else { continue };
            chain.begin(part.follows, part.is_first);
            chain.end(part.last);
            before = Some(false);
        }
    }
    standing.lacks_before = chain.lacks_before();
    Ok(standing)
}

/// Skips a file that cannot be read, or was pruned meanwhile.
fn opened<T, E>(result: io::Result<Result<T, E>>) -> io::Result<Option<T>> {
    match result {
        Ok(opened) => Ok(opened.ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
