//! Generations of the keys of a shard whose keys expire.
//!
//! Three bits of a slot are the *stamp* of its key. The stamps 1 to 7 stand for generations, in
//! turn. Six generations are live. The keys of the one before them have expired; their stamp is
//! *dead*. A sweep frees their slots, a few blocks at a time. The generation that begins next has
//! the dead stamp, so before it begins the sweep must end.

use super::super::block::Block;
use super::super::generation::{Generation, Generations, LIVE};
use super::arena::Arena;
use super::format::Format;
use super::layout::Key;
use super::shard::{Probe, Shard};

/// Number of stamps that stand for generations.
const TURN: u32 = LIVE + 1;

/// Stamp of a slot: the name of the generation of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::filter) struct Stamp(pub(super) u64);

impl Stamp {
    /// Number of different stamps, with [`Stamp::NONE`].
    pub(in crate::filter) const COUNT: usize = TURN as usize + 1;

    /// Stamp of keys that never expire, and of all keys of a filter without generations.
    pub(in crate::filter) const NONE: Self = Self(0);

    /// Returns the stamp of the keys of a generation.
    pub(in crate::filter) fn of(generation: Generation) -> Self {
        if generation == Generation::FOREVER {
            return Self::NONE;
        }
        Self(u64::from(generation.get() % TURN) + 1)
    }

    /// Returns the generation of a key with this stamp. The key may have expired at last in
    /// generation `now`.
    pub(in crate::filter) fn generation(self, now: Generation) -> Generation {
        if self == Self::NONE {
            return Generation::FOREVER;
        }
        let turn = u64::from(TURN);
        let age = (Self::of(now).0 + turn - self.0) % turn;
        // Below `TURN`.
        #[allow(clippy::cast_possible_truncation)]
        now.earlier(age as u32)
    }

    /// Returns the index of the stamp in a list of all stamps.
    fn index(self) -> usize {
        // Three bits.
        #[allow(clippy::cast_possible_truncation)]
        let index = self.0 as usize;
        index
    }
}

/// Generations of the keys of a shard.
#[derive(Debug, Clone, Copy)]
pub(in crate::filter) struct Ages {
    pub(super) now: Generation,
    /// Number of keys with each stamp.
    counts: [u64; Stamp::COUNT],
    /// Number of the live block with which the sweep continues.
    next: u64,
}

impl Ages {
    /// Begins with an empty shard, long before any key is inserted.
    pub(super) fn new() -> Self {
        Self { now: Generation::default(), counts: [0; Stamp::COUNT], next: 0 }
    }

    /// Returns the stamp of the keys that have expired, if slots have such keys.
    pub(super) fn dead(&self) -> Option<Stamp> {
        let dead = Stamp::of(self.now.later(1));
        (self.counts[dead.index()] > 0).then_some(dead)
    }

    /// Returns the number of expired keys that take a slot.
    pub(super) fn expired(&self) -> u64 {
        self.dead().map_or(0, |dead| self.counts[dead.index()])
    }

    pub(super) fn count(&mut self, stamp: Stamp) {
        self.counts[stamp.index()] += 1;
    }

    pub(super) fn discount(&mut self, stamp: Stamp) {
        self.counts[stamp.index()] -= 1;
    }

    /// Counts the keys by generation.
    pub(in crate::filter) fn generations(&self) -> Generations {
        let keys = std::array::from_fn(|age| {
            let generation = self.now.get().checked_sub(u32::try_from(age).expect("below 6"));
            let stamp = generation.map(|number| Stamp::of(Generation::new(number)));
            stamp.map_or(0, |stamp| self.counts[stamp.index()])
        });
        let forever = self.counts[Stamp::NONE.index()];
        Generations { now: self.now, keys, forever, expired: self.expired() }
    }
}

impl Shard {
    /// Counts the keys by generation, if the keys expire.
    pub(in crate::filter) fn generations(&self) -> Option<Generations> {
        self.ages.map(|ages| ages.generations())
    }

    /// Returns the number of keys that have not expired.
    pub(in crate::filter) fn live_keys(&self) -> u64 {
        self.keys() - self.ages.map_or(0, |ages| ages.expired())
    }

    /// Returns the stamp of expired keys, if slots have such keys.
    #[inline]
    pub(in crate::filter) fn dead(&self) -> Option<Stamp> {
        self.ages.as_ref()?.dead()
    }

    /// Begins a generation, unless it or a later one has begun. Before that, frees the slots of all
    /// keys that had expired.
    pub(in crate::filter) fn begin_generation(
        &mut self,
        generation: Generation,
        arena: &mut Arena,
    ) {
        while let Some(ages) = &self.ages
            && ages.now < generation
        {
            self.sweep(u64::MAX, arena);
            let ages = self.ages.as_mut().expect("the shard has generations");
            let has_keys = ages.counts[1..].iter().any(|&count| count > 0);
            ages.now = if has_keys { ages.now.later(1) } else { generation };
            ages.next = 0;
        }
    }

    /// Frees the slots of expired keys in at most this number of blocks.
    pub(in crate::filter) fn sweep(&mut self, most: u64, arena: &mut Arena) {
        let mut left = most;
        while left > 0
            && let Some(dead) = self.dead()
        {
            left -= 1;
            let ages = self.ages.as_mut().expect("the shard has generations");
            // Growth moves keys to other blocks, so the sweep may need more than one round.
            let (layout, block) = self.layouts.nth_live(ages.next).unwrap_or_else(|| {
                ages.next = 0;
                self.homeless.retain(|&(_, stamp)| {
                    if stamp == dead {
                        ages.discount(dead);
                        self.keys -= 1;
                    }
                    stamp != dead
                });
                self.layouts.nth_live(0).expect("a shard has blocks")
            });
            ages.next += 1;
            let index = self.index(block, arena);
            self.sweep_block(dead, layout.format, &mut arena.blocks_mut()[index]);
        }
    }

    /// Frees the slots of expired keys in a block.
    fn sweep_block(&mut self, dead: Stamp, format: &Format, block: &mut Block) {
        let Some(ages) = &mut self.ages else { return };
        for slot in 0..format.slots() {
            if format.get(block, slot) != 0 && format.stamp(block, slot) == dead {
                format.put(block, slot, 0, Stamp::NONE);
                ages.discount(dead);
                self.keys -= 1;
            }
        }
    }

    /// Frees the slots of expired keys in the blocks of a key, because a key is to be stored there.
    #[cold]
    pub(super) fn sweep_places(&mut self, dead: Stamp, probe: &Probe, arena: &mut Arena) {
        for (block, format) in probe.blocks() {
            self.sweep_block(dead, format, &mut arena.blocks_mut()[block]);
        }
    }

    /// Returns the stamp of a key, if the shard has the key.
    pub(in crate::filter) fn stamp(
        &self,
        key: Key,
        probe: &Probe,
        blocks: &[Block],
    ) -> Option<Stamp> {
        let slot =
            probe.slot(blocks).map(|(block, format, slot)| format.stamp(&blocks[block], slot));
        let homeless = || self.homeless.iter().find(|(homeless, _)| *homeless == key);
        slot.or_else(|| homeless().map(|&(_, stamp)| stamp))
    }

    /// Replaces the stamp of a key that the shard has.
    pub(super) fn restamp(&mut self, key: Key, stamp: Stamp, probe: &Probe, arena: &mut Arena) {
        let Some(old) = self.stamp(key, probe, arena.blocks()) else { return };
        if let Some((block, format, slot)) = probe.slot(arena.blocks()) {
            let block = &mut arena.blocks_mut()[block];
            format.put(block, slot, format.get(block, slot), stamp);
        }
        for (_, homeless) in self.homeless.iter_mut().filter(|(homeless, _)| *homeless == key) {
            *homeless = stamp;
        }
        if let Some(ages) = &mut self.ages {
            ages.discount(old);
            ages.count(stamp);
        }
    }
}
