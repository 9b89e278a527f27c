//! Replaces pruned files of the log by parts of the archive.

use std::io;

use super::super::begun::Begun;
use super::super::damage::sound;
use super::super::dir::aside;
use super::super::lock::Tenure;
use super::super::segment::Segment;
use super::part::PartWriter;
use crate::storage::head::Position;

/// Removes files of the log, oldest first. If `is_archived` is true, replaces them by parts. After
/// a failure, the next call continues with the files that are left.
///
/// No lock is held while a part is written, so the daemon continues to log batches. `start` is the
/// position at which the filter was last known to be empty. Records before it no longer count.
pub(in crate::storage) fn retire(
    begun: &Begun,
    logs: &[String],
    is_archived: bool,
    start: Option<Position>,
    tenure: &Tenure,
) -> io::Result<()> {
    let dir = &begun.dir;
    for log in logs {
        let part = if is_archived { write(begun, log, start)? } else { None };
        // A recovery may have made a new file with the same name meanwhile. Then `still` fails, and
        // the new file stays.
        let _turn = tenure.still()?;
        if let Some(part) = part {
            dir.replace(&part)?;
            dir.sync()?;
        }
        dir.remove(log)?;
    }
    if logs.is_empty() { Ok(()) } else { dir.sync() }
}

/// Writes and syncs the part of a file of the log under a temporary name. Returns the final name.
/// Returns `None` if no record of the file counts.
fn write(begun: &Begun, log: &str, start: Option<Position>) -> io::Result<Option<String>> {
    let Some(mut segment) = sound(Segment::open(begun, log))? else { return Ok(None) };
    let follows = segment.follows;
    if start.is_some_and(|start| follows.number < start.number) {
        return Ok(None);
    }
    let name = super::name(follows.number);
    let mut part = PartWriter::begin(begun, &aside(&name), follows)?;
    // The part ends before the first damaged byte. The next file then does not follow the part, so
    // a gap shows.
    while let Some(Some(entry)) = sound(segment.next())? {
        entry.changes().try_for_each(|(change, fingerprint)| part.push(change, &fingerprint))?;
    }
    let is_first = follows.number == 0 || start == Some(follows);
    part.finish(segment.position, is_first)?;
    Ok(Some(name))
}
