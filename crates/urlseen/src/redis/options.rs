//! Timeouts and retries of a filter in Redis.

use std::time::Duration;

/// Timeouts and retries of a filter in Redis. The default is for a server that may be away for some
/// seconds.
///
/// ```
/// use urlseen::RedisOptions;
///
/// let options = RedisOptions { retries: 2, ..RedisOptions::default() };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedisOptions {
    /// Most times that a call is repeated, each time on a new connection, before it fails. The
    /// first wait is 50 ms, and each further one is twice as long, at most 2 s. A key that the
    /// first try added is still reported as new.
    pub retries: u32,
    /// Longest wait for a connection.
    pub connect_timeout: Duration,
    /// Longest wait for an answer.
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
