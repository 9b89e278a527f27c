//! What the crate is as a library: filters by the verbs that people know from pyreBloom and
//! luw2007's `bloomfilter`, and what goes into them.

#[cfg(feature = "tokio")]
mod async_filter;
#[cfg(feature = "tokio")]
mod async_redis_filter;
#[cfg(feature = "redis")]
mod calls;
mod canonicalize;
#[cfg(feature = "redis")]
mod consumer;
mod error;
mod exact_filter;
mod filter;
mod fingerprints;
#[cfg(feature = "state")]
mod kept;
#[cfg(feature = "redis")]
mod layout;
#[cfg(feature = "redis")]
mod link;
mod local_filter;
#[cfg(feature = "redis")]
mod patience;
#[cfg(feature = "redis")]
mod redis_filter;
#[cfg(feature = "redis")]
mod redis_options;

#[cfg(feature = "tokio")]
pub use async_filter::AsyncFilter;
#[cfg(feature = "tokio")]
pub use async_redis_filter::AsyncRedisFilter;
pub use canonicalize::canonicalize;
#[cfg(feature = "redis")]
pub use consumer::{Consumer, ConsumerOptions, Delivery};
pub use error::{Error, ErrorKind};
pub use exact_filter::ExactFilter;
pub use filter::Filter;
pub use fingerprints::Fingerprints;
#[cfg(feature = "redis")]
pub use layout::Layout;
pub use local_filter::LocalFilter;
#[cfg(feature = "redis")]
pub use redis_filter::RedisFilter;
#[cfg(feature = "redis")]
pub use redis_options::RedisOptions;
