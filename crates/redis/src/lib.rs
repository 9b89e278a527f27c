//! Access to Redis: scripts, held requests, rejects, and the daemon's connection.
//!
//! | to find | look in |
//! |---|---|
//! | connections of the daemon | `connection/` |
//! | the search for the server, by Sentinels or in a cluster | `server_search.rs` |
//! | each script of a crawl, such as the commit, with its call | `protocol/` |
//! | a filter in Redis, opened or begun | `filter/` |
//! | items that are rejected | `reject/` |
//!
//! How a kind places its bits is in `urlseen-filter`; batches and their order are in the daemon
//! (`src/pipeline/`). The library `urlseen` uses this crate without the feature `link`.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod classify;
#[cfg(feature = "link")]
mod connection;
pub mod error;
pub mod filter;
pub mod hash_tag;
pub mod nodes_url;
pub mod protocol;
pub mod reject;
pub mod server_search;

#[cfg(feature = "link")]
pub use connection::{
    ALLOWED, RedisAddress, RedisAddressError, TlsFileError, TlsFiles, backoff, connect, limits,
    link, packed, preflight,
};
