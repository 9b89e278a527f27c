//! Calendar: which generation a date belongs to.

use std::time::{Duration, SystemTime};

use super::expire_after::ExpireAfter;
use super::generation::Generation;
use super::lifetime::Lifetime;

/// Dates of the generations of a filter whose fingerprints expire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calendar {
    expire_after: ExpireAfter,
    /// The present generation.
    now: Generation,
    /// Time of day at which the present generation began.
    began: SystemTime,
}

impl Calendar {
    /// Makes the calendar of the generation `now`, which began at this time of day.
    pub fn new(expire_after: ExpireAfter, now: Generation, began: SystemTime) -> Self {
        Self { expire_after, now, began }
    }

    /// Returns the present generation.
    pub fn now(&self) -> Generation {
        self.now
    }

    /// Returns the generation of a date. `None` for a date after the present generation: otherwise
    /// such a date would belong to each generation in turn.
    pub fn generation_of(&self, date: SystemTime) -> Option<Generation> {
        let step = self.expire_after.step();
        if date.duration_since(self.began).is_ok_and(|later| later >= step) {
            return None;
        }
        let before = self.began.duration_since(date).unwrap_or_default();
        let generations = before.as_nanos().div_ceil(step.as_nanos());
        Some(self.now.earlier(u32::try_from(generations).unwrap_or(u32::MAX)))
    }

    /// Returns the lifetime of a fingerprint that is to pass again after this time.
    pub fn lifetime(&self, time: Duration) -> Lifetime {
        Lifetime::at_least(time, self.expire_after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_belongs_to_the_generation_that_lasted_then() {
        let hours = |hours| SystemTime::UNIX_EPOCH + Duration::from_hours(hours);
        let now = Generation::new(50);
        let calendar = Calendar::new("5h".parse().unwrap(), now, hours(100));
        let of = |date| 50 - calendar.generation_of(date).expect("no later date").get();
        let soon = hours(100) + Duration::from_mins(50);
        assert_eq!((of(hours(100)), of(soon)), (0, 0));
        assert_eq!(calendar.generation_of(hours(101)), None, "in the future");
        assert_eq!((of(hours(99)), of(hours(98)), of(hours(0))), (1, 2, 50));
        assert_eq!(of(hours(98) + Duration::from_secs(1)), 2, "a second after its start");
        assert_eq!(of(hours(98) - Duration::from_secs(1)), 3, "a second before its start");
    }
}
