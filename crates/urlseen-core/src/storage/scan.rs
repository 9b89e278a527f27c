//! Whether a position leads to a batch, and what lies beyond it.

use super::cut::{Cut, Plan};
use super::dir::Dir;
use super::error::RecoveryError;
use super::history::{Place, Segments, Walk};
use super::record::Kind;
use crate::storage::head::{Head, Position};

/// Where a filter is to be brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// To the batch that Redis knows as its last.
    At(Head),
    /// As far as the folder goes, where no Redis says.
    Last,
}

/// What the log says about a position and a target.
#[derive(Debug)]
pub(super) struct Scan {
    from: Position,
    pub(super) walk: Walk,
    /// What the log has at the number that was asked for: the head there.
    pub(super) at_number: Option<Head>,
    /// Whether the target is on the way.
    pub(super) is_reached: bool,
    /// A batch on the way that has the target's number and not its id.
    pub(super) other: Option<Head>,
    /// Where the first batch beyond the target is, and what it follows.
    beyond: Option<(Place, Position)>,
    /// Whether there is something behind that which counts always.
    keep_adds: bool,
    /// The batches beyond the target.
    pub(super) cut: Cut,
}

impl Scan {
    /// Follows the log from `from` to its end; looks for `target`, and for what it has at `number`.
    pub(super) fn new(
        dir: &Dir,
        filter: u64,
        segments: &Segments,
        from: Position,
        target: Target,
        number: u64,
    ) -> Result<Self, RecoveryError> {
        let mut at_number = (from.number == number).then_some(from.head);
        let (mut is_reached, mut other) = (false, None);
        let mut meet = |head: Head| match target {
            Target::At(target) if head == target => is_reached = true,
            Target::At(target) if head.seq == target.seq => other = Some(head),
            _ => {}
        };
        meet(from.head);
        let (mut before, mut beyond, mut keep_adds) = (from, None, false);
        let mut cut = Cut::default();
        let walk = segments.walk(dir, filter, from, |place, entry| {
            let position = entry.head.position;
            if position.number == number {
                at_number = Some(position.head);
            }
            match (entry.head.kind, target) {
                (Kind::Adds | Kind::Forgets, _) => keep_adds |= beyond.is_some(),
                (Kind::Batch, Target::At(target)) if position.head.seq > target.seq => {
                    beyond.get_or_insert((place, before));
                    cut.batches += 1;
                    cut.fingerprints += u64::from(entry.head.count);
                }
                (Kind::Batch, _) => meet(position.head),
            }
            before = position;
        })?;
        if target == Target::Last {
            is_reached = walk.other.is_none();
        }
        Ok(Self { from, walk, at_number, is_reached, other, beyond, keep_adds, cut })
    }

    /// What to drop for the target to be the last batch.
    pub(super) fn plan(&self) -> Plan {
        let (place, end) = match self.beyond {
            Some((place, end)) => (Some(place), end),
            None => (self.walk.place, self.walk.end),
        };
        let keep_adds = self.keep_adds;
        Plan { from: self.from, end, place, keep_adds, snapshots: Vec::new() }
    }
}
