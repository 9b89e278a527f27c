//! Requests to the disk that wait for their answers.
//!
//! Only requests that a commit or a recovery waits for are recorded: reads, checks of the folder,
//! and writes and syncs of the log. The writes of a snapshot are not recorded.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Name of the operation that syncs the log.
pub(super) const LOG_SYNC: &str = "a sync of the log";

/// Minimum duration of a request that is remembered as slow.
const SLOW: Duration = Duration::from_secs(1);

/// Requests to one folder that wait for their answers. Clones share the list.
#[derive(Debug, Clone, Default)]
pub struct Requests(Arc<Mutex<Waiting>>);

/// A request that waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FolderRequest {
    /// Name of the operation, for messages.
    pub what: &'static str,
    /// Time at which the request began.
    pub since: Instant,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    /// Requests oldest first, with their numbers. Each thread has at most one request.
    all: Vec<(u64, FolderRequest)>,
    /// The last slow request that was answered, and its duration.
    slow: Option<(FolderRequest, Duration)>,
    /// Durations of the syncs of the log.
    log_syncs: Histogram,
}

impl Requests {
    /// Returns the request that has waited longest.
    pub fn oldest(&self) -> Option<FolderRequest> {
        self.waiting().all.first().map(|&(_, request)| request)
    }

    /// Returns the last slow request that was answered, and the time that it took.
    pub fn slow(&self) -> Option<(FolderRequest, Duration)> {
        self.waiting().slow
    }

    /// Returns the durations of the syncs of the log since the folder was opened.
    pub fn log_syncs(&self) -> Histogram {
        self.waiting().log_syncs
    }

    /// Records a request. The request counts as waiting until the returned guard is dropped.
    pub(super) fn begin(&self, what: &'static str) -> Answer<'_> {
        Answer { requests: self, number: self.note(FolderRequest { what, since: Instant::now() }) }
    }

    /// Notes a request, and returns its number.
    pub fn note(&self, request: FolderRequest) -> u64 {
        let mut waiting = self.waiting();
        let number = waiting.next;
        waiting.next += 1;
        waiting.all.push((number, request));
        number
    }

    /// Notes that the request with this number was answered at `now`.
    pub fn answered(&self, number: u64, now: Instant) {
        let mut waiting = self.waiting();
        let place = waiting.all.iter().position(|&(other, _)| other == number);
        let (_, request) = waiting.all.remove(place.expect("it was noted"));
        let took = now.saturating_duration_since(request.since);
        if request.what == LOG_SYNC {
            waiting.log_syncs.observe(took);
        }
        if took >= SLOW {
            waiting.slow = Some((request, took));
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard of a request. The caller drops it when the disk has answered.
#[derive(Debug)]
#[must_use]
pub(super) struct Answer<'a> {
    requests: &'a Requests,
    number: u64,
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        self.requests.answered(self.number, Instant::now());
    }
}

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
    fn oldest_returns_the_request_that_has_waited_longest() {
        let requests = Requests::default();
        assert_eq!(requests.oldest(), None);
        let first = requests.begin("one");
        let second = requests.clone();
        let second = second.begin("two");
        assert_eq!(requests.oldest().map(|request| request.what), Some("one"));
        drop(first);
        assert_eq!(requests.oldest().map(|request| request.what), Some("two"));
        drop(second);
        assert_eq!(requests.oldest(), None);
    }

    #[test]
    fn only_syncs_of_the_log_are_in_their_histogram() {
        let requests = Requests::default();
        for what in ["a read", LOG_SYNC, "a write to the log", LOG_SYNC] {
            drop(requests.begin(what));
        }
        assert_eq!(requests.log_syncs().count(), 2);
    }

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
