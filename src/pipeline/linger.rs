//! Short wait before a claim, so that items that arrive one by one become one batch.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use urlseen_engine::config;

/// Minimum number of items in a claim after which the session sends the next claim without a wait.
const ENOUGH: u64 = 64;

/// Delays claims while each claim finds only few items.
#[derive(Debug)]
pub(crate) struct Linger {
    span: Duration,
    /// True if the last claim returned few items.
    is_trickle: bool,
    until: Option<Instant>,
}

impl Linger {
    /// Returns the configured linger.
    pub(crate) fn configured(source: &config::Source) -> Self {
        Self::new(source.linger.unwrap_or_default())
    }

    /// Returns a linger that waits for `span` before each claim, as long as claims find only few
    /// items.
    fn new(span: Duration) -> Self {
        Self { span, is_trickle: true, until: None }
    }

    /// Begins the wait. Call it when the first item has arrived in the source.
    pub(crate) fn begin(&mut self) {
        if self.is_trickle && !self.span.is_zero() {
            self.until = Some(Instant::now() + self.span);
        }
    }

    /// Notes the number of items of a claim.
    pub(crate) fn note(&mut self, items: u64) {
        self.is_trickle = items < ENOUGH;
    }

    /// Returns true if the wait is over.
    pub(crate) fn is_over(&self) -> bool {
        self.until.is_none()
    }

    /// Sleeps until the end of the wait. Never returns if no wait has begun.
    pub(crate) async fn end(&mut self) {
        match self.until {
            Some(until) => sleep_until(until).await,
            None => std::future::pending().await,
        }
        self.until = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the daemon waits for more items although the last claim found many.
    #[test]
    fn a_claim_waits_only_if_the_last_claim_found_few_items() {
        let mut linger = Linger::new(Duration::from_secs(1));
        for (items, waits) in [(1, true), (ENOUGH, false), (1000, false), (ENOUGH - 1, true)] {
            linger.note(items);
            linger.until = None;
            linger.begin();
            assert_eq!(linger.is_over(), !waits, "{items}");
        }
        let mut never = Linger::new(Duration::ZERO);
        never.begin();
        assert!(never.is_over());
    }
}
