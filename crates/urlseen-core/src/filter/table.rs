//! Exact set of keys of 128 bits: a table with open addressing.
//!
//! A key stands in its home slot or after it, and the keys of a run are in the order of their homes
//! (Robin Hood hashing). So a search ends at the first key whose home is later, and a key that is
//! removed leaves no mark: the run after it moves up by a slot.

use super::block::Block;
use super::prefetch::prefetch;
use super::region::{AllocationError, Region};

/// Number of bytes of a slot.
pub(super) const SLOT_BYTES: u64 = size_of::<u128>() as u64;

/// Slots of the smallest table: a page of memory.
const LEAST: u64 = 256;

/// Content of an empty slot.
const EMPTY: u128 = 0;

/// Set of keys. It takes no memory while it is empty.
#[derive(Debug, Default)]
pub(super) struct Table {
    region: Option<Region>,
    len: usize,
}

impl Table {
    /// Maps the memory of an empty table with this number of slots, which [`slots_for`] returned.
    pub(super) fn allocate(slots: u64) -> Result<Self, AllocationError> {
        let blocks = slots * SLOT_BYTES / size_of::<Block>() as u64;
        Ok(Self { region: Some(Region::zeroed(blocks)?), len: 0 })
    }

    /// Returns the number of keys.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Number of slots, a power of two, or 0 before the first key.
    pub(super) fn slots(&self) -> u64 {
        self.table().len() as u64
    }

    /// Begins to fetch the memory that a search for the key looks at first.
    #[inline]
    pub(super) fn fetch(&self, key: u128) {
        let table = self.table();
        if !table.is_empty() {
            prefetch(&table[home(table, key)]);
        }
    }

    /// Returns true if the key is in the set.
    #[inline]
    pub(super) fn contains(&self, key: u128) -> bool {
        self.len > 0 && find(self.table(), stored(key)).is_ok()
    }

    /// Adds a key, and returns true if it is new. The table must have room for it.
    pub(super) fn insert(&mut self, key: u128) -> bool {
        let table = self.table_mut();
        let mut key = stored(key);
        let Err(mut slot) = find(table, key) else { return false };
        while key != EMPTY {
            std::mem::swap(&mut table[slot], &mut key);
            slot = after(table, slot);
        }
        self.len += 1;
        true
    }

    /// Removes a key, and returns true if it was there.
    pub(super) fn remove(&mut self, key: u128) -> bool {
        if self.len == 0 {
            return false;
        }
        let table = self.table_mut();
        let Ok(mut slot) = find(table, stored(key)) else { return false };
        loop {
            let next = after(table, slot);
            if table[next] == EMPTY || home(table, table[next]) == next {
                break;
            }
            table[slot] = table[next];
            slot = next;
        }
        table[slot] = EMPTY;
        self.len -= 1;
        true
    }

    /// All keys, in the order of their slots.
    pub(super) fn keys(&self) -> impl Iterator<Item = u128> {
        self.table().iter().copied().filter(|&key| key != EMPTY)
    }

    fn table(&self) -> &[u128] {
        self.region.as_ref().map_or(&[], |region| bytemuck::cast_slice(region.blocks()))
    }

    fn table_mut(&mut self) -> &mut [u128] {
        let region = self.region.as_mut();
        region.map_or(&mut [], |region| bytemuck::cast_slice_mut(region.blocks_mut()))
    }
}

/// Most keys that a table with this number of slots holds: 7 in 8 slots, or 18.3 bytes a key. With
/// more, runs grow long.
pub(super) fn most_keys(slots: u64) -> u64 {
    slots / 8 * 7
}

/// Number of slots that this number of keys needs.
pub(super) fn slots_for(keys: u64) -> u64 {
    let mut slots = LEAST;
    while most_keys(slots) < keys {
        slots *= 2;
    }
    slots
}

/// Replaces the key that an empty slot looks like.
fn stored(key: u128) -> u128 {
    if key == EMPTY { 1 } else { key }
}

/// First slot that is looked at for a key.
#[inline]
fn home(table: &[u128], key: u128) -> usize {
    // The lower half of a hash is a hash, and the mask keeps it within the table.
    #[allow(clippy::cast_possible_truncation)]
    let hash = key as usize;
    hash & (table.len() - 1)
}

fn after(table: &[u128], slot: usize) -> usize {
    (slot + 1) & (table.len() - 1)
}

/// Returns the slot of a key, or else the slot that it belongs in. The table has an empty slot.
#[inline]
fn find(table: &[u128], key: u128) -> Result<usize, usize> {
    let (mut slot, mut distance) = (home(table, key), 0);
    loop {
        let found = table[slot];
        if found == key {
            return Ok(slot);
        }
        let of_found = slot.wrapping_sub(home(table, found)) & (table.len() - 1);
        if found == EMPTY || of_found < distance {
            return Err(slot);
        }
        (slot, distance) = (after(table, slot), distance + 1);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_table_has_a_power_of_two_of_slots_and_an_empty_one() {
        for keys in [0, 1, 224, 225, 1000, 1 << 40] {
            let slots = slots_for(keys);
            assert!(slots.is_power_of_two() && slots > keys, "{keys} {slots}");
            assert!(slots == LEAST || most_keys(slots / 2) < keys, "{keys} {slots}");
        }
    }

    #[test]
    fn an_empty_table_has_nothing_and_takes_nothing() {
        let mut table = Table::default();
        assert_eq!((table.len(), table.slots(), table.keys().count()), (0, 0, 0));
        assert!(!table.contains(0) && !table.contains(7) && !table.remove(7));
        table.fetch(7);
    }

    /// Key whose home is at the end of the smallest table, or wraps around to its start.
    fn key(home: u128, rest: u128) -> u128 {
        (rest << 64) | ((home + 252) % 256)
    }

    proptest! {
        /// The homes are few, so runs are long.
        #[test]
        fn a_table_agrees_with_a_set(
            steps in prop::collection::vec((any::<bool>(), 0..8u128, 0..40u128), 0..600),
        ) {
            let (mut table, mut model) = (Table::allocate(LEAST).unwrap(), BTreeSet::new());
            for (is_insert, home, rest) in steps {
                let key = key(home, rest);
                if is_insert && model.len() < 224 {
                    prop_assert_eq!(table.insert(key), model.insert(stored(key)));
                } else {
                    prop_assert_eq!(table.remove(key), model.remove(&stored(key)));
                }
                prop_assert_eq!(table.len(), model.len());
            }
            let keys: BTreeSet<_> = table.keys().collect();
            prop_assert_eq!(&keys, &model);
            for key in (0..8).flat_map(|home| (0..40).map(move |rest| key(home, rest))) {
                prop_assert_eq!(table.contains(key), model.contains(&stored(key)), "{}", key);
            }
        }
    }
}
