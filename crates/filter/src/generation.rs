//! Generations: periods of equal length, in which fingerprints are let through. Lifetime of a
//! fingerprint: for how many generations it is seen.

use std::ops::Range;
use std::time::Duration;

use super::expire_after::ExpireAfter;

/// Number of generations in which a key is seen: the one in which it was let through, and the five
/// after it.
pub const LIVE: u32 = 6;

/// Number of a generation. Generation 0 began in 1970, and each one lasts a fifth of
/// `filter.expire_after`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Generation(u32);

impl Generation {
    /// Generation of keys that never expire.
    pub const FOREVER: Self = Self(u32::MAX);

    /// Returns the generation with this number. The highest number is [`Generation::FOREVER`].
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number of the generation.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns the generation that comes `count` later.
    #[must_use]
    pub const fn later(self, count: u32) -> Self {
        Self(self.0.saturating_add(count))
    }

    /// Returns the generation that came `count` earlier.
    #[must_use]
    pub(crate) const fn earlier(self, count: u32) -> Self {
        Self(self.0.saturating_sub(count))
    }

    /// Returns the age of keys of this generation in generation `now`: 0 if both are the same.
    /// Returns `None` if these keys have expired. Keys that never expire have the age 0.
    pub(crate) fn age_in(self, now: Self) -> Option<u32> {
        if self == Self::FOREVER {
            return Some(0);
        }
        let age = now.0.saturating_sub(self.0);
        (age < LIVE).then_some(age)
    }
}

/// Keys of a filter, or of a shard, by generation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Generations {
    /// The present generation.
    pub now: Generation,
    /// Number of keys by age in generations. The keys that were let through in the present
    /// generation come first.
    pub keys: [u64; LIVE as usize],
    /// Number of keys that never expire.
    pub forever: u64,
    /// Number of expired keys that still take a slot.
    pub expired: u64,
    /// Number of expired keys whose slots were freed since the filter was made or loaded.
    pub swept: u64,
}

impl Generations {
    /// Adds the keys of other shards of the same filter.
    #[must_use]
    pub(crate) fn with(mut self, other: &Self) -> Self {
        self.now = self.now.max(other.now);
        self.keys.iter_mut().zip(other.keys).for_each(|(all, keys)| *all += keys);
        self.forever += other.forever;
        self.expired += other.expired;
        self.swept += other.swept;
        self
    }
}

/// Number of generations after which a fingerprint passes again: 1 to 5, or never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lifetime(u8);

impl Lifetime {
    /// Lifetime of `filter.expire_after`: five generations.
    pub const WHOLE: Self = Self(5);
    /// The fingerprint never passes again.
    pub const FOREVER: Self = Self(u8::MAX);

    /// Returns the shortest lifetime of at least this time, and at most [`Lifetime::WHOLE`].
    /// `expire_after` is that of the filter.
    pub fn at_least(time: Duration, expire_after: ExpireAfter) -> Self {
        let generations = time.as_nanos().div_ceil(expire_after.step().as_nanos()).max(1);
        u8::try_from(generations).map_or(Self::WHOLE, |it| Self(it).min(Self::WHOLE))
    }

    /// Returns the generation under which the filter stores a fingerprint that was let through in
    /// `generation`. A shorter lifetime is an earlier generation.
    pub fn stored_in(self, generation: Generation) -> Generation {
        if self == Self::FOREVER || generation == Generation::FOREVER {
            return Generation::FOREVER;
        }
        const { assert!(Self::WHOLE.0 as u32 == LIVE - 1) }
        generation.earlier(u32::from(Self::WHOLE.0 - self.0))
    }

    /// Returns the byte that the log has for this lifetime.
    pub fn byte(self) -> u8 {
        self.0
    }

    /// Returns the lifetime that the log has as this byte.
    pub fn from_byte(byte: u8) -> Option<Self> {
        let lifetime = Self(byte);
        let is_known = (Self(1)..=Self::WHOLE).contains(&lifetime) || lifetime == Self::FOREVER;
        is_known.then_some(lifetime)
    }
}

/// Time at which a fingerprint was let through, and its lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LetThrough {
    /// Generation in which it was let through; [`Generation::FOREVER`] if fingerprints do not
    /// expire.
    pub generation: Generation,
    /// Time for which it is seen, in generations.
    pub lifetime: Lifetime,
}

impl LetThrough {
    /// Returns the generation whose start lets the fingerprint pass again; `None` if it never does.
    pub fn passes_again(self) -> Option<Generation> {
        let stored = self.lifetime.stored_in(self.generation);
        (stored != Generation::FOREVER).then(|| stored.later(LIVE))
    }
}

impl Default for Lifetime {
    fn default() -> Self {
        Self::WHOLE
    }
}

/// Lifetimes of fingerprints in a list, in their order. Empty if all are [`Lifetime::WHOLE`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lifetimes(Vec<Lifetime>);

impl Lifetimes {
    /// Adds the lifetime of the fingerprint at `index`, which comes after all others.
    pub fn push(&mut self, index: usize, lifetime: Lifetime) {
        if lifetime != Lifetime::WHOLE {
            self.0.resize(index, Lifetime::WHOLE);
            self.0.push(lifetime);
        }
    }

    /// Returns the lifetime of the fingerprint at `index`.
    pub fn of(&self, index: usize) -> Lifetime {
        self.0.get(index).copied().unwrap_or_default()
    }

    /// Returns the lifetimes of the fingerprints in `range`.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Self {
        let mut part = Self::default();
        for (index, place) in range.take_while(|&place| place < self.0.len()).enumerate() {
            part.push(index, self.of(place));
        }
        part
    }

    /// Returns true if all lifetimes are [`Lifetime::WHOLE`].
    pub fn are_whole(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_expires_when_the_sixth_generation_after_its_own_begins() {
        let inserted = Generation::new(100);
        let age = |now| inserted.age_in(Generation::new(now));
        assert_eq!((age(100), age(105), age(106)), (Some(0), Some(5), None));
        assert_eq!(Generation::FOREVER.age_in(Generation::new(4_000_000)), Some(0));
    }

    #[test]
    fn a_lifetime_is_rounded_up_to_generations() {
        let month: ExpireAfter = "30d".parse().unwrap();
        let of = |hours| Lifetime::at_least(Duration::from_hours(hours), month).0;
        assert_eq!((of(0), of(1), of(6 * 24), of(6 * 24 + 1)), (1, 1, 1, 2));
        assert_eq!((of(29 * 24), of(30 * 24), of(400_000)), (5, 5, 5));
    }

    #[test]
    fn a_fingerprint_passes_again_after_its_lifetime() {
        let now = Generation::new(100);
        for generations in 1..=5 {
            let stored = Lifetime(generations).stored_in(now);
            let passes = |later| stored.age_in(now.later(later)).is_none();
            let later = u32::from(generations) + 1;
            assert!(!passes(later - 1) && passes(later), "{generations}");
        }
        assert_eq!(Lifetime::FOREVER.stored_in(now), Generation::FOREVER);
        assert_eq!(Lifetime(1).stored_in(Generation::FOREVER), Generation::FOREVER);
    }

    #[test]
    fn lifetimes_are_those_of_their_fingerprints() {
        let mut lifetimes = Lifetimes::default();
        for (index, lifetime) in [5, 2, 5, 255, 5].into_iter().enumerate() {
            lifetimes.push(index, Lifetime(lifetime));
        }
        let all: Vec<_> = (0..6).map(|index| lifetimes.of(index).0).collect();
        assert_eq!(all, [5, 2, 5, 255, 5, 5]);
        assert!(!lifetimes.are_whole());
    }

    #[test]
    fn bytes_of_no_lifetime_are_refused() {
        let known: Vec<u8> = (0..=255).filter(|&it| Lifetime::from_byte(it).is_some()).collect();
        assert_eq!(known, [1, 2, 3, 4, 5, 255]);
    }
}
