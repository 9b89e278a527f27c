//! Age of the oldest item that waits.
//!
//! A list does not record when its items arrived. But a claim takes all items of the source. So the
//! claimed items arrived after the claim before, and the others arrived after the last claim. While
//! the source is empty, the session learns this from each wait that finds nothing.

use std::time::Instant;

/// Times at which the source became empty.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// The items of the source arrived after this time.
    last: Instant,
    /// The claimed items arrived after this time.
    before: Instant,
}

impl Arrivals {
    /// Begins at the start of a run. Items that already wait count from now.
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self { last: now, before: now }
    }

    /// Notes a claim that was sent at this time and took all items of the source.
    pub(super) fn claimed(&mut self, sent: Instant) {
        (self.before, self.last) = (self.last, sent);
    }

    /// Notes that the source was empty at this time.
    pub(super) fn was_empty(&mut self, at: Instant) {
        self.last = at;
    }

    /// Returns a time after which all waiting items arrived. `None` if no item waits.
    pub(super) fn since(&self, is_claimed: bool, is_source_empty: bool) -> Option<Instant> {
        match (is_claimed, is_source_empty) {
            (true, _) => Some(self.before),
            (false, false) => Some(self.last),
            (false, true) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn waiting_items_arrived_after_the_claim_before_theirs() {
        let mut arrivals = Arrivals::new();
        let start = arrivals.last;
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(arrivals.since(false, true), None);
        assert_eq!(arrivals.since(false, false), Some(at(0)));
        arrivals.claimed(at(5));
        assert_eq!(arrivals.since(true, false), Some(at(0)));
        assert_eq!(arrivals.since(false, false), Some(at(5)));
        arrivals.claimed(at(9));
        assert_eq!(arrivals.since(true, true), Some(at(5)));
        assert_eq!(arrivals.since(false, true), None);
        arrivals.was_empty(at(20));
        arrivals.claimed(at(21));
        assert_eq!(arrivals.since(true, false), Some(at(20)));
    }
}
