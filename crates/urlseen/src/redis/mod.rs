//! Filters in Redis, and a consumer of held requests.

#[cfg(feature = "tokio")]
mod async_filter;
mod calls;
mod consumer;
mod filter;
mod link;
mod options;
mod patience;

#[cfg(feature = "tokio")]
pub use async_filter::AsyncRedisFilter;
pub use consumer::{Consumer, ConsumerOptions, Delivery};
pub use filter::RedisFilter;
pub use options::RedisOptions;
