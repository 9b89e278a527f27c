//! Requests that the disk has not answered.
//!
//! Only requests that a commit or a recovery waits for are noted: reads, looks at the folder, and
//! writes and syncs of the log. Requests of a snapshot are not.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::disk::ReadFile;

/// Requests that take less time are not remembered.
const SLOW: Duration = Duration::from_secs(1);

/// The requests to one folder that wait for their answers. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Requests(Arc<Mutex<Waiting>>);

/// A request that waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The operation, for people.
    pub what: &'static str,
    /// The time at which it was made.
    pub since: Instant,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    /// Requests oldest first, with their numbers. A thread has one at a time, so there are few.
    all: Vec<(u64, Request)>,
    /// The last slow request that was answered, and its time.
    slow: Option<(Request, Duration)>,
}

impl Requests {
    /// Returns the request that has waited longest.
    pub fn oldest(&self) -> Option<Request> {
        self.waiting().all.first().map(|&(_, request)| request)
    }

    /// Returns the last slow request that was answered, and the time that it took.
    pub fn slow(&self) -> Option<(Request, Duration)> {
        self.waiting().slow
    }

    /// Notes a request. It waits until the guard is dropped.
    pub(super) fn begin(&self, what: &'static str) -> Answer<'_> {
        let mut waiting = self.waiting();
        let number = waiting.next;
        waiting.next += 1;
        waiting.all.push((number, Request { what, since: Instant::now() }));
        Answer { requests: self, number }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Dropped when the disk has answered a request.
#[derive(Debug)]
#[must_use]
pub(super) struct Answer<'a> {
    requests: &'a Requests,
    number: u64,
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        let mut waiting = self.requests.waiting();
        let place = waiting.all.iter().position(|&(number, _)| number == self.number);
        let (_, request) = waiting.all.remove(place.expect("it was noted"));
        let took = request.since.elapsed();
        if took >= SLOW {
            waiting.slow = Some((request, took));
        }
    }
}

/// A file whose reads are noted.
pub(super) struct NotedFile {
    file: Box<dyn ReadFile>,
    requests: Requests,
}

impl NotedFile {
    pub(super) fn new(file: Box<dyn ReadFile>, requests: Requests) -> Self {
        Self { file, requests }
    }
}

impl std::fmt::Debug for NotedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.file.fmt(f)
    }
}

impl ReadFile for NotedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let _answer = self.requests.begin("a read");
        self.file.read_at(buffer, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_request_that_waits_is_told() {
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
}
