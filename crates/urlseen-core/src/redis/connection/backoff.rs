//! Waits between attempts to reach Redis.

use std::time::Duration;

/// Shortest wait for any jitter, so that attempts never spin.
const SHORTEST: Duration = Duration::from_millis(10);

/// Growing waits between attempts. The bound is 50 ms after the first failure and doubles up to 5
/// s. Attempts then go on for ever at 5 s.
///
/// Each wait is drawn evenly between 10 ms and the bound ("full jitter"). Many processes that lost
/// one server therefore do not return all at once.
///
/// This type neither sleeps nor draws numbers: the caller does both, so tests can check the waits.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    /// Upper bound of the next wait.
    bound: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Duration::from_millis(50), Duration::from_secs(5))
    }
}

impl Backoff {
    /// Starts with waits up to `first`, and doubles the bound up to `longest`. Bounds under 10 ms
    /// count as 10 ms.
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        let first = first.max(SHORTEST);
        Self { first, longest: longest.max(first), bound: first }
    }

    /// Returns the wait after one more failure. `random` is any evenly drawn number.
    pub fn next_wait(&mut self, random: u64) -> Duration {
        let span = self.bound.saturating_sub(SHORTEST);
        self.bound = self.bound.saturating_mul(2).min(self.longest);
        // The product of 64 random bits and the span, divided by 2^64, is even and never above the
        // span.
        let share = (u128::from(random) * span.as_nanos()) >> 64;
        SHORTEST + Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX))
    }

    /// Resets the bound after a success.
    pub fn reset(&mut self) {
        self.bound = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads the bounds by always drawing the largest number.
    fn bounds(backoff: &mut Backoff, count: usize) -> Vec<u128> {
        // This draw is one nanosecond short of the bound.
        (0..count).map(|_| (backoff.next_wait(u64::MAX).as_nanos() + 1) / 1_000_000).collect()
    }

    #[test]
    fn bounds_double_up_to_the_longest_and_stay_there() {
        let expected = [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000];
        assert_eq!(bounds(&mut Backoff::default(), 10), expected);
    }

    #[test]
    fn a_success_starts_over() {
        let mut backoff = Backoff::default();
        bounds(&mut backoff, 9);
        backoff.reset();
        assert_eq!(bounds(&mut backoff, 2), [50, 100]);
    }

    #[test]
    fn the_wait_is_spread_evenly_over_its_span() {
        let mut backoff = Backoff::new(Duration::from_millis(110), Duration::from_millis(110));
        let waits: Vec<u128> = (0..=4)
            .map(|quarter| backoff.next_wait(quarter * (u64::MAX / 4)).as_millis())
            .collect();
        assert_eq!(waits, [10, 34, 59, 84, 109]);
    }

    #[test]
    fn even_a_backoff_of_nothing_does_not_spin() {
        let mut backoff = Backoff::new(Duration::ZERO, Duration::ZERO);
        assert_eq!(backoff.next_wait(0), SHORTEST);
        assert_eq!(backoff.next_wait(u64::MAX), SHORTEST);
    }

    proptest! {
        #[test]
        fn every_wait_lies_between_the_shortest_and_the_longest(
            first in 0u64..10_000,
            longest in 0u64..100_000,
            draws in prop::collection::vec(any::<u64>(), 1..200),
        ) {
            let (first, longest) = (Duration::from_millis(first), Duration::from_millis(longest));
            let mut backoff = Backoff::new(first, longest);
            for random in draws {
                let wait = backoff.next_wait(random);
                prop_assert!(wait >= SHORTEST);
                prop_assert!(wait <= longest.max(first).max(SHORTEST));
            }
        }
    }
}
