//! Warning about clients that speak HTTP: at most one a minute, for any number of clients.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::warn;

/// Shortest time between two warnings.
const PAUSE: Duration = Duration::from_mins(1);

/// State of the warning, shared by all clients.
#[derive(Debug, Default)]
pub(super) struct Alarm(Mutex<AlarmCount>);

#[derive(Debug, Default)]
struct AlarmCount {
    last: Option<Instant>,
    /// Number of HTTP clients since the last warning, for which no warning was logged.
    silent: u64,
}

impl Alarm {
    /// Logs a warning about a client, unless the last warning is recent.
    pub(super) fn raise(&self, peer: SocketAddr) {
        let mut count = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(silent) = count.turn(Instant::now()) {
            warn!(
                "possible attack: {peer} sent HTTP to serve.listen, as a web page can make a \
                 browser do; the connection is closed, and no part of the request was carried \
                 out. Look for the program at that address, and set URLSEEN_SERVE_PASSWORD. \
                 Other such connections since the last warning: {silent}"
            );
        }
    }
}

impl AlarmCount {
    /// Counts one client. If a warning is due, returns the number of earlier clients since the last
    /// warning.
    fn turn(&mut self, now: Instant) -> Option<u64> {
        if self.last.is_some_and(|last| now.duration_since(last) < PAUSE) {
            self.silent += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.silent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_makes_one_warning_a_minute_with_its_count() {
        let (mut count, begin) = (AlarmCount::default(), Instant::now());
        assert_eq!(count.turn(begin), Some(0));
        for second in 0..60 {
            assert_eq!(count.turn(begin + Duration::from_secs(second)), None);
        }
        assert_eq!(count.turn(begin + PAUSE), Some(60));
        assert_eq!(count.turn(begin + PAUSE * 2), Some(0));
    }
}
