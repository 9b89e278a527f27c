//! Counters for the faults and the items of a run.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use crate::plan::Kind;

/// Work in progress when a fault struck. If there are several kinds, the first one in this list
/// counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Recovery,
    Snapshot,
    Batch,
    /// No work was in progress. The fault does not count.
    Idle,
}

/// Effect of a fault. The counts of effects decide if a run has had enough faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The daemon was killed (SIGKILL).
    DaemonKilled,
    /// The daemon was killed (SIGKILL) while it wrote a snapshot of a filter that grows.
    GrowingSnapshotCut,
    /// The Redis server was killed.
    RedisKilled,
    /// Redis came back with older data than before the fault.
    RolledBack,
    /// One connection was cut.
    Cut,
}

/// Counters for the faults that had an effect, and for the items.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub(crate) rounds: u64,
    pub(crate) items: u64,
    pub(crate) daemon_kills: u64,
    pub(crate) growing_snapshots: u64,
    pub(crate) redis_kills: u64,
    pub(crate) rollbacks: u64,
    pub(crate) cuts: u64,
    pub(crate) late_bytes: u64,
    /// Number of faults for each kind and phase.
    faults: BTreeMap<String, [u64; 4]>,
}

impl Tally {
    /// Counts a fault, if work was in progress.
    pub(crate) fn strike(&mut self, kind: Kind, phase: Phase, effects: &[Effect]) {
        self.count(kind.name(), phase, effects);
    }

    /// Counts a fault by its name, if work was in progress.
    pub(crate) fn count(&mut self, fault: String, phase: Phase, effects: &[Effect]) {
        self.faults.entry(fault).or_default()[phase as usize] += 1;
        if phase == Phase::Idle {
            return;
        }
        for effect in effects {
            *match effect {
                Effect::DaemonKilled => &mut self.daemon_kills,
                Effect::GrowingSnapshotCut => &mut self.growing_snapshots,
                Effect::RedisKilled => &mut self.redis_kills,
                Effect::RolledBack => &mut self.rollbacks,
                Effect::Cut => &mut self.cuts,
            } += 1;
        }
    }

    /// Returns the number of faults that struck while work was in progress.
    pub(crate) fn counted(&self) -> u64 {
        self.faults.values().flat_map(|phases| &phases[..3]).sum()
    }
}

impl AddAssign<&Self> for Tally {
    fn add_assign(&mut self, other: &Self) {
        self.rounds += other.rounds;
        self.items += other.items;
        self.daemon_kills += other.daemon_kills;
        self.growing_snapshots += other.growing_snapshots;
        self.redis_kills += other.redis_kills;
        self.rollbacks += other.rollbacks;
        self.cuts += other.cuts;
        self.late_bytes += other.late_bytes;
        for (fault, phases) in &other.faults {
            let ours = self.faults.entry(fault.clone()).or_default();
            ours.iter_mut().zip(phases).for_each(|(ours, theirs)| *ours += theirs);
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<18} {:>8} {:>8}   {:>8} {:>8} {:>8} {:>8}",
            "fault", "struck", "counted", "recovery", "snapshot", "batch", "idle"
        )?;
        for (fault, phases) in &self.faults {
            let [recovery, snapshot, batch, idle] = phases;
            let counted = recovery + snapshot + batch;
            writeln!(
                f,
                "{fault:<18} {:>8} {counted:>8}   {recovery:>8} {snapshot:>8} {batch:>8} {idle:>8}",
                counted + idle
            )?;
        }
        write!(
            f,
            "{} rounds, {} items; counted: {} daemon kills, {} of them in a snapshot of a growing \
             filter, {} Redis kills, {} rollbacks, {} cut connections; {} bytes arrived late",
            self.rounds,
            self.items,
            self.daemon_kills,
            self.growing_snapshots,
            self.redis_kills,
            self.rollbacks,
            self.cuts,
            self.late_bytes
        )
    }
}
