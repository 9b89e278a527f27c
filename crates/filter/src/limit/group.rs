//! Groups of items that limits count together, and the counts of the items that they let through.

use std::collections::HashMap;

use crate::Hashed;
use crate::key_hash::murmur3_x64_128;

/// Group of items that a limit counts together, or one value of a parameter in such a group. It is
/// the 128-bit hash of a text, so that each group takes the same memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group(u128);

/// Change of the count of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Group whose count changes.
    pub group: Group,
    /// Number of items by which it grows.
    pub items: u64,
}

impl Group {
    /// Returns the group of a text.
    pub fn of(text: &str) -> Self {
        Self::hash(text.as_bytes())
    }

    fn hash(bytes: &[u8]) -> Self {
        let (low, high) = murmur3_x64_128(bytes, 0);
        Self(u128::from(low) | u128::from(high) << u64::BITS)
    }

    /// Returns the group of a text that belongs to this group.
    pub(super) fn within(self, text: &str) -> Self {
        Self::hash(&[&self.0.to_le_bytes(), text.as_bytes()].concat())
    }
}

impl Counted {
    /// Bytes of an encoded change.
    pub const BYTES: usize = size_of::<u128>() + size_of::<u64>();

    /// Encodes the change: the hash of the group, and the number, both little endian.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.group.0.to_le_bytes());
        bytes.extend(self.items.to_le_bytes());
    }

    /// Reads changes that were encoded one after the other. Returns `None` if the bytes end within
    /// a change.
    pub fn decode_all(bytes: &[u8]) -> Option<Vec<Self>> {
        let (chunks, rest) = bytes.as_chunks::<{ Self::BYTES }>();
        let decode = |chunk: &[u8; Self::BYTES]| {
            let (group, items) = chunk.split_first_chunk().expect("a hash");
            let items = items.try_into().expect("a number");
            let group = Group(u128::from_le_bytes(*group));
            Self { group, items: u64::from_le_bytes(items) }
        };
        rest.is_empty().then(|| chunks.iter().map(decode).collect())
    }
}

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
