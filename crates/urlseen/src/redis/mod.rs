//! Filters in Redis, and a consumer of the requests that the daemon found unseen.

mod address;
#[cfg(feature = "tokio")]
mod async_filter;
mod blocking_search;
mod circuit_breakers;
mod consumer;
mod filter;
mod link;
mod links;
mod patience;

use std::time::Duration;

#[doc(hidden)]
pub use address::Address;
#[cfg(feature = "tokio")]
pub use async_filter::AsyncRedisFilter;
#[doc(hidden)]
pub use consumer::Outbox;
pub use consumer::{Consumer, ConsumerOptions, Delivery, Item};
pub use filter::RedisFilter;
#[doc(hidden)]
pub use link::Asker;
#[doc(hidden)]
pub use urlseen_redis::protocol::HeldRecord;

/// Timeouts and retries of a filter in Redis.
///
/// The default is for a server that may be unreachable for some seconds.
///
/// ```
/// use urlseen::RedisOptions;
///
/// let options = RedisOptions { retries: 2, ..RedisOptions::default() };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedisOptions {
    /// Maximum number of repetitions of a failed call, each on a new connection. The maximum wait
    /// before the first repetition is 50 ms. It doubles with each repetition, up to 2 s. If the
    /// first try added a key, the repeated call still reports the key as new. The default is 6.
    pub retries: u32,
    /// Maximum time to wait for a connection to a server, and for the answer of a Sentinel or of a
    /// node of a cluster that is asked for the server. The default is 2 s.
    pub connect_timeout: Duration,
    /// Maximum time to wait for an answer. The default is 10 s.
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
