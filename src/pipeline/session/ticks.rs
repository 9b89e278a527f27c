//! Timers of a session's loop.

use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// Waits for the next tick of an interval. If there is no interval, waits forever.
pub(super) async fn tick(ticks: Option<&mut Interval>) {
    match ticks {
        Some(ticks) => drop(ticks.tick().await),
        None => std::future::pending().await,
    }
}

/// Returns an interval whose first tick is one interval from now. Missed ticks are skipped.
pub(super) fn ticks(every: Duration) -> Interval {
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
