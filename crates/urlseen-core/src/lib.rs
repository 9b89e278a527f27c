//! Fingerprints, filters, storage and filters in Redis: the parts that the library `urlseen` and
//! the daemon share. Other programs use the crate `urlseen`. The API of this crate can change at
//! any time.
//!
//! | to find | look in |
//! |---|---|
//! | the canonical form of a URL, the order of its query | `fingerprint/canonical/` |
//! | fingerprints of Scrapy and scrapy-redis; equal URLs | `fingerprint/` |
//! | how a kind sets and tests its bits in memory | `filter/two_choice/`, `filter/local/` |
//! | kinds of other projects, their layouts in Redis | `filter/kinds/`, `filter/redisbloom/` |
//! | limits on unseen items | `limit/` |
//! | connections, and the search for the server | `redis/connection/` |
//! | each script of a crawl, such as the commit, with its call | `redis/protocol/` |
//! | a filter in Redis, opened or begun | `redis_filter/` |
//! | log, snapshots, recovery, pruning | `storage/` |
//!
//! Items, batches and the configuration are not here: see the crates that use this one.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod choice;
pub mod filter;
pub mod fingerprint;
pub mod limit;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "redis")]
pub mod redis_filter;
#[cfg(feature = "storage")]
pub mod storage;
