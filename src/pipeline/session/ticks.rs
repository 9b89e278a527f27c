//! Clocks of the main loop.

use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// The next tick of an interval that may not be there.
pub(super) async fn tick(ticks: Option<&mut Interval>) {
    match ticks {
        Some(ticks) => drop(ticks.tick().await),
        None => std::future::pending().await,
    }
}

/// Ticks that are not made up for where they were missed, the first one interval from now.
pub(super) fn ticks(every: Duration) -> Interval {
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
