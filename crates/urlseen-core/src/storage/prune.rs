//! Retention of snapshots and of the log after them.

use std::collections::BTreeSet;
use std::io;

use super::ages;
use super::archive;
use super::clock::Moment;
use super::dir::Dir;
use super::header::Header;
use super::history::Segments;
use super::segment;
use super::snapshot::Snapshots;
use crate::storage::head::Position;

/// Least number of snapshots that are kept.
const SNAPSHOTS: usize = 3;

/// Past that a folder must be able to recover to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The folder keeps the newest snapshot known to be older than this, in addition to the newest
    /// three. `None` keeps the oldest.
    pub horizon: Option<Moment>,
    /// Maximum size of all files together, in bytes. This limit takes precedence over the horizon.
    pub horizon_bytes: u64,
}

/// Result of pruning a folder.
#[derive(Debug)]
pub(super) struct Pruned {
    /// Names of the dropped files, snapshots first.
    pub(super) files: Vec<String>,
    /// True if the limit of bytes made the folder reach back less far than it should.
    pub(super) cut_by_bytes: bool,
    /// Files of the log that are to be archived before they go.
    pub(super) retiring: Vec<String>,
    /// Position at which the filter was last known to be empty.
    pub(super) start: Option<Position>,
}

/// Drops snapshots that are not needed any more, and files of the log that end before the first
/// position of the others. The snapshots go first, on the disk, so that none is left without its
/// log. With an archive, the files of the log are only named.
pub(super) fn prune(
    dir: &Dir,
    header: &Header,
    retention: &Retention,
    now: Moment,
) -> io::Result<Pruned> {
    let listed = Snapshots::list(dir, header)?;
    let all = &listed.sound;
    let files = dir.list()?;
    let segments = Segments::list(dir)?;
    // The limit does not apply to the archive.
    let total: u64 = files.iter().filter(|file| !archive::is_part(file)).map(|file| file.len).sum();
    let has_archive = archive::is_on(dir)?;
    let start = if has_archive { archive::start(dir, header)? } else { None };

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
    let retiring = if has_archive { logs.clone() } else { Vec::new() };
    if !has_archive && !logs.is_empty() {
        logs.iter().try_for_each(|name| dir.remove(name))?;
        dir.sync()?;
    }
    let pruned = snapshots.into_iter().chain(logs).collect();
    Ok(Pruned { files: pruned, cut_by_bytes, retiring, start })
}

/// Selects the snapshots that are needed to go back to `horizon`, by their indexes in `ages`,
/// newest first. These are the newest three, and the newest that is known to be older than
/// `horizon`. If none is known to be older, the oldest stays.
fn needed(ages: &[Moment], horizon: Option<Moment>) -> BTreeSet<usize> {
    let mut kept: BTreeSet<usize> = (0..ages.len().min(SNAPSHOTS)).collect();
    let is_older = |age: &Moment| horizon.is_some_and(|horizon| age.is_before(horizon));
    kept.extend(ages.iter().position(is_older).or(ages.len().checked_sub(1)));
    kept
}

/// Returns the files of the log that only have records up to `number`. The last file is never one
/// of them: the log appends to it.
fn covered(segments: &Segments, number: u64) -> Vec<String> {
    let files = segments.iter().map(|(follows, _)| follows);
    let next = files.clone().skip(1);
    files
        .zip(next)
        .take_while(|&(_, next)| next <= number)
        .map(|(follows, _)| segment::name(follows))
        .collect()
}
