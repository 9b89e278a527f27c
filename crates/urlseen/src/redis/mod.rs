//! Filters in Redis, and a consumer of the requests that the daemon found unseen.

mod address;
#[cfg(feature = "tokio")]
mod async_filter;
#[cfg(feature = "tokio")]
mod async_link;
mod calls;
mod cluster;
mod consumer;
mod filter;
mod link;
mod options;
mod patience;
mod sentinels;
mod server;

#[cfg(feature = "tokio")]
pub use async_filter::AsyncRedisFilter;
pub use consumer::{Consumer, ConsumerOptions, Delivery, Item};
pub use filter::RedisFilter;
pub use options::RedisOptions;
