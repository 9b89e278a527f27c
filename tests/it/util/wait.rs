//! Waiting for a condition, never for a time.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time limit, on a busy machine, for anything that should happen at once.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Pause between two looks.
const POLL: Duration = Duration::from_millis(2);

/// Returns once `condition` holds.
///
/// # Panics
/// If it does not hold within `deadline`; the message names `what` was waited for.
#[track_caller]
pub(crate) fn wait_until(deadline: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    assert!(poll(deadline, || condition().then_some(())).is_some(), "no {what} in {deadline:?}");
}

/// Returns the first result of `look`, or `None` after `deadline`. It looks at least once.
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
