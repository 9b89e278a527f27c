//! Telling consumers that stopped from consumers that are alive.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A consumer whose heartbeat stood still for the whole time-out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// The consumer: its name and a random incarnation.
    pub consumer: String,
    /// The heartbeat that was seen all that time.
    pub heartbeat: String,
}

/// Watches heartbeats on one unbroken connection.
///
/// A heartbeat is a counter, and its age is measured by the watcher's own monotonic clock. So a
/// Redis that was away for longer than the time-out makes no consumer look stopped: a watcher
/// begins anew with each connection.
#[derive(Debug)]
pub struct Reclaimer {
    timeout: Duration,
    seen: HashMap<String, (String, Instant)>,
}

impl Reclaimer {
    /// Counts a consumer as stopped after `timeout` without a heartbeat.
    pub fn new(timeout: Duration) -> Self {
        Self { timeout, seen: HashMap::new() }
    }

    /// The time between two looks.
    pub fn interval(timeout: Duration) -> Duration {
        timeout / 4
    }

    /// Takes note of every consumer's heartbeat as of `now`, and returns the stopped ones.
    pub fn observe(&mut self, heartbeats: Vec<(String, String)>, now: Instant) -> Vec<Stopped> {
        let mut before = std::mem::take(&mut self.seen);
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
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_mins(1);

    fn beats(all: &[(&str, u64)]) -> Vec<(String, String)> {
        all.iter().map(|(name, beat)| ((*name).to_owned(), beat.to_string())).collect()
    }

    /// Rule H6: only a heartbeat that stood still for the whole time-out counts.
    #[test]
    fn a_consumer_stopped_if_its_heartbeat_stood_still_for_the_whole_timeout() {
        let (mut reclaimer, start) = (Reclaimer::new(TIMEOUT), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(reclaimer.observe(beats(&[("a", 1), ("b", 1)]), at(0)), []);
        assert_eq!(reclaimer.observe(beats(&[("a", 1), ("b", 2)]), at(59)), []);
        let stopped = reclaimer.observe(beats(&[("a", 1), ("b", 2)]), at(60));
        let a = Stopped { consumer: "a".to_owned(), heartbeat: "1".to_owned() };
        assert_eq!(stopped, [a]);
        assert_eq!(reclaimer.observe(beats(&[("a", 2), ("b", 3)]), at(119)), []);
    }

    #[test]
    fn a_consumer_that_was_gone_begins_anew() {
        let (mut reclaimer, start) = (Reclaimer::new(TIMEOUT), Instant::now());
        reclaimer.observe(beats(&[("a", 1)]), start);
        reclaimer.observe(beats(&[]), start + TIMEOUT / 2);
        assert_eq!(reclaimer.observe(beats(&[("a", 1)]), start + TIMEOUT), []);
    }
}
