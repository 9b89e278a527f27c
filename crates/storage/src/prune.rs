//! Retention of snapshots and of the log after them.

use std::collections::BTreeSet;
use std::io;

use super::archive;
use super::clock::Moment;
use super::header::Begun;
use super::history::Segments;
use super::segment;
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

/// Removes the snapshots that no recovery needs, and then [retires](archive::retire) the files of
/// the log that end before the first position of the kept snapshots. In this order, no snapshot
/// ever lacks its log on the disk. Returns the names of all these files, snapshots first, and true
/// if `horizon_bytes` forced the removal of snapshots that would otherwise stay.
pub(super) fn prune(
    begun: &Begun,
    retention: &Retention,
    now: Moment,
) -> io::Result<(Vec<String>, bool)> {
    let dir = &begun.dir;
    let listed = Snapshots::list(begun)?;
    let all = &listed.sound;
    let files = dir.list()?;
    let segments = Segments::list(begun)?;
    // The limit does not apply to the archive.
    let total: u64 = files.iter().filter(|file| !archive::is_part(file)).map(|file| file.len).sum();
    let is_archived = archive::is_on(dir)?;
    let start = if is_archived { archive::start(begun)? } else { None };

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
    for name in &snapshots {
        dir.remove(name)?;
    }
    if !snapshots.is_empty() {
        dir.sync()?;
    }
    archive::retire(begun, &logs, is_archived, start)?;
    let files = snapshots.into_iter().chain(logs.iter().map(|&log| segment::name(log))).collect();
    Ok((files, cut_by_bytes))
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
