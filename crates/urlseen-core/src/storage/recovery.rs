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

use super::begun::Begun;
use super::cut;
use super::damage::{Damage, ReadError, sound};
use super::error::RecoveryError;
use super::history::{Lost, Place, Segments, Walk};
use super::record::Kind;
use super::restore::Restore;
use super::scan::{Scan, Target};
use super::segment::Entry;
use super::snapshot::{Snapshots, Summary};
use crate::storage::head::{Head, Position};

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
    /// Damage of the log and of the snapshots that were skipped. The damaged data was deleted.
    pub damaged: Vec<Damage>,
}

/// Snapshot that leads to a target, and the log after it.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) snapshot: Summary,
    pub(super) scan: Scan,
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
        mut visit: impl FnMut(&Entry<'_>),
    ) -> Result<Walk, RecoveryError> {
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
        visit: impl FnMut(&Entry<'_>),
    ) -> Result<Walk, RecoveryError> {
        let walk = self.replay(begun, visit)?;
        if walk.end != self.scan.walk.end {
            return Err(RecoveryError::Io(io::Error::other("the log changed while it was read")));
        }
        Ok(walk)
    }
}

/// Findings about snapshots that do not lead to the target, for the error.
#[derive(Debug, Default)]
struct Obstacles {
    /// Last head before the target that the folder has, in the log or in a snapshot.
    end: Option<Head>,
    other: Option<Head>,
    damage: Option<Damage>,
    /// Snapshots on the history of the target, newest first, and the heads that they lead to.
    best: Vec<(Summary, Head)>,
}

/// Finds the newest snapshot that leads to `target` and that `load` accepts. Refuses a damaged log.
pub(super) fn find(
    begun: &Begun,
    target: Target,
    load: impl FnMut(&Summary) -> Result<(), ReadError>,
) -> Result<Way, RecoveryError> {
    let way = find_past_damage(begun, target, load)?;
    match (&way.scan.walk.damage, way.scan.walk.lost) {
        (Some(damage), Some(lost)) => Err(RecoveryError::Damaged { damage: damage.clone(), lost }),
        _ => Ok(way),
    }
}

/// Finds the newest snapshot that leads to `target` and that `load` accepts. The log may be damaged
/// after the target.
pub(super) fn find_past_damage(
    begun: &Begun,
    target: Target,
    mut load: impl FnMut(&Summary) -> Result<(), ReadError>,
) -> Result<Way, RecoveryError> {
    let segments = Segments::list(begun)?;
    let all = Snapshots::list(begun)?;
    let mut damaged = all.damaged.clone();
    let mut obstacles = Obstacles::default();
    for snapshot in &all.sound {
        if matches!(target, Target::At(target) if snapshot.last.head.seq > target.seq) {
            continue;
        }
        let (first, last) = (snapshot.first, snapshot.last);
        let scan = Scan::new(&segments, first, target, last.number)?;
        let leads = scan.walk.other.is_none() && scan.at_number == Some(last.head);
        let head = match target {
            Target::At(target) => target,
            Target::Last => scan.walk.end.head,
        };
        if !leads || !scan.is_reached {
            obstacles.meet(&scan, leads, snapshot, target);
            continue;
        }
        match load(snapshot) {
            Ok(()) => {
                let snapshot = snapshot.clone();
                return Ok(Way { snapshot, scan, damaged, head, all });
            }
            Err(error) => damaged.push(error.damage()?),
        }
    }
    Err(obstacles.refuse(begun, target, &all.sound, &damaged)?)
}

/// Returns the damage of the log from which on the newest state of the folder lacks records.
pub(super) fn damage(begun: &Begun) -> Result<Option<(Damage, Lost)>, RecoveryError> {
    let walk = find_past_damage(begun, Target::Last, |snapshot| snapshot.check(begun))?.scan.walk;
    Ok(walk.damage.zip(walk.lost))
}

/// Ends the log before its [damage], and keeps copies of the damaged and all later files.
pub(super) fn cut_at_damage(begun: &Begun) -> Result<(), RecoveryError> {
    let way = find_past_damage(begun, Target::Last, |snapshot| snapshot.check(begun))?;
    let (segments, plan) = (Segments::list(begun)?, &way.scan.plan);
    cut::copy_aside(&segments, plan.place.map_or(plan.end.number, |place| place.file))?;
    cut::apply(&segments, plan, &[]).map(drop)
}

impl Obstacles {
    /// Notes a snapshot that does not lead to the target.
    fn meet(&mut self, scan: &Scan, leads: bool, snapshot: &Summary, target: Target) {
        let Target::At(target) = target else { return };
        let last = snapshot.last.head;
        if leads && scan.other.is_none() {
            self.best.push((snapshot.clone(), scan.walk.end.head));
        }
        self.other = self.other.or(scan.other);
        if self.damage.is_none() {
            self.damage.clone_from(&scan.walk.damage);
        }
        // Even a snapshot without its log proves that its last batch happened.
        let end = if leads { scan.walk.end.head } else { last };
        if !leads && last.seq == target.seq && last != target {
            self.other = self.other.or(Some(last));
        }
        if end.seq < target.seq && self.end.is_none_or(|known| known.seq < end.seq) {
            self.end = Some(end);
        }
    }

    fn refuse(
        self,
        begun: &Begun,
        target: Target,
        all: &[Summary],
        damaged: &[Damage],
    ) -> io::Result<RecoveryError> {
        let is_sound = |snapshot: &&Summary| damaged.iter().all(|each| each.file != snapshot.name);
        let heads = all.iter().filter(is_sound).map(|snapshot| snapshot.last.head);
        let oldest = heads.min_by_key(|head| head.seq);
        let damage = self.damage.or_else(|| damaged.first().cloned());
        let (Target::At(target), Some(oldest)) = (target, oldest) else {
            return Ok(RecoveryError::NoSnapshot { damage });
        };
        Ok(if let Some(ours) = self.other {
            RecoveryError::OtherHistory { target, ours }
        } else if let Some(end) = self.end {
            let best = best(begun, &self.best)?;
            let missing = target.seq - best.unwrap_or(end).seq;
            RecoveryError::Behind { target, end, missing, damage, best }
        } else if oldest.seq > target.seq {
            RecoveryError::Beyond { target, oldest, damage }
        } else {
            RecoveryError::NoSnapshot { damage }
        })
    }
}

/// Returns the head of the first snapshot that can be loaded.
fn best(begun: &Begun, snapshots: &[(Summary, Head)]) -> io::Result<Option<Head>> {
    for (snapshot, head) in snapshots {
        if sound(snapshot.check(begun))?.is_some() {
            return Ok(Some(*head));
        }
    }
    Ok(None)
}

/// Recovers `filter` to `target`, and drops all later batches. Returns the result, and the file
/// that the log continues in.
pub(super) fn recover(
    begun: &Begun,
    target: Target,
    filter: &mut dyn Restore,
) -> Result<(Recovered, Option<Place>), RecoveryError> {
    let way = find(begun, target, |snapshot| {
        // A filter keeps the latest generation that it was ever told, so it is told none that is
        // damaged.
        snapshot.check(begun)?;
        filter.clear();
        snapshot.load(begun, filter)
    })?;
    let (mut records, mut fingerprints) = (0, 0);
    let walk = way.replay_all(begun, |entry| {
        records += 1;
        fingerprints += u64::from(entry.head.count);
        let at = entry.head.position;
        match entry.head.kind {
            Kind::Batch | Kind::CountedBatch | Kind::Adds if entry.lifetimes.are_whole() => {
                filter.add(entry.fingerprints(), entry.head.generation, at);
            }
            Kind::Batch | Kind::CountedBatch | Kind::Adds => {
                let mut by_generation = BTreeMap::<_, Vec<_>>::new();
                for (generation, fingerprint) in entry.stored() {
                    by_generation.entry(generation).or_default().push(fingerprint);
                }
                for (generation, fingerprints) in by_generation {
                    filter.add(fingerprints, generation, at);
                }
            }
            Kind::Forgets => filter.forget(entry.fingerprints(), at),
            Kind::Generation => filter.begin_generation(entry.head.generation),
        }
        if !entry.counted.is_empty() {
            filter.count(&entry.counted, at);
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
