//! Follows the log from a position to a target, and finds the records after the target.

use super::cut::Plan;
use super::error::RecoveryError;
use super::history::{Segments, Walk};
use crate::storage::head::{Head, Position};

/// Head that a filter is recovered to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Last batch that Redis has committed.
    At(Head),
    /// The last batch in the folder, if no Redis names one.
    Last,
}

/// The log between a position and a target, and after the target.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) walk: Walk,
    /// Head of the record with the requested number.
    pub(super) at_number: Option<Head>,
    /// True if the log leads to the target.
    pub(super) is_reached: bool,
    /// A batch in the log with the target's number and another id.
    pub(super) other: Option<Head>,
    /// Cut that makes the target the last batch.
    pub(super) plan: Plan,
    /// Number of batches after the target.
    pub(super) beyond: u64,
}

impl Scan {
    /// Follows the log from `from` to its end. Looks for `target`, and for the head at `number`.
    pub(super) fn new(
        segments: &Segments<'_>,
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
        let mut count = 0;
        let walk = segments.walk(from, |place, entry| {
            let position = entry.head.position;
            if position.number == number {
                at_number = Some(position.head);
            }
            match target {
                _ if !entry.head.kind.is_batch() => keep_adds |= beyond.is_some(),
                Target::At(target) if position.head.seq > target.seq => {
                    beyond.get_or_insert((place, before));
                    count += 1;
                }
                _ => meet(position.head),
            }
            before = position;
        })?;
        if target == Target::Last {
            is_reached = walk.other.is_none();
        }
        let (place, end) = match beyond {
            Some((place, end)) => (Some(place), end),
            None => (walk.place, walk.end),
        };
        let plan = Plan { from, end, place, keep_adds };
        Ok(Self { walk, at_number, is_reached, other, plan, beyond: count })
    }
}
