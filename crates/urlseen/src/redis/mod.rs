//! Filters in Redis, and a consumer of the requests that the daemon found unseen.

#[cfg(feature = "tokio")]
mod async_filter;
#[cfg(feature = "tokio")]
mod async_link;
mod calls;
mod consumer;
mod filter;
mod link;
mod options;
mod patience;

#[cfg(feature = "tokio")]
pub use async_filter::AsyncRedisFilter;
pub use consumer::{Consumer, ConsumerOptions, Delivery, Item};
pub use filter::RedisFilter;
pub use options::RedisOptions;
