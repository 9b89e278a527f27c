//! Retention of snapshots and of the log after them.

use std::collections::BTreeSet;
use std::io;

use super::ages;
use super::archive;
use super::begun::Begun;
use super::clock::Moment;
use super::history::Segments;
use super::segment;
use super::snapshot::Snapshots;
use crate::storage::head::Position;

/// Minimum number of snapshots to keep.
const SNAPSHOTS: usize = 3;

/// Limits on how far back in time a folder must be able to recover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The folder must be able to recover to every state since this moment. So it keeps the newest
    /// three snapshots, and the newest one that is known to be older than the moment. `None` keeps
    /// the oldest snapshot.
    pub horizon: Option<Moment>,
    /// Maximum size of all files together, in bytes. This limit takes precedence over the horizon.
    pub horizon_bytes: u64,
}

/// Result of pruning a folder.
#[derive(Debug)]
pub(super) struct Pruned {
    /// Names of all files that are no longer needed, snapshots first.
    pub(super) files: Vec<String>,
    /// True if `horizon_bytes` forced the removal of snapshots that would otherwise stay.
    pub(super) cut_by_bytes: bool,
    /// Files of the log that are still to be removed.
    pub(super) logs: Vec<String>,
    /// True if the folder has an archive.
    pub(super) is_archived: bool,
    /// Position at which the filter was last known to be empty.
    pub(super) start: Option<Position>,
}

/// Removes the snapshots that no recovery needs. The result names the files of the log that end
/// before the first position of the kept snapshots. The caller [retires](archive::retire) these
/// files. In this order, no snapshot ever lacks its log on the disk.
pub(super) fn prune(begun: &Begun, retention: &Retention, now: Moment) -> io::Result<Pruned> {
    let dir = &begun.dir;
    let listed = Snapshots::list(begun)?;
    let all = &listed.sound;
    let files = dir.list()?;
    let segments = Segments::list(begun)?;
    // The limit does not apply to the archive.
    let total: u64 = files.iter().filter(|file| !archive::is_part(file)).map(|file| file.len).sum();
    let is_archived = archive::is_on(dir)?;
    let start = if is_archived { archive::start(begun)? } else { None };

    let mut kept = needed(&ages::record(dir, all, now), retention.horizon);
    let mut cut_by_bytes = false;
    let (mut snapshots, mut logs);
    loop {
        let is_kept = |name: &str| kept.iter().any(|&index| all[index].name == name);
        snapshots = listed.useless().cloned().collect::<BTreeSet<_>>();
        snapshots.extend(all.iter().map(|each| each.name.clone()).filter(|name| !is_kept(name)));
        let first = kept.iter().map(|&index| all[index].first.number).min().unwrap_or(0);
        logs = covered(&segments, first);
        let gone = |name: &String| snapshots.contains(name) || logs.contains(name);
        let pruned = files.iter().filter(|file| gone(&file.name)).map(|file| file.len).sum();
        if kept.len() < 2 || total.saturating_sub(pruned) <= retention.horizon_bytes {
            break;
        }
        kept.pop_last();
        cut_by_bytes = true;
    }
    for name in &snapshots {
        dir.remove(name)?;
    }
    if !snapshots.is_empty() {
        dir.sync()?;
    }
    let files = snapshots.into_iter().chain(logs.iter().cloned()).collect();
    Ok(Pruned { files, cut_by_bytes, logs, is_archived, start })
}

/// Selects the snapshots that are needed to go back to `horizon`. `ages` has one entry for each
/// snapshot, newest first; the result has indexes of `ages`. The selected snapshots are the newest
/// three, and the newest one that is known to be older than `horizon`. If no snapshot is known to
/// be older, the oldest is selected.
fn needed(ages: &[Moment], horizon: Option<Moment>) -> BTreeSet<usize> {
    let mut kept: BTreeSet<usize> = (0..ages.len().min(SNAPSHOTS)).collect();
    let is_older = |age: &Moment| horizon.is_some_and(|horizon| age.is_before(horizon));
    kept.extend(ages.iter().position(is_older).or(ages.len().checked_sub(1)));
    kept
}

/// Returns the files of the log that only have records up to `number`. The last file is never among
/// them, because the log appends to it.
fn covered(segments: &Segments<'_>, number: u64) -> Vec<String> {
    let files = segments.files.keys();
    let covered = files.clone().zip(files.skip(1)).take_while(|&(_, &next)| next <= number);
    covered.map(|(&follows, _)| segment::name(follows)).collect()
}
