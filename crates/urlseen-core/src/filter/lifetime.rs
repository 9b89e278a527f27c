//! Lifetime of a fingerprint: for how many generations it is seen.

use std::ops::Range;
use std::time::Duration;

use super::expire_after::ExpireAfter;
use super::generation::{Generation, LIVE};

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
}

#[cfg(any(test, feature = "storage"))]
impl Lifetime {
    /// Returns the lifetime that the log has as this byte.
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        let lifetime = Self(byte);
        let is_known = (Self(1)..=Self::WHOLE).contains(&lifetime) || lifetime == Self::FOREVER;
        is_known.then_some(lifetime)
    }

    /// Returns the byte for the log.
    pub(crate) fn byte(self) -> u8 {
        self.0
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
        let all: Vec<_> = (0..6).map(|index| lifetimes.of(index).byte()).collect();
        assert_eq!(all, [5, 2, 5, 255, 5, 5]);
        assert!(!lifetimes.are_whole());
    }

    #[test]
    fn bytes_of_no_lifetime_are_refused() {
        let known: Vec<u8> = (0..=255).filter(|&it| Lifetime::from_byte(it).is_some()).collect();
        assert_eq!(known, [1, 2, 3, 4, 5, 255]);
    }
}
