//! Generations: periods of equal length, in which fingerprints are let through.

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
}
