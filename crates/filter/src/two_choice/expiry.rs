//! Expiry of the keys of a shard, whose slots have the stamps of their keys.

use super::super::ages::Stamp;
use super::super::generation::{Generation, Generations};
use super::super::region::Block;
use super::arena::Arena;
use super::layout::Key;
use super::shard::{Probe, Shard};
use super::slots::Format;

impl Shard {
    /// Counts the keys by generation, if the keys expire.
    pub(crate) fn generations(&self) -> Option<Generations> {
        self.ages.map(|ages| ages.generations())
    }

    /// Returns the number of keys that have not expired.
    pub(crate) fn live_keys(&self) -> u64 {
        self.keys - self.ages.map_or(0, |ages| ages.expired())
    }

    /// Returns the stamp of expired keys, if slots have such keys.
    #[inline]
    pub(crate) fn dead(&self) -> Option<Stamp> {
        self.ages.as_ref()?.dead()
    }

    /// Begins a generation, unless it or a later one has begun. Before that, frees the slots of all
    /// keys that had expired.
    pub(crate) fn begin_generation(&mut self, generation: Generation, arena: &mut Arena) {
        while let Some(ages) = &self.ages
            && ages.now < generation
        {
            self.sweep(u64::MAX, arena);
            self.ages.as_mut().expect("the shard has generations").advance(generation);
        }
    }

    /// Frees the slots of expired keys in at most this number of blocks.
    pub(crate) fn sweep(&mut self, most: u64, arena: &mut Arena) {
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
                        ages.sweep(dead);
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
        for slot in 0..format.slots {
            if format.get(block, slot) != 0 && format.stamp(block, slot) == dead {
                format.put(block, slot, 0, Stamp::NONE);
                ages.sweep(dead);
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
    pub(crate) fn stamp(&self, key: Key, probe: &Probe, blocks: &[Block]) -> Option<Stamp> {
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
