//! Exact set of keys of 128 bits: a table with open addressing.
//!
//! The hash of a key determines its home slot. The key is stored in its home slot, or in a slot
//! after it. A run is a sequence of slots with keys, up to the next empty slot. The keys of a run
//! are in the order of their home slots (Robin Hood hashing). So a search ends at the first key
//! whose home slot comes after that of the searched key. When a key is removed, the keys after it
//! move back by one slot each, until a slot is empty or has a key in its home slot.

use super::block::Block;
use super::prefetch::prefetch;
use super::region::{AllocationError, Region};

/// Number of bytes of a slot.
pub(super) const SLOT_BYTES: u64 = size_of::<u128>() as u64;

/// Number of slots of the smallest table, which takes one page of memory.
const LEAST: u64 = 256;

/// Content of an empty slot.
const EMPTY: u128 = 0;

/// Exact set of keys. A new set takes no memory.
#[derive(Debug, Default)]
pub(super) struct Table {
    region: Option<Region>,
    len: usize,
}

impl Table {
    /// Maps the memory of an empty table. `slots` is a result of [`slots_for`].
    pub(super) fn allocate(slots: u64) -> Result<Self, AllocationError> {
        let blocks = slots * SLOT_BYTES / size_of::<Block>() as u64;
        Ok(Self { region: Some(Region::zeroed(blocks)?), len: 0 })
    }

    /// Returns the number of keys.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of slots: a power of two, or 0 before the first key.
    pub(super) fn slots(&self) -> u64 {
        self.table().len() as u64
    }

    /// Begins to fetch the home slot of a key from memory.
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

    /// Adds a key, and returns true if it is new. The table must have room for the key.
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

    /// Removes a key, and returns true if the set had it.
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

    /// Iterates over all keys, in the order of their slots.
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

/// Returns the maximum number of keys in a table with this number of slots: seven eighths of the
/// slots. A full table takes 18.3 bytes for each key. With more keys, runs would grow long.
pub(super) fn most_keys(slots: u64) -> u64 {
    slots / 8 * 7
}

/// Returns the number of slots that this number of keys needs.
pub(super) fn slots_for(keys: u64) -> u64 {
    let mut slots = LEAST;
    while most_keys(slots) < keys {
        slots *= 2;
    }
    slots
}

/// Returns the stored form of a key. A key that equals [`EMPTY`] is stored as 1.
fn stored(key: u128) -> u128 {
    if key == EMPTY { 1 } else { key }
}

/// Returns the home slot of a key.
#[inline]
fn home(table: &[u128], key: u128) -> usize {
    // The lower half of a hash is a hash, too. The mask keeps the slot within the table.
    #[allow(clippy::cast_possible_truncation)]
    let hash = key as usize;
    hash & (table.len() - 1)
}

fn after(table: &[u128], slot: usize) -> usize {
    (slot + 1) & (table.len() - 1)
}

/// Returns the slot of a key. If the key is missing, the error is the slot in which the key would
/// be stored. The table must have an empty slot.
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
    fn the_number_of_slots_is_a_power_of_two_and_above_the_number_of_keys() {
        for keys in [0, 1, 224, 225, 1000, 1 << 40] {
            let slots = slots_for(keys);
            assert!(slots.is_power_of_two() && slots > keys, "{keys} {slots}");
            assert!(slots == LEAST || most_keys(slots / 2) < keys, "{keys} {slots}");
        }
    }

    #[test]
    fn a_new_table_has_no_keys_and_takes_no_memory() {
        let mut table = Table::default();
        assert_eq!((table.len(), table.slots(), table.keys().count()), (0, 0, 0));
        assert!(!table.contains(0) && !table.contains(7) && !table.remove(7));
        table.fetch(7);
    }

    /// Returns a key whose home slot is near the end of the smallest table, so that runs wrap
    /// around.
    fn key(home: u128, rest: u128) -> u128 {
        (rest << 64) | ((home + 252) % 256)
    }

    proptest! {
        /// The keys have few home slots, so runs are long.
        #[test]
        fn a_table_has_the_same_keys_as_a_set(
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
