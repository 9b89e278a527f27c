//! Exact counts of the groups that limits count, as log and snapshots have them.

use std::collections::HashMap;

use super::head::Position;
use crate::filter::Hashed;
use crate::limit::{Counted, Group};

/// Exact counts of groups, with the position of the last record whose changes they have.
#[derive(Debug, Clone)]
pub struct Counts {
    by_group: HashMap<Group, u64, Hashed>,
    at: Position,
}

impl Default for Counts {
    fn default() -> Self {
        Self { by_group: HashMap::default(), at: Position::START }
    }
}

impl Counts {
    /// Returns the count of a group; `None` if it never changed.
    pub fn of(&self, group: Group) -> Option<u64> {
        self.by_group.get(&group).copied()
    }

    /// Returns the number of groups.
    pub fn len(&self) -> usize {
        self.by_group.len()
    }

    /// Returns true if no count ever changed.
    pub fn is_empty(&self) -> bool {
        self.by_group.is_empty()
    }

    /// Changes counts by a record, and stands at its position.
    pub fn change(&mut self, changes: &[Counted], at: Position) {
        for Counted { group, items } in changes {
            let count = self.by_group.entry(*group).or_default();
            *count = count.saturating_add(*items);
        }
        self.at = at;
    }

    /// Changes counts by a record of the log, unless they already have its changes.
    pub fn replay(&mut self, changes: &[Counted], at: Position) {
        if at.number > self.at.number {
            self.change(changes, at);
        }
    }

    /// Replaces all counts by those that a snapshot had at a position.
    pub fn load(&mut self, counts: &[Counted], at: Position) {
        self.by_group.clear();
        self.change(counts, at);
    }

    /// Returns the counts of all groups, for a snapshot.
    pub fn copy(&self) -> Vec<Counted> {
        self.by_group.iter().map(|(&group, &items)| Counted { group, items }).collect()
    }
}
