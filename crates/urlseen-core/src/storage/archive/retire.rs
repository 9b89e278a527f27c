//! Removes pruned files from the log, or moves them to the archive.

use std::io;

use super::super::begun::Begun;
use super::super::history::Segments;
use super::super::lock::Tenure;
use super::super::record::HEAD;
use super::super::segment;
use super::Part;
use crate::storage::head::Position;

/// Removes files of the log, oldest first. If `is_archived` is true, moves them to the archive.
/// After a failure, the next call continues with the files that are left.
///
/// `start` is the position at which the filter was last known to be empty. Records before it no
/// longer count.
pub(in crate::storage) fn retire(
    begun: &Begun,
    logs: &[u64],
    is_archived: bool,
    start: Option<Position>,
    tenure: &Tenure,
) -> io::Result<()> {
    let dir = &begun.dir;
    for &follows in logs {
        // A recovery may have made a new file with the same name meanwhile. Then `still` fails, and
        // the new file stays.
        let _turn = tenure.still()?;
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
