//! Access to Redis: scripts, held requests, rejects, and the daemon's connection.

mod classify;
#[cfg(feature = "link")]
mod connection;
pub mod error;
pub mod hash_tag;
pub mod held;
pub mod nodes_url;
pub mod reject;
pub mod script;
#[cfg(feature = "link")]
pub mod sink;

#[cfg(feature = "link")]
pub use connection::{
    ALLOWED, Node, RedisAddress, RedisAddressError, TlsFileError, TlsFiles, backoff, connect, keys,
    lease, limits, link, packed, preflight,
};
