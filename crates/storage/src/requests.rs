//! Requests to the disk that wait for their answers.
//!
//! Only requests that a commit or a recovery waits for are recorded: reads, checks of the folder,
//! and writes and syncs of the log. The writes of a snapshot are not recorded.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use urlseen_filter::histogram::Histogram;

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
}
