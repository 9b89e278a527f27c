//! How a filter in Redis is asked.

use std::time::Duration;

use crate::Fingerprints;

/// How a filter in Redis is asked. The default is for Scrapy's fingerprints and a server that may
/// be away for some seconds.
///
/// ```
/// use urlseen::RedisOptions;
///
/// let options = RedisOptions { retries: 2, ..RedisOptions::default() };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedisOptions {
    /// Whose fingerprints the filter holds.
    pub fingerprints: Fingerprints,
    /// How many times a question is put again, each on a new connection, before it fails: after 50
    /// ms, and then twice as long each time, 2 s at most. What was added the first time is not
    /// taken for seen then.
    pub retries: u32,
    /// How long to wait for a connection.
    pub connect_timeout: Duration,
    /// How long to wait for an answer.
    pub response_timeout: Duration,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            fingerprints: Fingerprints::default(),
            retries: 6,
            connect_timeout: Duration::from_secs(2),
            response_timeout: Duration::from_secs(10),
        }
    }
}
