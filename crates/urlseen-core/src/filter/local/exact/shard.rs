//! Shard of an exact filter: a table of key hashes. If the keys expire, it has their stamps.

use super::super::Full;
use crate::filter::SHARDS;
use crate::filter::ages::{Ages, Stamp};
use crate::filter::generation::{Generation, Generations};
use crate::filter::memory::{Available, SPARE};
use crate::filter::table::{Table, most_keys, slot_bytes, slots_for};

/// Number of bytes up to which a table counts as small. Small tables of all shards together take at
/// most [`SPARE`] bytes.
const SMALL: u64 = SPARE / SHARDS as u64;

/// Keys of a shard. A new shard takes no memory for keys.
#[derive(Debug)]
pub(super) struct Shard {
    table: Table,
    /// Generations of the keys, if the keys expire.
    ages: Option<Box<Ages>>,
}

impl Shard {
    /// Makes an empty shard. Its keys expire if `expires` is true.
    pub(super) fn new(expires: bool) -> Self {
        Self { table: Table::default(), ages: expires.then(|| Box::new(Ages::new())) }
    }

    /// Returns the number of keys that have not expired.
    pub(super) fn live_keys(&self) -> u64 {
        self.table.len() as u64 - self.ages.as_ref().map_or(0, |ages| ages.expired())
    }

    pub(super) fn slots(&self) -> u64 {
        self.table.slots()
    }

    /// Counts the keys by generation, if the keys expire.
    pub(super) fn generations(&self) -> Option<Generations> {
        self.ages.as_ref().map(|ages| ages.generations())
    }

    /// Returns the stamp of expired keys, if slots have such keys.
    #[inline]
    pub(super) fn dead(&self) -> Option<Stamp> {
        self.ages.as_ref()?.dead()
    }

    /// Begins to fetch the home slot of a key from memory.
    #[inline]
    pub(super) fn fetch(&self, key: u128) {
        self.table.fetch(key);
    }

    /// Returns true if the shard has the key, and the key has not expired.
    #[inline]
    pub(super) fn has(&self, key: u128) -> bool {
        match self.dead() {
            None => self.table.contains(key),
            Some(_) => self.stamp(key).is_some(),
        }
    }

    /// Returns the stamp of a key, if the shard has the key and the key has not expired.
    pub(super) fn stamp(&self, key: u128) -> Option<Stamp> {
        self.table.stamp(key).filter(|&stamp| Some(stamp) != self.dead())
    }

    /// Iterates over all keys that have not expired.
    pub(super) fn keys(&self) -> impl Iterator<Item = (u128, Stamp)> {
        let dead = self.dead();
        self.table.keys().filter(move |&(_, stamp)| Some(stamp) != dead)
    }

    /// Makes room for more keys. The table grows only if it has too few slots after a sweep.
    ///
    /// # Errors
    /// The process has too little memory.
    pub(super) fn make_room(
        &mut self,
        keys: u64,
        available: fn() -> Option<Available>,
    ) -> Result<(), Full> {
        let is_full = |it: &Self| it.table.len() as u64 + keys > most_keys(it.slots());
        if keys > 0 && is_full(self) {
            self.sweep(u64::MAX);
        }
        if keys > 0 && is_full(self) {
            let mut grown = allocate(self.live_keys() + keys, self.ages.is_some(), available)?;
            for (key, stamp) in self.table.keys() {
                grown.insert(key, stamp);
            }
            self.table = grown;
        }
        Ok(())
    }

    /// Inserts a key, for which there must be room. If the shard has the key, its stamp is
    /// replaced. Returns true if the shard did not have it.
    pub(super) fn insert(&mut self, key: u128, stamp: Stamp) -> bool {
        let former = self.table.insert(key, stamp);
        if let Some(ages) = &mut self.ages {
            if let Some(former) = former {
                ages.discount(former);
            }
            ages.count(stamp);
        }
        former.is_none()
    }

    /// Removes a key, also if it has expired.
    pub(super) fn remove(&mut self, key: u128) {
        if let Some(stamp) = self.table.remove(key)
            && let Some(ages) = &mut self.ages
        {
            ages.discount(stamp);
        }
    }

    /// Begins a generation, unless it or a later one has begun. Before that, frees the slots of all
    /// keys that had expired.
    pub(super) fn begin_generation(&mut self, generation: Generation) {
        while let Some(ages) = &self.ages
            && ages.now < generation
        {
            self.sweep(u64::MAX);
            self.ages.as_mut().expect("the shard has generations").advance(generation);
        }
    }

    /// Looks at up to this number of slots, and frees those of expired keys.
    pub(super) fn sweep(&mut self, most: u64) {
        let Self { table, ages: Some(ages) } = self else { return };
        let Some(dead) = ages.dead() else { return };
        let mut left = most;
        while left > 0 && ages.expired() > 0 {
            left -= 1;
            // Insertions and removals move keys to other slots, so the sweep may need more than one
            // round.
            let slot = if ages.next < table.slots() { ages.next } else { 0 };
            ages.next = slot;
            // A table is in memory.
            #[allow(clippy::cast_possible_truncation)]
            let slot = slot as usize;
            if table.stamp_at(slot) == dead {
                // The next key may have moved to this slot.
                table.remove_at(slot);
                ages.sweep(dead);
            } else {
                ages.next += 1;
            }
        }
    }
}

/// Allocates an empty table for this number of keys.
fn allocate(
    keys: u64,
    has_stamps: bool,
    available: fn() -> Option<Available>,
) -> Result<Table, Full> {
    let slots = slots_for(keys);
    let bytes = slots * slot_bytes(has_stamps);
    // Reading the available memory takes longer than the allocation of a small table.
    let available = if bytes > SMALL { available() } else { None };
    let full = |why| {
        let full = "the exact filter has no memory for more fingerprints";
        Full(format!("{full}: {why}. Give the process more memory"))
    };
    match available {
        Some(Available { bytes: have, limit }) if have < bytes + SPARE => Err(full(format!(
            "a shard needs {bytes} bytes more, {SPARE} must stay free, and {have} are available \
             {limit}"
        ))),
        _ => Table::allocate(slots, has_stamps).map_err(|error| full(error.to_string())),
    }
}
