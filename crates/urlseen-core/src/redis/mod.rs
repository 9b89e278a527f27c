//! Access to Redis: scripts, held requests, rejects, and the daemon's connection.

mod classify;
#[cfg(feature = "link")]
mod connection;
pub mod error;
pub mod hash_tag;
pub mod nodes_url;
pub mod protocol;
pub mod reject;

#[cfg(feature = "link")]
pub use connection::{
    ALLOWED, Node, RedisAddress, RedisAddressError, TlsFileError, TlsFiles, backoff, connect,
    limits, link, packed, preflight,
};
