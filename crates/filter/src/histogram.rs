//! Durations of repeated work, in buckets.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Upper bound of the first bucket, in nanoseconds. Each further bound is twice as large.
const FIRST_NS: u64 = 100_000;

/// Number of buckets with an upper bound. The last bound is 52 s.
const BOUNDED: usize = 20;

/// Numbers of durations in buckets, and their sum. The numbers never decrease.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// Numbers of the durations in each bucket. The last bucket has all durations over the last
    /// bound.
    counts: [u64; BOUNDED + 1],
    /// Sum of all durations in nanoseconds.
    sum_ns: u64,
}

impl Histogram {
    /// Adds a duration to its bucket and to the sum.
    pub fn observe(&mut self, took: Duration) {
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        // The number of doublings of the first bound that the duration needs.
        let doublings = took_ns.div_ceil(FIRST_NS).max(1).next_power_of_two().ilog2() as usize;
        self.counts[doublings.min(BOUNDED)] += 1;
        self.sum_ns = self.sum_ns.saturating_add(took_ns);
    }

    /// Returns the number of all durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of all durations.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_ns)
    }

    /// Returns the upper bound of each bucket in seconds, and its number of durations. The last
    /// bound is infinite.
    pub fn buckets(&self) -> [(f64, u64); BOUNDED + 1] {
        std::array::from_fn(|index| {
            // Microseconds, because a division of whole numbers gives the shortest text.
            let bound = ((FIRST_NS / 1000) << index) as f64 / 1e6;
            (if index == BOUNDED { f64::INFINITY } else { bound }, self.counts[index])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        let bucket = |took| {
            let mut histogram = Histogram::default();
            histogram.observe(took);
            let full = histogram.buckets().into_iter().filter(|&(_, count)| count > 0);
            full.map(|(bound, _)| bound).collect::<Vec<_>>()
        };
        let cases = [
            (0, 0.0001),
            (100_000, 0.0001),
            (100_001, 0.0002),
            (200_000, 0.0002),
            (200_001, 0.0004),
            (3_000_000, 0.0032),
            (52_428_800_000, 52.4288),
            (52_428_800_001, f64::INFINITY),
            (u64::MAX, f64::INFINITY),
        ];
        for (ns, bound) in cases {
            assert_eq!(bucket(Duration::from_nanos(ns)), [bound], "{ns} ns");
        }
        assert_eq!(bucket(Duration::MAX), [f64::INFINITY]);
    }

    #[test]
    fn count_and_sum_have_all_durations() {
        let mut histogram = Histogram::default();
        for ms in [1, 20, 300, 60_000] {
            histogram.observe(Duration::from_millis(ms));
        }
        assert_eq!((histogram.count(), histogram.sum()), (4, Duration::from_millis(60_321)));
        let bounds = histogram.buckets().map(|(bound, _)| bound);
        assert!(bounds.is_sorted_by(|one, next| one < next), "{bounds:?}");
    }
}
