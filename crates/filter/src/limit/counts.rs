//! Counts of the items that limits let through.

use std::collections::HashMap;

use super::{Counted, Group};
use crate::Hashed;

/// Exact counts of groups, with the number of the last record of the log whose changes they have.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    by_group: HashMap<Group, u64, Hashed>,
    at: u64,
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

    /// Changes counts by a record, and takes its number.
    pub fn change(&mut self, changes: &[Counted], at: u64) {
        for Counted { group, items } in changes {
            let count = self.by_group.entry(*group).or_default();
            *count = count.saturating_add(*items);
        }
        self.at = at;
    }

    /// Changes counts by a record of the log, unless they already have its changes.
    pub fn replay(&mut self, changes: &[Counted], at: u64) {
        if at > self.at {
            self.change(changes, at);
        }
    }

    /// Replaces all counts by those that a snapshot had after a record.
    pub fn load(&mut self, counts: &[Counted], at: u64) {
        self.by_group.clear();
        self.change(counts, at);
    }

    /// Returns the counts of all groups, for a snapshot.
    pub fn copy(&self) -> Vec<Counted> {
        self.by_group.iter().map(|(&group, &items)| Counted { group, items }).collect()
    }
}
