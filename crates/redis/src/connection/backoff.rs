//! Waits between attempts to reach Redis.

use std::time::Duration;

/// Minimum of all waits. Without a minimum, a random wait near 0 would cause an attempt at once.
const SHORTEST: Duration = Duration::from_millis(10);

/// Upper bound of the first wait, and upper bound of all waits.
const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(5);

/// Growing waits between attempts. The bound is 50 ms after the first failure and doubles up to 5
/// s. After that, the bound stays at 5 s.
///
/// Each wait is a random time, evenly distributed between 10 ms and the bound ("full jitter"). So
/// if many processes lose one server, they do not all return at the same time.
///
/// The caller sleeps and draws the random numbers, so that tests can check the waits.
#[derive(Debug, Clone)]
pub struct Backoff {
    /// Upper bound of the next wait.
    bound: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { bound: FIRST }
    }
}

impl Backoff {
    /// Returns the wait after one more failure. `random` is a random number, evenly distributed
    /// over all values of its type.
    pub fn next_wait(&mut self, random: u64) -> Duration {
        let span = self.bound.saturating_sub(SHORTEST);
        self.bound = (self.bound * 2).min(LONGEST);
        // The product of 64 random bits and the span, divided by 2^64, is evenly distributed and
        // never above the span.
        let share = (u128::from(random) * span.as_nanos()) >> 64;
        SHORTEST + Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX))
    }

    /// Resets the bound after a success.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the bounds of the next waits, in milliseconds. The largest random number gives the
    /// longest wait.
    fn bounds(backoff: &mut Backoff, count: usize) -> Vec<u128> {
        // The longest wait is one nanosecond shorter than the bound.
        (0..count).map(|_| (backoff.next_wait(u64::MAX).as_nanos() + 1) / 1_000_000).collect()
    }

    #[test]
    fn bounds_double_up_to_the_longest_and_stay_there() {
        let expected = [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000];
        assert_eq!(bounds(&mut Backoff::default(), 10), expected);
    }

    #[test]
    fn a_success_resets_the_bound() {
        let mut backoff = Backoff::default();
        bounds(&mut backoff, 9);
        backoff.reset();
        assert_eq!(bounds(&mut backoff, 2), [50, 100]);
    }

    #[test]
    fn the_wait_is_spread_evenly_over_its_span() {
        let waits: Vec<u128> = (0..=4)
            .map(|quarter| Backoff::default().next_wait(quarter * (u64::MAX / 4)).as_millis())
            .collect();
        assert_eq!(waits, [10, 19, 29, 39, 49]);
    }

    proptest! {
        #[test]
        fn every_wait_lies_between_the_shortest_and_the_longest(
            draws in prop::collection::vec(any::<u64>(), 1..200),
        ) {
            let mut backoff = Backoff::default();
            for random in draws {
                let wait = backoff.next_wait(random);
                prop_assert!((SHORTEST..=LONGEST).contains(&wait));
            }
        }
    }
}
