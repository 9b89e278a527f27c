//! Redis, as urlseen uses it: scripts, held requests, rejects, and the daemon's connection.

#[cfg(feature = "link")]
mod connection;
pub(crate) mod hash_tag;
pub mod held;
pub mod reject;
pub mod script;

#[cfg(feature = "link")]
pub use connection::{
    ALLOWED, RedisAddress, RedisAddressError, backoff, connect, error, keys, lease, limits, link,
    packed, preflight,
};
