//! Retention: the snapshots that stay, the log after them, and the archive.
//!
//! The log has every fingerprint that the filter let through. The daemon removes a file of the log
//! when snapshots cover its records. With an archive, it renames the file instead. So the archive
//! costs no write before a commit, has the format of the log, and gets no records that a recovery
//! cuts off. After a kill, a file is either in the log or in the archive.
//!
//! The empty file `archive` marks a folder with an archive. A folder without that file loses the
//! fingerprints of pruned files. The loss later shows as a gap: a file names another one before it.

use std::collections::BTreeSet;
use std::io;

use serde::Serialize;

use super::clock::Moment;
use super::disk::{Dir, FolderEntry};
use super::error::{Damage, ReadError};
use super::head::Position;
use super::header::Begun;
use super::history::Segments;
use super::segment::{self, Segment};
use super::snapshot::Snapshots;

/// Minimum number of snapshots to keep.
const SNAPSHOTS: usize = 3;

/// Limits on how far back in time a folder must be able to recover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The folder must be able to recover to every state since this moment. `None` keeps the oldest
    /// snapshot.
    pub horizon: Option<Moment>,
    /// Maximum size of all files together, in bytes. This limit takes precedence over the horizon.
    pub horizon_bytes: u64,
}

/// Removes the snapshots that no recovery needs, and then [retires](retire) the files of
/// the log that end before the first position of the kept snapshots. In this order, no snapshot
/// ever lacks its log on the disk. Returns true if `horizon_bytes` forced the removal of snapshots
/// that would otherwise stay.
pub(super) fn prune(begun: &Begun, retention: &Retention, now: Moment) -> io::Result<bool> {
    let dir = &begun.dir;
    let listed = Snapshots::list(begun)?;
    let all = &listed.sound;
    let files = dir.list()?;
    let segments = Segments::list(begun)?;
    // The limit does not apply to the archive.
    let total: u64 = files.iter().filter(|file| !is_archived(file)).map(|file| file.len).sum();
    let start = listed.empty_start();

    let ages: Vec<Moment> = all.iter().map(|snapshot| snapshot.existed(now)).collect();
    let mut kept = needed(&ages, retention.horizon);
    let mut cut_by_bytes = false;
    let (mut snapshots, mut logs);
    loop {
        let is_kept = |name: &str| kept.iter().any(|&index| all[index].name == name);
        snapshots = listed.useless().cloned().collect::<BTreeSet<_>>();
        snapshots.extend(all.iter().map(|each| each.name.clone()).filter(|name| !is_kept(name)));
        let first = kept.iter().map(|&index| all[index].first.number).min().unwrap_or(0);
        logs = covered(&segments, first);
        let is_gone = |follows| logs.contains(&follows);
        let gone =
            |name: &String| snapshots.contains(name) || segment::follows(name).is_some_and(is_gone);
        let pruned = files.iter().filter(|file| gone(&file.name)).map(|file| file.len).sum();
        if kept.len() < 2 || total.saturating_sub(pruned) <= retention.horizon_bytes {
            break;
        }
        kept.pop_last();
        cut_by_bytes = true;
    }
    retire(begun, &snapshots, &logs, has_archive(dir)?, start)?;
    Ok(cut_by_bytes)
}

/// Selects the snapshots that are needed to go back to `horizon`, now and later. `ages` has one
/// entry for each snapshot, newest first; the result has indexes of `ages`. The selected snapshots
/// are the newest three, the newest one that is known to be older than `horizon`, and the oldest of
/// those that are not: when the horizon has passed it, all before it can go.
fn needed(ages: &[Moment], horizon: Option<Moment>) -> BTreeSet<usize> {
    let is_older = |age: &Moment| horizon.is_some_and(|horizon| age.is_before(horizon));
    let older = ages.iter().position(is_older).unwrap_or(ages.len());
    let mut kept: BTreeSet<usize> = (0..ages.len().min(SNAPSHOTS)).collect();
    kept.extend(older.checked_sub(1));
    kept.extend((older < ages.len()).then_some(older));
    kept
}

/// Returns the files of the log that only have records up to `number`. The last file is never among
/// them, because the log appends to it.
fn covered(segments: &Segments<'_>, number: u64) -> Vec<u64> {
    let files = segments.files.keys();
    let covered = files.clone().zip(files.skip(1)).take_while(|&(_, &next)| next <= number);
    covered.map(|(&follows, _)| follows).collect()
}

/// The file that says that the folder has an archive.
pub(super) const ARCHIVE: &str = "archive";

/// Size of a folder's archive, and completeness of archive and log together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ArchiveState {
    /// True if files pruned from the log go to the archive.
    pub is_on: bool,
    /// Number of the archive's files.
    pub parts: u64,
    /// Bytes of all these files.
    pub bytes: u64,
    /// Position after which the archive and the log together are complete. `None` if they have all
    /// fingerprints of the filter.
    pub lacks_before: Option<Position>,
}

/// Returns true if the folder has an archive.
pub(super) fn has_archive(dir: &Dir) -> io::Result<bool> {
    Ok(dir.inode(ARCHIVE)?.is_some())
}

/// Turns the archive on or off. An archive that is turned off keeps its files.
pub(super) fn turn_archive(dir: &Dir, on: bool) -> io::Result<()> {
    if has_archive(dir)? == on {
        return Ok(());
    }
    if on {
        dir.create(ARCHIVE)?.sync()?;
    } else {
        dir.remove(ARCHIVE)?;
    }
    dir.sync()
}

/// Removes all files of the archive. The caller empties the filter.
pub(super) fn clear_archive(dir: &Dir) -> io::Result<()> {
    for file in dir.list()?.iter().filter(|file| is_archived(file)) {
        dir.remove(&file.name)?;
    }
    dir.sync()
}

/// Returns true for a file of the archive.
pub(super) fn is_archived(file: &FolderEntry) -> bool {
    segment::archived(&file.name).is_some()
}

/// Reads names and headers of the archive and of the log, but no records.
pub(super) fn archive_state(begun: &Begun) -> io::Result<ArchiveState> {
    let files = begun.dir.list()?;
    let archived: Vec<_> = files.iter().filter(|file| is_archived(file)).collect();
    Ok(ArchiveState {
        is_on: has_archive(&begun.dir)?,
        parts: archived.len() as u64,
        bytes: archived.iter().map(|file| file.len).sum(),
        lacks_before: follow(begun, u64::MAX, |_| Ok(()))?.0,
    })
}

/// Gives the files of the archive and of the log that begin before record `until` to `read`, in the
/// order of their records. Returns the position after which each file names the one before, and the
/// damage of the files that cannot be read.
pub(super) fn follow(
    begun: &Begun,
    until: u64,
    mut read: impl FnMut(&mut Segment) -> Result<(), ReadError>,
) -> io::Result<(Option<Position>, Vec<Damage>)> {
    // Older records belong to a filter that was emptied.
    let start = Snapshots::list(begun)?.empty_start().map_or(0, |start| start.number);
    let number = |name: &str| segment::follows(name).or_else(|| segment::archived(name));
    let files = begun.dir.list()?.into_iter();
    let mut files: Vec<_> = files.filter_map(|it| Some((number(&it.name)?, it.name))).collect();
    files.retain(|(follows, _)| (start..until).contains(follows));
    files.sort();
    let (mut before, mut lacks_before) = (0, None);
    let damaged = segment::each(begun, files.into_iter().map(|(_, name)| name), |mut file| {
        if file.before != std::mem::take(&mut before) {
            lacks_before = Some(file.follows);
        }
        read(&mut file)?;
        before = file.follows.number + 1;
        Ok(())
    })?;
    Ok((lacks_before, damaged))
}

/// Removes snapshots, and then files of the log, oldest first. So no snapshot ever lacks its log on
/// the disk. If `keeps` is true, moves the files to the archive, except for those before `start`,
/// the position at which the filter was last known to be empty. After a failure, the next call
/// continues with the files that are left.
pub(super) fn retire(
    begun: &Begun,
    snapshots: &BTreeSet<String>,
    logs: &[u64],
    keeps: bool,
    start: Option<Position>,
) -> io::Result<()> {
    let dir = &begun.dir;
    for name in snapshots {
        dir.remove(name)?;
    }
    if !snapshots.is_empty() {
        dir.sync()?;
    }
    for &follows in logs {
        if keeps && start.is_none_or(|start| follows >= start.number) {
            dir.rename(&segment::name(follows), &segment::archived_name(follows))?;
        } else {
            dir.remove(&segment::name(follows))?;
        }
    }
    if logs.is_empty() { Ok(()) } else { dir.sync() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::new("boot", Duration::from_secs(seconds))
    }

    proptest! {
        #[test]
        fn any_sequence_of_snapshots_reaches_back_to_the_horizon_with_few_of_them(
            intervals in prop::collection::vec(1_u64..40, 1..400),
            lag in 1_u64..200,
        ) {
            let (mut now, mut times) = (1_000, vec![1_000]);
            for interval in intervals {
                now += interval;
                times.insert(0, now);
                let ages: Vec<Moment> = times.iter().map(|&time| at(time)).collect();
                let kept = needed(&ages, Some(at(now - lag)));
                times = kept.into_iter().map(|index| times[index]).collect();
                let oldest = *times.last().unwrap();
                prop_assert!(oldest < now - lag || oldest == 1_000, "{times:?} at {now}");
                prop_assert!(times.len() <= SNAPSHOTS + 2, "{times:?} at {now}");
                // The length of the log.
                prop_assert!(now - oldest <= 2 * lag + 4 * 40, "{times:?} at {now}");
            }
        }
    }
}
