//! Reasons why a replay could not start, or ended early.

use std::io;

use urlseen_core::filter::memory::{Available, gib};
use urlseen_core::filter::{BuildError, SpecError};
use urlseen_core::redis::error::LinkError;
use urlseen_engine::engine::StartError;
use urlseen_engine::flow::driver::FlowError;
use urlseen_engine::flow::feed::FeedError;

/// Error that prevented the start of a replay, or ended a replay early.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The input cannot be read.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// The fingerprints that count as seen cannot be read.
    #[error("the fingerprints that count as seen cannot be read: {0}")]
    Seen(FeedError),
    /// Redis or the connection to it failed.
    #[error(transparent)]
    Redis(#[from] LinkError),
    /// The key does not exist.
    #[error(
        "there is no key {key} at {address}, so there is nothing to replay (Redis deletes empty \
         keys); name the keys of the crawl with --key (scrapy-redis: SPIDER:requests, \
         SPIDER:dupefilter), or name files"
    )]
    NoKey {
        /// Name of the key in Redis.
        key: String,
        /// The server and the database.
        address: String,
    },
    /// The key has a type that urlseen does not read items from.
    #[error(
        "the key {key} holds a {found}; items come from a list, a sorted set (as scrapy-redis \
         queues requests) or a set (as scrapy-redis keeps fingerprints)"
    )]
    OtherType {
        /// Name of the key in Redis.
        key: String,
        /// Type of the key in Redis.
        found: String,
    },
    /// The machine does not have enough memory.
    #[error(
        "this does not fit: the filters of the kinds take {:.2} GiB and the exact set {:.2} \
         GiB, and {:.2} GiB are available {}; replay fewer kinds (--kinds) or items (--count), \
         lower filter.capacity, or give the process more memory",
        gib(*filters), gib(*exact), gib(available.bytes), available.limit
    )]
    TooLarge {
        /// Bytes that all filters take.
        filters: u64,
        /// Bytes of the exact set for the expected number of items, or for 0 items if that number
        /// is unknown.
        exact: u64,
        /// Available memory of the process.
        available: Available,
    },
    /// The exact filter failed, or the counting of the judged items failed.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// A filter cannot have the requested kind and size.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The engine cannot start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A filter cannot be created.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The system cannot start a thread.
    #[error("no thread could be started: {0}; is the limit on processes (ulimit -u) too low?")]
    Thread(io::Error),
}
