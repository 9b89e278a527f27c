//! Generations of the keys of a shard whose keys expire.
//!
//! Each slot has the *stamp* of its key, of three bits. The stamps 1 to 7 stand for generations, in
//! turn. Six generations are live. The keys of the one before them have expired; their stamp is
//! *dead*. A sweep frees their slots, a few at a time. The generation that begins next has the dead
//! stamp, so before it begins the sweep must end.

use bytemuck::{Pod, Zeroable};

use super::generation::{Generation, Generations, LIVE};

/// Number of stamps that stand for generations.
const TURN: u32 = LIVE + 1;

/// Stamp of a slot: the name of the generation of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Zeroable, Pod)]
#[repr(transparent)]
pub(super) struct Stamp(pub(super) u8);

impl Stamp {
    /// Number of different stamps, with [`Stamp::NONE`].
    const COUNT: usize = TURN as usize + 1;

    /// Stamp of keys that never expire, and of all keys of a filter without generations.
    pub(super) const NONE: Self = Self(0);

    /// Returns the stamp of the keys of a generation.
    pub(super) fn of(generation: Generation) -> Self {
        if generation == Generation::FOREVER {
            return Self::NONE;
        }
        // At most 7.
        #[allow(clippy::cast_possible_truncation)]
        Self((generation.get() % TURN) as u8 + 1)
    }

    /// Returns the generation of a key with this stamp. The key may have expired at last in
    /// generation `now`.
    pub(super) fn generation(self, now: Generation) -> Generation {
        if self == Self::NONE {
            return Generation::FOREVER;
        }
        let [first, last] = [self, Self::of(now)].map(|stamp| u32::from(stamp.0));
        now.earlier((last + TURN - first) % TURN)
    }

    /// Returns the index of the stamp in a list of all stamps.
    fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Generations of the keys of a shard.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShardAges {
    pub(super) now: Generation,
    /// Number of keys with each stamp.
    counts: [u64; Stamp::COUNT],
    /// Number of expired keys whose slots were freed.
    swept: u64,
    /// Number of the slot, or of the block of slots, with which the sweep continues.
    pub(super) next: u64,
}

impl ShardAges {
    /// Begins with an empty shard, long before any key is inserted.
    pub(super) fn new() -> Self {
        Self { now: Generation::default(), counts: [0; Stamp::COUNT], swept: 0, next: 0 }
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

    /// Begins the next generation, or `generation` at once if the shard has no keys that expire. No
    /// slot has an expired key.
    pub(super) fn advance(&mut self, generation: Generation) {
        let has_keys = self.counts[1..].iter().any(|&count| count > 0);
        self.now = if has_keys { self.now.later(1) } else { generation };
        self.next = 0;
    }

    pub(super) fn count(&mut self, stamp: Stamp) {
        self.counts[stamp.index()] += 1;
    }

    pub(super) fn discount(&mut self, stamp: Stamp) {
        self.counts[stamp.index()] -= 1;
    }

    /// Counts an expired key whose slot was freed.
    pub(super) fn sweep(&mut self, dead: Stamp) {
        self.discount(dead);
        self.swept += 1;
    }

    /// Counts the keys by generation.
    pub(super) fn generations(&self) -> Generations {
        let keys = std::array::from_fn(|age| {
            let generation = self.now.get().checked_sub(u32::try_from(age).expect("below 6"));
            let stamp = generation.map(|number| Stamp::of(Generation::new(number)));
            stamp.map_or(0, |stamp| self.counts[stamp.index()])
        });
        let forever = self.counts[Stamp::NONE.index()];
        Generations { now: self.now, keys, forever, expired: self.expired(), swept: self.swept }
    }
}
