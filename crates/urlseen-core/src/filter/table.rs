//! Exact set of keys of 128 bits: a table with open addressing.
//!
//! The hash of a key determines its home slot. The key is stored in its home slot, or in a slot
//! after it. A run is a sequence of slots with keys, up to the next empty slot. The keys of a run
//! are in the order of their home slots (Robin Hood hashing). So a search ends at the first key
//! whose home slot comes after that of the searched key. When a key is removed, the keys after it
//! move back by one slot each, until a slot is empty or has a key in its home slot.
//!
//! If the keys expire, each slot also has the stamp of its key, in memory of its own.

use super::ages::Stamp;
use super::block::Block;
use super::prefetch::prefetch;
use super::region::{AllocationError, Region};

/// Returns the number of bytes of a slot.
pub(super) const fn slot_bytes(has_stamps: bool) -> u64 {
    (size_of::<u128>() + if has_stamps { size_of::<Stamp>() } else { 0 }) as u64
}

/// Number of slots of the smallest table, which takes one page of memory.
const LEAST: u64 = 256;

/// Content of an empty slot.
const EMPTY: u128 = 0;

/// Exact set of keys. A new set takes no memory.
#[derive(Debug, Default)]
pub(super) struct Table {
    region: Option<Region>,
    /// Stamps of the keys in all slots, if the table has stamps.
    stamps: Option<Region>,
    len: usize,
}

impl Table {
    /// Maps the memory of an empty table. `slots` is a result of [`slots_for`].
    pub(super) fn allocate(slots: u64, has_stamps: bool) -> Result<Self, AllocationError> {
        let zeroed = |bytes: u64| Region::zeroed(bytes / size_of::<Block>() as u64);
        let region = Some(zeroed(slots * slot_bytes(false))?);
        let stamps = has_stamps.then(|| zeroed(slots * size_of::<Stamp>() as u64)).transpose()?;
        Ok(Self { region, stamps, len: 0 })
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
        self.slot(key).is_some()
    }

    /// Returns the stamp of a key, if the key is in the set. Without stamps, it is [`Stamp::NONE`].
    pub(super) fn stamp(&self, key: u128) -> Option<Stamp> {
        self.slot(key).map(|slot| self.stamp_at(slot))
    }

    /// Returns the stamp of the key in a slot. It is [`Stamp::NONE`] if the slot is empty.
    #[inline]
    pub(super) fn stamp_at(&self, slot: usize) -> Stamp {
        let stamps = self.stamps.as_ref();
        let stamps: &[Stamp] = stamps.map_or(&[], |it| bytemuck::cast_slice(it.blocks()));
        stamps.get(slot).copied().unwrap_or(Stamp::NONE)
    }

    /// Adds a key with a stamp. The table must have room for the key. If the set has the key, its
    /// stamp is replaced, and the former one is returned.
    pub(super) fn insert(&mut self, key: u128, mut stamp: Stamp) -> Option<Stamp> {
        let (table, stamps) = self.slots_mut();
        let mut key = stored(key);
        let mut slot = match find(table, key) {
            Ok(slot) => {
                let found = stamps.get_mut(slot);
                return Some(found.map_or(Stamp::NONE, |found| std::mem::replace(found, stamp)));
            }
            Err(slot) => slot,
        };
        while key != EMPTY {
            std::mem::swap(&mut table[slot], &mut key);
            if let Some(of_slot) = stamps.get_mut(slot) {
                std::mem::swap(of_slot, &mut stamp);
            }
            slot = after(table, slot);
        }
        self.len += 1;
        None
    }

    /// Removes a key, and returns its stamp if the set had it.
    pub(super) fn remove(&mut self, key: u128) -> Option<Stamp> {
        let slot = self.slot(key)?;
        let stamp = self.stamp_at(slot);
        self.remove_at(slot);
        Some(stamp)
    }

    /// Removes the key in a slot, which is not empty.
    pub(super) fn remove_at(&mut self, mut slot: usize) {
        let (table, stamps) = self.slots_mut();
        loop {
            let next = after(table, slot);
            if table[next] == EMPTY || home(table, table[next]) == next {
                break;
            }
            table[slot] = table[next];
            if !stamps.is_empty() {
                stamps[slot] = stamps[next];
            }
            slot = next;
        }
        table[slot] = EMPTY;
        if let Some(stamp) = stamps.get_mut(slot) {
            *stamp = Stamp::NONE;
        }
        self.len -= 1;
    }

    /// Iterates over all keys, in the order of their slots, with their stamps.
    pub(super) fn keys(&self) -> impl Iterator<Item = (u128, Stamp)> {
        let keys = self.table().iter().copied().enumerate().filter(|&(_, key)| key != EMPTY);
        keys.map(|(slot, key)| (key, self.stamp_at(slot)))
    }

    /// Returns the slot of a key, if the key is in the set.
    #[inline]
    fn slot(&self, key: u128) -> Option<usize> {
        if self.len > 0 { find(self.table(), stored(key)).ok() } else { None }
    }

    fn table(&self) -> &[u128] {
        self.region.as_ref().map_or(&[], |region| bytemuck::cast_slice(region.blocks()))
    }

    /// Returns all slots, and their stamps if the table has stamps.
    fn slots_mut(&mut self) -> (&mut [u128], &mut [Stamp]) {
        let table = self.region.as_mut();
        let table = table.map_or(&mut [][..], |it| bytemuck::cast_slice_mut(it.blocks_mut()));
        let stamps = self.stamps.as_mut();
        let stamps = stamps.map_or(&mut [][..], |it| bytemuck::cast_slice_mut(it.blocks_mut()));
        (table, stamps)
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
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::filter::generation::Generation;

    #[test]
    fn the_number_of_slots_is_a_power_of_two_and_above_the_number_of_keys() {
        for keys in [0, 1, 224, 225, 1000, 1 << 40] {
            let slots = slots_for(keys);
            assert!(slots.is_power_of_two() && slots > keys, "{keys} {slots}");
            assert!(slots == LEAST || most_keys(slots / 2) < keys, "{keys} {slots}");
        }
    }

    /// Returns a key whose home slot is near the end of the smallest table, so that runs wrap
    /// around.
    fn key(home: u128, rest: u128) -> u128 {
        (rest << 64) | ((home + 252) % 256)
    }

    proptest! {
        /// The keys have few home slots, so runs are long.
        #[test]
        fn a_table_has_the_same_keys_as_a_map(
            has_stamps in any::<bool>(),
            steps in prop::collection::vec((any::<bool>(), 0..8u128, 0..40u128, 0..8u32), 0..600),
        ) {
            let mut table = Table::allocate(LEAST, has_stamps).unwrap();
            let mut model = BTreeMap::new();
            for (is_insert, home, rest, number) in steps {
                let key = key(home, rest);
                let number = if has_stamps { Generation::new(number) } else { Generation::FOREVER };
                let stamp = Stamp::of(number);
                if is_insert && model.len() < 224 {
                    prop_assert_eq!(table.insert(key, stamp), model.insert(stored(key), stamp));
                } else {
                    prop_assert_eq!(table.remove(key), model.remove(&stored(key)));
                }
                prop_assert_eq!(table.len(), model.len());
            }
            let keys: Vec<_> = table.keys().collect();
            prop_assert_eq!(keys.len(), model.len());
            prop_assert_eq!(&keys.into_iter().collect::<BTreeMap<_, _>>(), &model);
            for key in (0..8).flat_map(|home| (0..40).map(move |rest| key(home, rest))) {
                let stamp = model.get(&stored(key)).copied();
                prop_assert_eq!(table.stamp(key), stamp, "{}", key);
                prop_assert_eq!(table.contains(key), stamp.is_some(), "{}", key);
            }
        }
    }
}
