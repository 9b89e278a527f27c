//! Functions that wait for a condition.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time limit for events that should happen at once, even on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Pause between two checks of the condition.
const POLL: Duration = Duration::from_millis(2);

/// Waits until `condition` returns true.
///
/// # Panics
/// If the condition is still false after `deadline`. The message contains `what`.
#[track_caller]
pub(crate) fn wait_until(deadline: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    assert!(poll(deadline, || condition().then_some(())).is_some(), "no {what} in {deadline:?}");
}

/// Returns the first result of `look`, or `None` after `deadline`. The function calls `look` at
/// least once.
pub(crate) fn poll<T>(deadline: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + deadline;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() >= end {
            return None;
        }
        sleep(POLL);
    }
}
