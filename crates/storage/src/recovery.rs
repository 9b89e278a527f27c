//! Recovery of a filter from a snapshot and the log after it.
//!
//! 1. A snapshot is usable if its `last` is not after the target, and the log leads from `first`
//!    through `last` to the target. Every record must be whole and follow the one before. The
//!    newest usable snapshot is loaded. If it is damaged, the next older one is loaded.
//! 2. The log after `first` is replayed: the batches up to the target, and all adds, forgets and
//!    generations.
//! 3. Then [`cut`] drops all batches and all snapshots after the target. Before that, nothing is
//!    written.
//!
//! A snapshot whose shards all have one position needs no log. A folder begins with a snapshot of
//! this kind, and [`Rebase`](super::Rebase) leaves one.

use std::collections::BTreeMap;
use std::io;

use super::cut;
use super::error::{Damage, Lost, ReadError, RecoveryError, sound};
use super::header::Begun;
use super::history::{LogPlace, SegmentScan, Segments, Target, Walk};
use super::record::RecordKind;
use super::restore::Restore;
use super::segment::LogEntry;
use super::snapshot::{Snapshot, Snapshots};
use crate::head::{Head, Position};

/// Result of recovering a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// Position of the filter and end of the log.
    pub position: Position,
    /// File name of the loaded snapshot.
    pub snapshot: String,
    /// Bytes of that snapshot.
    pub snapshot_bytes: u64,
    /// Records of the log that were replayed.
    pub records: u64,
    /// Fingerprints in these records.
    pub fingerprints: u64,
    /// Number of batches that were dropped, because Redis does not know them.
    pub dropped: u64,
    /// Damage of the log, of the snapshots that were skipped, and of the notes. The damaged data
    /// was deleted.
    pub damaged: Vec<Damage>,
}

/// Snapshot that leads to a target, and the log after it.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) snapshot: Snapshot,
    pub(super) scan: SegmentScan,
    /// Damage of the snapshots that were skipped.
    pub(super) damaged: Vec<Damage>,
    /// Head that the snapshot leads to.
    pub(super) head: Head,
    /// All snapshots of the folder.
    all: Snapshots,
}

impl Way {
    /// Replays the log after the snapshot: all records except the batches after the head.
    pub(super) fn replay(
        &self,
        begun: &Begun,
        mut visit: impl FnMut(LogEntry),
    ) -> io::Result<Walk> {
        Segments::list(begun)?.walk(self.snapshot.first, |_, entry| {
            if entry.head.counts_at(self.head.seq) {
                visit(entry);
            }
        })
    }

    /// Replays the log like `Way::replay`, and checks that the log did not change since it was
    /// scanned. During the call, no other process must write to the folder.
    ///
    /// # Errors
    /// If another process changed the log meanwhile.
    pub(super) fn replay_all(
        &self,
        begun: &Begun,
        visit: impl FnMut(LogEntry),
    ) -> io::Result<Walk> {
        let walk = self.replay(begun, visit)?;
        if walk.end != self.scan.walk.end {
            return Err(io::Error::other("the log changed while it was read"));
        }
        Ok(walk)
    }
}

/// Finds the newest snapshot that leads to `target` and that `load` accepts. Refuses a damaged log.
pub(super) fn find<T>(
    begun: &Begun,
    target: Target,
    load: impl FnMut(&Snapshot, &SegmentScan) -> Result<T, ReadError>,
) -> Result<(Way, T), RecoveryError> {
    let (way, loaded) = find_past_damage(begun, target, load)?;
    match (&way.scan.walk.damage, way.scan.walk.lost) {
        (Some(damage), Some(lost)) => Err(RecoveryError::Damaged { damage: damage.clone(), lost }),
        _ => Ok((way, loaded)),
    }
}

/// Finds the newest snapshot that leads to `target` and that `load` accepts. The log may be damaged
/// after the target.
fn find_past_damage<T>(
    begun: &Begun,
    target: Target,
    mut load: impl FnMut(&Snapshot, &SegmentScan) -> Result<T, ReadError>,
) -> Result<(Way, T), RecoveryError> {
    let segments = Segments::list(begun)?;
    let all = Snapshots::list(begun)?;
    let mut damaged = all.damaged.clone();
    let mut refused = Vec::new();
    for snapshot in &all.sound {
        if matches!(target, Target::At(target) if snapshot.last.head.seq > target.seq) {
            continue;
        }
        let (first, last) = (snapshot.first, snapshot.last);
        let scan = SegmentScan::new(&segments, first, target, last.number)?;
        let leads = scan.walk.other.is_none() && scan.at_number == Some(last.head);
        let head = match target {
            Target::At(target) => target,
            Target::Last => scan.walk.end.head,
        };
        if !leads || !scan.is_reached {
            refused.push((snapshot, leads, scan));
            continue;
        }
        match load(snapshot, &scan) {
            Ok(loaded) => {
                let snapshot = snapshot.clone();
                return Ok((Way { snapshot, scan, damaged, head, all }, loaded));
            }
            Err(error) => damaged.push(error.damage()?),
        }
    }
    Err(refusal(begun, target, &all.sound, &refused, &damaged)?)
}

/// Returns the damage of the log from which on the newest state of the folder lacks records.
pub(super) fn damage(begun: &Begun) -> Result<Option<(Damage, Lost)>, RecoveryError> {
    let (way, _) = find_past_damage(begun, Target::Last, |it, _| it.check(begun, |_| true))?;
    let walk = way.scan.walk;
    Ok(walk.damage.zip(walk.lost))
}

/// Ends the log before its [damage](damage()), and keeps copies of the damaged and all later files.
pub(super) fn cut_at_damage(begun: &Begun) -> Result<(), RecoveryError> {
    let (way, _) = find_past_damage(begun, Target::Last, |it, _| it.check(begun, |_| true))?;
    let (segments, plan) = (Segments::list(begun)?, &way.scan.plan);
    cut::copy_aside(&segments, plan.place.map_or(plan.end.number, |place| place.file))?;
    cut::apply(&segments, plan, &[])?;
    Ok(())
}

/// Returns the error if no snapshot leads to the target. `refused` has the snapshots at or before
/// the target, newest first. Each has true if the log leads from its first to its last position,
/// and the scan of the log.
fn refusal(
    begun: &Begun,
    target: Target,
    all: &[Snapshot],
    refused: &[(&Snapshot, bool, SegmentScan)],
    damaged: &[Damage],
) -> io::Result<RecoveryError> {
    let is_sound = |snapshot: &&Snapshot| damaged.iter().all(|each| each.file != snapshot.name);
    let oldest = all.iter().filter(is_sound).map(|it| it.last.head).min_by_key(|it| it.seq);
    let in_log = refused.iter().filter(|_| target != Target::Last);
    let in_log = in_log.filter_map(|(.., scan)| scan.walk.damage.as_ref());
    let damage = in_log.chain(damaged).next().cloned();
    let (Target::At(target), Some(oldest)) = (target, oldest) else {
        return Ok(RecoveryError::NoSnapshot { damage });
    };
    // Even a snapshot without its log proves that its last batch happened.
    let other = refused.iter().find_map(|(snapshot, leads, scan)| {
        let last = snapshot.last.head;
        scan.other.or((!leads && last.seq == target.seq && last != target).then_some(last))
    });
    if let Some(ours) = other {
        return Ok(RecoveryError::OtherHistory { target, ours });
    }
    let ends = refused.iter().map(
        |(snapshot, leads, scan)| {
            if *leads { scan.walk.end.head } else { snapshot.last.head }
        },
    );
    let before = ends.filter(|end| end.seq < target.seq);
    let Some(end) = before.reduce(|one, next| if next.seq > one.seq { next } else { one }) else {
        let is_beyond = oldest.seq > target.seq;
        return Ok(if is_beyond {
            RecoveryError::Beyond { target, oldest, damage }
        } else {
            RecoveryError::NoSnapshot { damage }
        });
    };
    let mut best = None;
    for (snapshot, _, scan) in refused.iter().filter(|(_, leads, _)| *leads) {
        if best.is_none() && sound(snapshot.check(begun, |_| true))?.is_some() {
            best = Some(scan.walk.end.head);
        }
    }
    let missing = target.seq - best.unwrap_or(end).seq;
    Ok(RecoveryError::Behind { target, end, missing, damage, best })
}

/// Recovers `filter` to `target`, and drops all later batches. Returns the result, and the file
/// that the log continues in.
pub(super) fn recover(
    begun: &Begun,
    target: Target,
    filter: &mut dyn Restore,
) -> Result<(Recovered, Option<LogPlace>), RecoveryError> {
    let (way, ()) = find(begun, target, |snapshot, scan| {
        // A filter keeps the latest generation that it was ever told, so it is told none that is
        // damaged.
        let file = snapshot.check(begun, |_| true)?;
        filter.clear();
        // In the kinds that grow, a key takes more than a byte.
        filter.expect(snapshot.keys().min(snapshot.bytes) + scan.later);
        snapshot.load(&*file, filter)
    })?;
    let (mut records, mut fingerprints) = (0, 0);
    let walk = way.replay_all(begun, |entry| {
        records += 1;
        fingerprints += u64::from(entry.head.count);
        let at = entry.head.position;
        if !entry.body.counted.is_empty() {
            filter.count(&entry.body.counted, at);
        }
        match entry.head.kind {
            RecordKind::Batch | RecordKind::Adds if entry.body.lifetimes.are_whole() => {
                filter.add(entry.body.fingerprints, entry.head.generation, at);
            }
            RecordKind::Batch | RecordKind::Adds => {
                let mut by_generation = BTreeMap::<_, Vec<_>>::new();
                for (_, generation, fingerprint) in entry.changes() {
                    by_generation.entry(generation).or_default().push(fingerprint);
                }
                for (generation, fingerprints) in by_generation {
                    filter.add(fingerprints, generation, at);
                }
            }
            RecordKind::Forgets => filter.forget(entry.body.fingerprints, at),
            RecordKind::Generation => filter.begin_generation(entry.head.generation),
        }
    })?;
    let Way { snapshot, scan, mut damaged, head, all } = way;
    let beyond = all.sound.iter().filter(|other| other.last.head.seq > head.seq);
    let mut snapshots: Vec<String> = beyond.map(|other| other.name.clone()).collect();
    snapshots.extend(damaged.iter().map(|damage| damage.file.clone()));
    snapshots.extend(all.void);
    let (position, tail) = cut::apply(&Segments::list(begun)?, &scan.plan, &snapshots)?;
    damaged.extend(walk.damage);
    let recovered = Recovered {
        position,
        snapshot: snapshot.name,
        snapshot_bytes: snapshot.bytes,
        records,
        fingerprints,
        dropped: scan.beyond,
        damaged,
    };
    Ok((recovered, tail))
}
