//! Timeouts and retries of a filter in Redis.

use std::time::Duration;

/// Timeouts and retries of a filter in Redis. The default suits a server that may be unreachable
/// for some seconds.
///
/// ```
/// use urlseen::RedisOptions;
///
/// let options = RedisOptions { retries: 2, ..RedisOptions::default() };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedisOptions {
    /// Maximum number of times that a failed call is repeated, each time on a new connection. The
    /// first wait is 50 ms; each further wait is twice as long, up to 2 s. If the first try added a
    /// key, the repeated call still reports the key as new.
    pub retries: u32,
    /// Maximum time to wait for a connection.
    pub connect_timeout: Duration,
    /// Maximum time to wait for an answer.
    pub response_timeout: Duration,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            retries: 6,
            connect_timeout: Duration::from_secs(2),
            response_timeout: Duration::from_secs(10),
        }
    }
}
