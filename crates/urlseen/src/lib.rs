//! Filters that tell whether a request of a crawl has been seen before.
//!
//! A filter stores the fingerprints of requests, in a few bytes for each request. The fingerprints
//! equal those of Scrapy, bit for bit. So `https://example.com/?b=2&a=1` and
//! `https://EXAMPLE.com?a=1&b=2#x` are the same request:
//!
//! ```
//! use urlseen::{FilterExt, FilterSpec, Fingerprinter, LocalFilter, Request};
//!
//! let seen = LocalFilter::new(&FilterSpec::native(10_000_000, 1e-6))?;
//! let mut scrapy = Fingerprinter::default();
//! assert!(seen.add(scrapy.fingerprint(&Request::get("https://example.com/?b=2&a=1"))?)?);
//! assert!(!seen.add(scrapy.fingerprint(&Request::get("https://EXAMPLE.com?a=1&b=2#x"))?)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | topic | items |
//! |---|---|
//! | any filter, for threads | [`Filter`]; [`FilterExt`] adds methods for keys of any type |
//! | any filter, for tasks | [`AsyncFilter`]; [`AsyncFilterExt`] adds the same methods |
//! | kind, size and fingerprints of a filter | [`FilterSpec`], [`Kind`] |
//! | a filter in this process's memory | [`LocalFilter::new`] |
//! | a filter in memory that is stored in a folder | [`LocalFilter::open`] |
//! | a filter in memory that grows | [`Kind::TWO_CHOICE`], [`FilterSpec::grow_to`] |
//! | keys that are forgotten | [`LocalFilter::forget`] |
//! | the hashes of all keys | [`LocalFilter::key_hashes`] |
//! | a filter in Redis that processes share | [`RedisFilter`], [`AsyncRedisFilter`] |
//! | unseen requests from the daemon, each held in Redis until it is finished | [`Consumer`] |
//! | an item that a consumer pushes | [`Item`] |
//! | a filter for tests | [`ExactFilter`] |
//! | keys of a filter | [`Fingerprinter`], [`Request`], [`Fingerprint`], or any text |
//! | the canonical form of a URL | [`canonicalize()`] |
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | none | filters in memory, for threads and tasks; fingerprints, canonical URLs |
//! | `storage` | [`LocalFilter::open`] |
//! | `redis` | [`RedisFilter`], [`Consumer`] |
//! | `tokio` | [`AsyncRedisFilter`] |
//! | `tls` | addresses with `rediss://` |

#![warn(clippy::print_stdout, clippy::print_stderr)]

use urlseen_fingerprint::canonical::{Buffers, push_request_url};

mod async_filter;
mod error;
mod exact_filter;
mod filter;
mod local_filter;
#[cfg(feature = "redis")]
mod redis;
mod spec;

#[cfg(feature = "redis")]
pub use self::redis::*;
pub use async_filter::{AsyncFilter, AsyncFilterExt, FilterFuture};
pub use error::{Error, ErrorKind};
pub use exact_filter::ExactFilter;
pub use filter::{Filter, FilterExt};
pub use local_filter::{KeyHashes, LocalFilter};
pub use spec::FilterSpec;
pub use urlseen_filter::Kind;
pub use urlseen_fingerprint::Request;
pub use urlseen_fingerprint::canonical::{CanonicalForm, CanonicalSpec, CanonicalizeError};
pub use urlseen_fingerprint::{
    Algorithm, Fingerprint, FingerprintSpec, Fingerprinter, UnknownAlgorithmError,
};

/// Returns the canonical form of a URL, which Scrapy hashes for the fingerprint of a request.
///
/// The result equals `w3lib.url.canonicalize_url(scrapy.Request(url).url)`, byte for byte. URLs
/// have the same canonical form if they differ only in the order of the query's fields, in escapes,
/// or in the case of the host. `spec` selects the version of w3lib, and whether the result keeps
/// the part after the `#`.
///
/// A [`Fingerprinter`] computes the canonical form by itself. For many URLs,
/// a [`Fingerprinter`] is faster than this function.
///
/// # Errors
/// Scrapy or w3lib would refuse the URL. The error states the reason.
///
/// ```
/// use urlseen::{CanonicalSpec, canonicalize};
///
/// let canonical = canonicalize("HTTPS://Example.com/a b?y=1&x=2#top", CanonicalSpec::default())?;
/// assert_eq!(canonical, "https://example.com/a%20b?x=2&y=1");
/// assert!(canonicalize("no/scheme", CanonicalSpec::default()).is_err());
/// # Ok::<(), urlseen::CanonicalizeError>(())
/// ```
pub fn canonicalize(url: &str, spec: CanonicalSpec) -> Result<String, CanonicalizeError> {
    let mut canonical = String::with_capacity(url.len());
    push_request_url(url, spec, &mut Buffers::default(), &mut canonical)?;
    Ok(canonical)
}
