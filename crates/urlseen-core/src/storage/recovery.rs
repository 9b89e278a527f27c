//! Recovery of a filter from a snapshot and the log after it.
//!
//! 1. A snapshot is usable if its `last` is not after the target, and the log leads from `first`
//!    through `last` to the target. Every record must be whole and follow the one before. The
//!    newest usable snapshot is taken; if it turns out to be damaged, the next one.
//! 2. The log after `first` is replayed: the batches up to the target, and all adds and forgets.
//! 3. Then everything after the target is dropped ([`cut`]), and the snapshots after it, before
//!    anything else is written.
//!
//! A snapshot whose shards all have one position needs no log. A folder begins with a snapshot of
//! this kind, and [`Rebase`](super::Rebase) leaves one.

use std::io::{self, Read};

use super::cut::{self, Cut, Tail};
use super::damage::{Damage, ReadError, sound};
use super::dir::Dir;
use super::error::RecoveryError;
use super::header::Header;
use super::history::{Segments, Walk};
use super::record::Kind;
use super::restore::{Restore, Section};
use super::scan::{Scan, Target};
use super::segment::Entry;
use super::snapshot::{Snapshots, Summary};
use crate::filter::ShardId;
use crate::fingerprint::Fingerprint;
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
    /// Dropped part of the log after the target.
    pub cut: Cut,
    /// Place in the log that could not be read, and the snapshots that were passed over. All of
    /// them were dropped.
    pub damaged: Vec<Damage>,
}

/// A snapshot that leads to a target.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) snapshot: Summary,
    pub(super) scan: Scan,
    /// Damage of the snapshots that were passed over.
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
        dir: &Dir,
        header: &Header,
        mut visit: impl FnMut(&Entry<'_>),
    ) -> Result<Walk, RecoveryError> {
        let segments = Segments::list(dir)?;
        segments.walk(dir, header.filter(), self.snapshot.first, |_, entry| {
            if entry.head.counts_at(self.head.seq) {
                visit(entry);
            }
        })
    }

    /// Replays the log in the same way, if no other process may write to the folder.
    ///
    /// # Errors
    /// If another process changed the log meanwhile.
    pub(super) fn replay_all(
        &self,
        dir: &Dir,
        header: &Header,
        visit: impl FnMut(&Entry<'_>),
    ) -> Result<Walk, RecoveryError> {
        let walk = self.replay(dir, header, visit)?;
        if walk.end != self.scan.walk.end {
            return Err(RecoveryError::Io(io::Error::other("the log changed while it was read")));
        }
        Ok(walk)
    }
}

/// Applies a record of the log to `filter`.
pub(super) fn restore(filter: &mut dyn Restore, entry: &Entry<'_>) {
    let (fingerprints, at) = (entry.fingerprints(), entry.head.position);
    match entry.head.kind {
        Kind::Batch | Kind::Adds => filter.add(fingerprints, at),
        Kind::Forgets => filter.forget(fingerprints, at),
    }
}

/// Findings about snapshots that do not lead to the target, for the error.
#[derive(Debug, Default)]
struct Obstacles {
    /// The last head that any snapshot leads to before the target.
    end: Option<Head>,
    other: Option<Head>,
    damage: Option<Damage>,
}

/// Finds the newest snapshot that leads to `target` and that `load` accepts.
pub(super) fn find(
    dir: &Dir,
    header: &Header,
    target: Target,
    mut load: impl FnMut(&Summary) -> Result<(), ReadError>,
) -> Result<Way, RecoveryError> {
    let segments = Segments::list(dir)?;
    let all = Snapshots::list(dir, header)?;
    let mut damaged = all.damaged.clone();
    let mut obstacles = Obstacles::default();
    for snapshot in &all.sound {
        if matches!(target, Target::At(target) if snapshot.last.head.seq > target.seq) {
            continue;
        }
        let (first, last) = (snapshot.first, snapshot.last);
        let scan = Scan::new(dir, header.filter(), &segments, first, target, last.number)?;
        let leads = scan.walk.other.is_none() && scan.at_number == Some(last.head);
        let head = match target {
            Target::At(target) => target,
            Target::Last => scan.walk.end.head,
        };
        if !leads || !scan.is_reached {
            obstacles.meet(&scan, leads, last.head, target);
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
    Err(obstacles.refuse(dir, header, target, &all.sound, &damaged)?)
}

impl Obstacles {
    /// Notes a snapshot that does not lead to the target.
    fn meet(&mut self, scan: &Scan, leads: bool, last: Head, target: Target) {
        let Target::At(target) = target else { return };
        self.other = self.other.or(scan.other);
        if self.damage.is_none() {
            self.damage.clone_from(&scan.walk.damage);
        }
        // Even a snapshot without its log shows which batch it knew.
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
        dir: &Dir,
        header: &Header,
        target: Target,
        all: &[Summary],
        damaged: &[Damage],
    ) -> Result<RecoveryError, RecoveryError> {
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
            let best = best(dir, header, target)?;
            let missing = target.seq - best.unwrap_or(end).seq;
            RecoveryError::Behind { target, end, missing, damage, best }
        } else if oldest.seq > target.seq {
            RecoveryError::Beyond { target, oldest, damage }
        } else {
            RecoveryError::NoSnapshot { damage }
        })
    }
}

/// Finds the best state at or below `target` that can be loaded. The state must be on the target's
/// history, if that is known.
pub(super) fn best(
    dir: &Dir,
    header: &Header,
    target: Head,
) -> Result<Option<Head>, RecoveryError> {
    let segments = Segments::list(dir)?;
    let all = Snapshots::list(dir, header)?;
    for snapshot in all.sound.iter().filter(|snapshot| snapshot.last.head.seq <= target.seq) {
        let (first, last, target_at) = (snapshot.first, snapshot.last, Target::At(target));
        let scan = Scan::new(dir, header.filter(), &segments, first, target_at, last.number)?;
        let leads = scan.walk.other.is_none() && scan.at_number == Some(last.head);
        if leads
            && scan.other.is_none()
            && sound(snapshot.load(dir, header, &mut Discard))?.is_some()
        {
            return Ok(Some(if scan.is_reached { target } else { scan.walk.end.head }));
        }
    }
    Ok(None)
}

/// Filter that discards the snapshot: it only checks that one can be loaded.
#[derive(Debug)]
struct Discard;

impl Restore for Discard {
    fn clear(&mut self) {}
    fn load(&mut self, _: Section, body: &mut dyn Read) -> io::Result<()> {
        io::copy(body, &mut io::sink()).map(drop)
    }
    fn load_tombstone(&mut self, _: ShardId, _: u128) {}
    fn add(&mut self, _: Vec<Fingerprint>, _: Position) {}
    fn forget(&mut self, _: Vec<Fingerprint>, _: Position) {}
}

/// Recovers `filter` to `target` and drops everything after it. Returns the result, and the file in
/// which the log continues.
pub(super) fn recover(
    dir: &Dir,
    header: &Header,
    target: Target,
    filter: &mut dyn Restore,
) -> Result<(Recovered, Option<Tail>), RecoveryError> {
    let way = find(dir, header, target, |snapshot| {
        filter.clear();
        snapshot.load(dir, header, filter)
    })?;
    let before = Segments::list(dir)?.bytes();
    let (mut records, mut fingerprints) = (0, 0);
    let walk = way.replay_all(dir, header, |entry| {
        records += 1;
        fingerprints += u64::from(entry.head.count);
        restore(filter, entry);
    })?;
    let Way { snapshot, scan, mut damaged, head, all } = way;
    let beyond = all.sound.iter().filter(|other| other.last.head.seq > head.seq);
    let mut snapshots: Vec<String> = beyond.map(|other| other.name.clone()).collect();
    snapshots.extend(damaged.iter().map(|damage| damage.file.clone()));
    snapshots.extend(all.void);
    let (position, tail) = cut::apply(dir, header.filter(), &scan.plan, &snapshots)?;
    damaged.extend(walk.damage);
    let cut = Cut { bytes: before.saturating_sub(Segments::list(dir)?.bytes()), ..scan.cut };
    let recovered = Recovered {
        position,
        snapshot: snapshot.name,
        snapshot_bytes: snapshot.bytes,
        records,
        fingerprints,
        cut,
        damaged,
    };
    Ok((recovered, tail))
}
