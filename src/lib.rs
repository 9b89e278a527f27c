//! The URL-seen test of a crawl: has this request been seen before?
//!
//! A filter remembers fingerprints of requests in a few bytes each, and a fingerprint is what
//! Scrapy computes, bit for bit, so that `http://a/?y&x` and `http://A:/?x=&y=#top` are one:
//!
//! ```
//! use urlseen::{Filter, Fingerprinter, LocalFilter, Request};
//!
//! let seen = LocalFilter::new(10_000_000, 1e-6)?;
//! let mut scrapy = Fingerprinter::default();
//! assert!(seen.add(scrapy.fingerprint(&Request::get("https://example.com/?b=2&a=1"))?)?);
//! assert!(!seen.add(scrapy.fingerprint(&Request::get("https://EXAMPLE.com?a=1&b=2#x"))?)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | what | where |
//! |---|---|
//! | the verbs of a filter | [`Filter`], and [`AsyncFilter`] for tasks |
//! | in this process's memory | [`LocalFilter`]; kept in a folder with [`LocalFilter::open`] |
//! | in Redis, shared | [`RedisFilter`], [`AsyncRedisFilter`], in the [`Layout`]s of six projects |
//! | requests that the daemon found unseen, held until they are finished | [`Consumer`] |
//! | for tests | [`ExactFilter`] |
//! | what goes in | [`Fingerprinter`], [`Request`], [`Fingerprint`], or any text |
//! | the canonical form of a URL | [`canonicalize`] |
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | none | filters in memory, fingerprints, canonical URLs |
//! | `state` | [`LocalFilter::open`] |
//! | `redis` | [`RedisFilter`], [`Consumer`] |
//! | `tokio` | [`AsyncFilter`], [`AsyncRedisFilter`] |
//! | `tls` | `rediss://` for either |
//! | `cli` (by default) | the command `urlseen` |
//!
//! A program that embeds the crate takes it with `default-features = false`. With `cli`, the
//! modules that the command is made of are public as well, for its tests; they are no part of the
//! library and change without notice. `ARCHITECTURE.md` says which of them may use which.

#![warn(clippy::print_stdout, clippy::print_stderr)]
#![cfg_attr(
    not(feature = "cli"),
    allow(dead_code, unused_imports, reason = "the command uses more of what both are made of")
)]

#[cfg(feature = "cli")]
pub mod admin;
#[cfg(feature = "cli")]
pub mod batch;
#[cfg(feature = "cli")]
pub mod bounded;
#[cfg(all(feature = "redis", not(feature = "cli")))]
mod bounded;
#[cfg(feature = "cli")]
pub mod canonical;
#[cfg(not(feature = "cli"))]
mod canonical;
#[cfg(feature = "cli")]
pub mod choice;
#[cfg(not(feature = "cli"))]
mod choice;
#[cfg(feature = "cli")]
pub mod compare;
#[cfg(feature = "cli")]
pub mod config;
#[cfg(feature = "cli")]
pub mod definition;
#[cfg(not(feature = "cli"))]
mod definition;
#[cfg(feature = "cli")]
pub mod descriptors;
#[cfg(all(feature = "state", not(feature = "cli")))]
mod descriptors;
#[cfg(feature = "cli")]
pub mod desk;
#[cfg(feature = "cli")]
pub mod engine;
#[cfg(feature = "cli")]
pub mod explain;
#[cfg(feature = "cli")]
pub mod filter;
#[cfg(not(feature = "cli"))]
mod filter;
#[cfg(feature = "cli")]
pub mod fingerprint;
#[cfg(not(feature = "cli"))]
mod fingerprint;
#[cfg(feature = "cli")]
pub mod hash;
#[cfg(not(feature = "cli"))]
mod hash;
#[cfg(feature = "cli")]
pub mod hash_tag;
#[cfg(not(feature = "cli"))]
mod hash_tag;
#[cfg(feature = "cli")]
pub mod head;
#[cfg(not(feature = "cli"))]
mod head;
#[cfg(feature = "cli")]
pub mod held;
#[cfg(all(feature = "redis", not(feature = "cli")))]
mod held;
#[cfg(feature = "cli")]
pub mod import;
#[cfg(feature = "cli")]
pub mod input;
#[cfg(feature = "cli")]
pub mod item;
#[cfg(feature = "cli")]
pub mod judge;
#[cfg(all(feature = "redis", not(feature = "cli")))]
mod judge;
#[cfg(feature = "cli")]
pub mod lanes;
#[cfg(not(feature = "cli"))]
mod lanes;
mod library;
#[cfg(feature = "cli")]
pub mod phase;
#[cfg(feature = "cli")]
pub mod pipe;
#[cfg(feature = "cli")]
pub mod pipeline;
#[cfg(feature = "cli")]
pub mod plot;
#[cfg(feature = "cli")]
pub mod printable;
#[cfg(feature = "cli")]
pub mod protocol;
#[cfg(feature = "cli")]
pub mod redis;
#[cfg(feature = "cli")]
pub mod redisbloom;
#[cfg(not(feature = "cli"))]
mod redisbloom;
#[cfg(feature = "cli")]
pub mod reject;
#[cfg(all(feature = "redis", not(feature = "cli")))]
mod reject;
#[cfg(feature = "cli")]
pub mod rejects;
#[cfg(feature = "cli")]
pub mod replay;
#[cfg(feature = "cli")]
pub mod request;
#[cfg(not(feature = "cli"))]
mod request;
#[cfg(feature = "cli")]
pub mod script;
#[cfg(all(feature = "redis", not(feature = "cli")))]
mod script;
#[cfg(feature = "cli")]
pub mod serve;
#[cfg(feature = "cli")]
pub mod shared;
#[cfg(feature = "cli")]
pub mod shutdown;
#[cfg(feature = "cli")]
pub mod sink;
#[cfg(feature = "cli")]
pub mod source;
#[cfg(feature = "cli")]
pub mod state;
#[cfg(all(feature = "state", not(feature = "cli")))]
mod state;
#[cfg(feature = "cli")]
pub mod store;
#[cfg(feature = "cli")]
pub mod telemetry;
#[cfg(feature = "cli")]
pub mod transfer;
#[cfg(feature = "cli")]
pub mod upkeep;

#[doc(inline)]
pub use crate::{
    canonical::{Fragments, Refusal},
    fingerprint::{Algorithm, Fingerprint, Fingerprinter, UnknownAlgorithm},
    request::Request,
};
#[cfg(feature = "tokio")]
pub use library::{AsyncFilter, AsyncRedisFilter};
#[cfg(feature = "redis")]
pub use library::{Consumer, ConsumerOptions, Delivery, Layout, RedisFilter, RedisOptions};
pub use library::{Error, ErrorKind, ExactFilter, Filter, Fingerprints, LocalFilter, canonicalize};
