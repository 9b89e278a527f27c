//! Bringing a filter back: a snapshot, and what the log has behind it.
//!
//! 1. A snapshot will do whose `last` is not beyond the target, if the log leads from its `first`
//!    through its `last` to the target, every record whole and each following the one before. The
//!    newest is taken; one that turns out to be damaged is passed over for the next.
//! 2. What is replayed behind `first` are the batches up to the target, and all adds.
//! 3. Then all that is beyond the target is dropped ([`cut`]), and with it the snapshots
//!    beyond it, before anything else is written.
//!
//! A snapshot whose shards all stand at one position needs no log. That is how a folder begins, and
//! what [`Rebase`](super::Rebase) leaves.

use std::io::{self, Read};

use super::cut::{self, Cut, Tail};
use super::damage::Damage;
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

/// What was brought back, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// Where the log ends now, and the filter stands.
    pub position: Position,
    /// The file name of the snapshot that it began with.
    pub snapshot: String,
    /// Bytes of that snapshot.
    pub snapshot_bytes: u64,
    /// Records of the log that were replayed.
    pub records: u64,
    /// Fingerprints in them.
    pub fingerprints: u64,
    /// What lay beyond the target and was dropped.
    pub cut: Cut,
    /// Where the log could not be read any further, and the snapshots that were passed over: all of
    /// it was dropped.
    pub damaged: Vec<Damage>,
}

/// A snapshot that leads to a target.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) snapshot: Summary,
    pub(super) scan: Scan,
    /// The snapshots that were damaged.
    pub(super) damaged: Vec<Damage>,
    /// The head that it leads to.
    pub(super) head: Head,
    /// All snapshots.
    all: Snapshots,
}

impl Way {
    /// Replays the log behind the snapshot: all records but the batches beyond the head.
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

    /// The same where nobody else may write to the folder.
    ///
    /// # Errors
    /// Somebody did.
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

/// Does to `filter` what a record of the log says.
pub(super) fn restore(filter: &mut dyn Restore, entry: &Entry<'_>) {
    let (fingerprints, at) = (entry.fingerprints(), entry.head.position);
    match entry.head.kind {
        Kind::Batch | Kind::Adds => filter.add(fingerprints, at),
        Kind::Forgets => filter.forget(fingerprints, at),
    }
}

/// Why no snapshot leads to a target: what was met on the way.
#[derive(Debug, Default)]
struct Obstacles {
    /// The furthest that any snapshot leads without meeting the target.
    end: Option<Head>,
    other: Option<Head>,
    damage: Option<Damage>,
}

/// Finds the newest snapshot that leads to `target` and that `load` takes.
pub(super) fn find(
    dir: &Dir,
    header: &Header,
    target: Target,
    mut load: impl FnMut(&Summary) -> io::Result<Result<(), Damage>>,
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
        match load(snapshot)? {
            Ok(()) => {
                let snapshot = snapshot.clone();
                return Ok(Way { snapshot, scan, damaged, head, all });
            }
            Err(damage) => damaged.push(damage),
        }
    }
    Err(obstacles.refuse(dir, header, target, &all.sound, &damaged)?)
}

impl Obstacles {
    /// Takes note of a snapshot that does not lead to the target.
    fn meet(&mut self, scan: &Scan, leads: bool, last: Head, target: Target) {
        let Target::At(target) = target else { return };
        self.other = self.other.or(scan.other);
        if self.damage.is_none() {
            self.damage.clone_from(&scan.walk.damage);
        }
        // One that the log does not come up to still says which batch it knew.
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
            RecoveryError::OtherHistory { target, ours, best: None }
        } else if let Some(end) = self.end {
            let best = best(dir, header, target)?;
            let missing = target.seq - best.unwrap_or(end).seq;
            RecoveryError::Behind { target, end, missing, damage, best }
        } else if oldest.seq > target.seq {
            RecoveryError::Beyond { target, oldest, damage, best: None }
        } else {
            RecoveryError::NoSnapshot { damage }
        })
    }
}

/// The best state at or below `target`, on its history as far as that is known, that can be loaded.
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
        if leads && scan.other.is_none() && snapshot.load(dir, header, &mut Nobody)?.is_ok() {
            return Ok(Some(if scan.is_reached { target } else { scan.walk.end.head }));
        }
    }
    Ok(None)
}

/// Takes what is only to be looked through.
#[derive(Debug)]
struct Nobody;

impl Restore for Nobody {
    fn clear(&mut self) {}
    fn load(&mut self, _: Section, body: &mut dyn Read) -> io::Result<()> {
        io::copy(body, &mut io::sink()).map(drop)
    }
    fn load_tombstone(&mut self, _: ShardId, _: u128) {}
    fn add(&mut self, _: Vec<Fingerprint>, _: Position) {}
    fn forget(&mut self, _: Vec<Fingerprint>, _: Position) {}
}

/// Brings `filter` to `target` and drops what is beyond: what was done, and the file that the log
/// goes on in.
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
    let mut plan = scan.plan();
    let beyond = all.sound.iter().filter(|other| other.last.head.seq > head.seq);
    plan.snapshots.extend(beyond.map(|other| other.name.clone()));
    plan.snapshots.extend(damaged.iter().map(|damage| damage.file.clone()));
    plan.snapshots.extend(all.void);
    let (position, tail) = cut::apply(dir, header.filter(), &plan)?;
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
