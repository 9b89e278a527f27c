//! Fingerprints, and the algorithms that compute them.
//!
//! Each algorithm is a variant of [`Algorithm`] with a definition in `algorithms`: the treatment of
//! the URL, and the text that is hashed.

mod algorithms;
mod by_pages;
pub mod canonical;
mod fingerprinter;
mod hex;
mod key;
pub mod lanes;
pub mod pages;
mod partition;
pub mod same;
mod text;

pub use by_pages::ByPages;
pub use fingerprinter::Fingerprinter;
pub use key::Fingerprint;
pub use partition::{Partition, PartitionCount, PartitionCountError};

use crate::choice::{Choice, allowed, choose};
use same::{SameRules, TrackingList};
use text::{RequestParts, Text};

/// Definition of an algorithm.
struct AlgorithmDefinition {
    /// Name in configurations and on command lines.
    name: &'static str,
    /// Packages and versions whose fingerprints this algorithm reproduces. This text changes
    /// whenever the fingerprints change. Fingerprints stored under another version must not be
    /// compared with new ones.
    version: &'static str,
    /// Treatment of the URL of a request whose `verbatim_url` is set.
    verbatim: Verbatim,
    /// Writes the text to be hashed.
    write: fn(&RequestParts<'_>, &mut Text),
}

/// Treatment of a URL that the crawler sends unchanged. Such a URL never goes through w3lib's
/// `safe_url_string`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verbatim {
    /// Hashes the URL unchanged, with its fragment.
    AsIs,
    /// Makes the URL canonical like any other.
    Canonical,
}

/// Algorithm that computes a fingerprint from a request.
///
/// ```
/// use urlseen_core::fingerprint::Algorithm;
///
/// assert_eq!("scrapy-2.6".parse(), Ok(Algorithm::Scrapy26));
/// assert_eq!(Algorithm::default().name(), "scrapy");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Algorithm {
    /// `scrapy.utils.request.fingerprint` of Scrapy 2.7 and later; the reference is Scrapy 2.19.
    #[default]
    Scrapy,
    /// Fingerprint of Scrapy up to 2.6, and of later versions with
    /// `REQUEST_FINGERPRINTER_IMPLEMENTATION = "2.6"`.
    Scrapy26,
    /// `RFPDupeFilter.request_fingerprint` of scrapy-redis 0.9.
    ScrapyRedis,
}

impl Algorithm {
    /// Returns all algorithms, the default first.
    pub const fn all() -> &'static [Self] {
        &[Self::Scrapy, Self::Scrapy26, Self::ScrapyRedis]
    }

    const fn definition(self) -> &'static AlgorithmDefinition {
        match self {
            Self::Scrapy => &algorithms::SCRAPY,
            Self::Scrapy26 => &algorithms::SCRAPY_2_6,
            Self::ScrapyRedis => &algorithms::SCRAPY_REDIS,
        }
    }

    /// Returns the name in configurations and on command lines: `scrapy`, `scrapy-2.6` or
    /// `scrapy-redis`.
    pub fn name(self) -> &'static str {
        self.definition().name
    }

    /// Returns the packages and versions whose fingerprints this algorithm reproduces. Storage for
    /// fingerprints records this text, and compares it before the fingerprints are used.
    pub fn version(self) -> &'static str {
        self.definition().version
    }
}

impl Choice for Algorithm {
    const ALL: &'static [(&'static str, Self)] = &[
        ("scrapy", Self::Scrapy),
        ("scrapy-2.6", Self::Scrapy26),
        ("scrapy-redis", Self::ScrapyRedis),
    ];
}

/// Shows the name of the algorithm.
impl std::fmt::Display for Algorithm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Error for a text that is not the name of a fingerprint algorithm.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no fingerprint algorithm `{name}`; use one of {}", allowed::<Algorithm>())]
pub struct UnknownAlgorithmError {
    name: String,
}

impl std::str::FromStr for Algorithm {
    type Err = UnknownAlgorithmError;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithmError> {
        choose(name).map_err(|_| UnknownAlgorithmError { name: name.to_owned() })
    }
}

/// All settings that determine the fingerprint of a request. Fingerprints can be compared only if
/// they were computed by the same spec.
///
/// ```
/// use urlseen_core::fingerprint::{Algorithm, FingerprintSpec};
///
/// let spec = FingerprintSpec { keep_fragments: true, ..Algorithm::Scrapy26.into() };
/// assert_eq!(spec.algorithm.name(), "scrapy-2.6");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FingerprintSpec {
    /// Algorithm that computes the fingerprint.
    pub algorithm: Algorithm,
    /// True if URLs that differ only in the part after `#` have different fingerprints.
    pub keep_fragments: bool,
    /// List of parameters that do not affect the fingerprint, for all URLs.
    pub drop_tracking: TrackingList,
    /// Rules by which different URLs are the same.
    pub same: SameRules,
}

/// Returns the spec of this algorithm as its package applies it by default.
impl From<Algorithm> for FingerprintSpec {
    fn from(algorithm: Algorithm) -> Self {
        Self { algorithm, ..Self::default() }
    }
}

/// Request of a crawler: the parts that determine its fingerprint.
///
/// ```
/// use urlseen_core::fingerprint::Request;
///
/// let get = Request::get("https://example.com/");
/// let search = Request { method: "POST", body: b"q=shoes", ..get };
/// assert_eq!((search.url, search.method), (get.url, "POST"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// HTTP method in any case. The fingerprinter converts the method to upper case.
    pub method: &'a str,
    /// URL as it was discovered. The fingerprinter makes the URL canonical.
    pub url: &'a str,
    /// Bytes of the body; empty if there is none.
    pub body: &'a [u8],
    /// Scrapy's `meta.verbatim_url`: true if the crawler sends the URL unchanged. The algorithm
    /// `scrapy` then also hashes the URL unchanged.
    pub verbatim_url: bool,
}

impl<'a> Request<'a> {
    /// Creates a GET request without a body.
    pub fn get(url: &'a str) -> Self {
        Self { method: "GET", url, body: &[], verbatim_url: false }
    }
}
