//! Detection of consumers that stopped.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Consumer whose heartbeat did not change for the whole time-out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// Name of the consumer with its random suffix, such as `host-17#1f0a…`.
    pub consumer: String,
    /// Heartbeat of the consumer, which did not change during the time-out.
    pub heartbeat: String,
}

/// Watcher of heartbeats over one connection.
///
/// A heartbeat is a counter. The watcher's own monotonic clock measures how long the counter has
/// not changed. A new connection starts a new watch, so an outage of Redis longer than the time-out
/// makes no consumer look stopped. A long pause between two observations also starts a new watch,
/// because the cause of the pause may have stopped the consumers, too.
#[derive(Debug)]
pub struct Reclaimer {
    /// Time without a heartbeat after which a consumer counts as stopped.
    pub timeout: Duration,
    /// Number of the connection over which the heartbeats are read.
    connection: u64,
    seen: HashMap<String, (String, Instant)>,
    /// Times of the first and the last observation, without a long pause between them.
    looks: Option<(Instant, Instant)>,
}

impl Reclaimer {
    /// Starts a watch. A consumer counts as stopped after `timeout` without a heartbeat.
    pub fn new(timeout: Duration) -> Self {
        Self { timeout, connection: 0, seen: HashMap::new(), looks: None }
    }

    /// Starts a new watch if the heartbeats are now read over a connection with another number.
    pub fn use_connection(&mut self, number: u64) {
        if self.connection != number {
            *self = Self { connection: number, ..Self::new(self.timeout) };
        }
    }

    /// Returns the time to wait between two calls of [`Reclaimer::observe`].
    pub fn interval(timeout: Duration) -> Duration {
        timeout / 4
    }

    /// Records every consumer's heartbeat as of `now`, and returns the stopped consumers.
    pub fn observe(&mut self, heartbeats: Vec<(String, String)>, now: Instant) -> Vec<Stopped> {
        let mut before = std::mem::take(&mut self.seen);
        let is_unbroken = |last: Instant| now.duration_since(last) <= self.timeout / 2;
        let unbroken = self.looks.filter(|&(_, last)| is_unbroken(last));
        if unbroken.is_none() {
            before.clear();
        }
        self.looks = Some((unbroken.map_or(now, |(first, _)| first), now));
        let mut stopped = Vec::new();
        for (consumer, heartbeat) in heartbeats {
            let since = match before.remove(&consumer) {
                Some((same, since)) if same == heartbeat => since,
                _ => now,
            };
            if now.duration_since(since) >= self.timeout {
                let (consumer, heartbeat) = (consumer.clone(), heartbeat.clone());
                stopped.push(Stopped { consumer, heartbeat });
            }
            self.seen.insert(consumer, (heartbeat, since));
        }
        stopped
    }

    /// Returns true if the heartbeats were observed for the whole time-out without a long pause.
    pub fn has_watched_long_enough(&self) -> bool {
        self.looks.is_some_and(|(first, last)| last.duration_since(first) >= self.timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_mins(1);

    fn beats(all: &[(&str, u64)]) -> Vec<(String, String)> {
        all.iter().map(|(name, beat)| ((*name).to_owned(), beat.to_string())).collect()
    }

    /// Rule H6 of the protocol: a consumer counts as stopped only if its heartbeat did not change
    /// for the whole time-out.
    #[test]
    fn a_consumer_whose_heartbeat_stays_the_same_for_the_timeout_has_stopped() {
        let (mut reclaimer, start) = (Reclaimer::new(TIMEOUT), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(reclaimer.observe(beats(&[("a", 1), ("b", 1)]), at(0)), []);
        assert_eq!(reclaimer.observe(beats(&[("a", 1), ("b", 2)]), at(30)), []);
        assert_eq!(reclaimer.observe(beats(&[("a", 1), ("b", 2)]), at(59)), []);
        assert!(!reclaimer.has_watched_long_enough());
        let stopped = reclaimer.observe(beats(&[("a", 1), ("b", 2)]), at(60));
        let a = Stopped { consumer: "a".to_owned(), heartbeat: "1".to_owned() };
        assert_eq!(stopped, [a]);
        assert!(reclaimer.has_watched_long_enough());
        assert_eq!(reclaimer.observe(beats(&[("a", 2), ("b", 3)]), at(89)), []);
    }

    /// Rule H6 of the protocol: the cause of a long pause of the watcher or of Redis may have
    /// stopped the consumers, too.
    #[test]
    fn a_long_pause_of_the_watcher_starts_a_new_watch() {
        let (mut reclaimer, start) = (Reclaimer::new(TIMEOUT), Instant::now());
        let mut observe = |seconds| {
            let now = start + Duration::from_secs(seconds);
            let stopped = reclaimer.observe(beats(&[("a", 1)]), now);
            (stopped.len(), reclaimer.has_watched_long_enough())
        };
        for seconds in [0, 15, 100, 130] {
            assert_eq!(observe(seconds), (0, false), "{seconds}");
        }
        assert_eq!(observe(160), (1, true));
    }

    #[test]
    fn the_timeout_of_a_consumer_that_was_missing_starts_again() {
        let (mut reclaimer, start) = (Reclaimer::new(TIMEOUT), Instant::now());
        reclaimer.observe(beats(&[("a", 1)]), start);
        reclaimer.observe(beats(&[]), start + TIMEOUT / 2);
        assert_eq!(reclaimer.observe(beats(&[("a", 1)]), start + TIMEOUT), []);
        assert!(reclaimer.has_watched_long_enough());
    }
}
