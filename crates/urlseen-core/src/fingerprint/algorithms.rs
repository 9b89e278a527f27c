//! Algorithms that compute fingerprints. Each one has a definition: the treatment of the URL, and
//! the text of which the fingerprint is the SHA-1.

use super::text::Text;
use crate::choice::{Choice, allowed, choose};

/// Definition of an algorithm.
pub(super) struct AlgorithmDefinition {
    /// Packages and versions whose fingerprints this algorithm reproduces. This text changes
    /// whenever the fingerprints change. Fingerprints stored under another version must not be
    /// compared with new ones.
    version: &'static str,
    /// Treatment of the URL of a request whose `verbatim_url` is set.
    pub(super) verbatim: Verbatim,
    /// Writes the text to be hashed.
    pub(super) write: fn(&RequestParts<'_>, &mut Text),
}

/// Treatment of a URL that the crawler sends unchanged. Such a URL never goes through w3lib's
/// `safe_url_string`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verbatim {
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

    pub(super) const fn definition(self) -> &'static AlgorithmDefinition {
        match self {
            Self::Scrapy => &SCRAPY,
            Self::Scrapy26 => &SCRAPY_2_6,
            Self::ScrapyRedis => &SCRAPY_REDIS,
        }
    }

    /// Returns the name in configurations and on command lines: `scrapy`, `scrapy-2.6` or
    /// `scrapy-redis`.
    pub fn name(self) -> &'static str {
        let named = Self::ALL.iter().find(|(_, it)| *it == self);
        named.expect("every algorithm has a name").0
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

/// Parts of a request that an algorithm hashes.
pub(super) struct RequestParts<'a> {
    /// HTTP method in upper case.
    pub(super) method: &'a str,
    /// URL as the algorithm needs it: canonical, or unchanged.
    pub(super) url: &'a str,
    pub(super) body: &'a [u8],
}

/// `scrapy`: the JSON that Python's `json.dumps(…, sort_keys=True)` writes. Scrapy hashes headers
/// only if a custom fingerprinter asks for them.
const SCRAPY: AlgorithmDefinition = AlgorithmDefinition {
    version: "scrapy 2.19/w3lib 2.5",
    verbatim: Verbatim::AsIs,
    write: |request, text| write_json(b"\", \"headers\": {}, \"method\": \"", request, text),
};

/// `scrapy-2.6`: the method, the canonical URL and the body, without delimiters between them.
///
/// Scrapy 2.6 had no `verbatim_url`, so this fingerprint makes the URL of every request canonical.
const SCRAPY_2_6: AlgorithmDefinition = AlgorithmDefinition {
    version: "scrapy 2.6/w3lib 2.5",
    verbatim: Verbatim::Canonical,
    write: |request, text| {
        text.push(request.method.as_bytes());
        text.push(request.url.as_bytes());
        text.push(request.body);
    },
};

/// `scrapy-redis`: the JSON that Scrapy hashes, but without its headers.
///
/// scrapy-redis itself has no setting `keep_fragments`. If urlseen's `keep_fragments` is true, the
/// canonical URL keeps its fragment.
const SCRAPY_REDIS: AlgorithmDefinition = AlgorithmDefinition {
    version: "scrapy-redis 0.9/w3lib 2.5",
    verbatim: Verbatim::Canonical,
    write: |request, text| write_json(b"\", \"method\": \"", request, text),
};

/// Writes the JSON. `before_method` is the text between the body and the method.
#[inline]
fn write_json(before_method: &[u8], request: &RequestParts<'_>, text: &mut Text) {
    text.push(b"{\"body\": \"");
    text.push_hex(request.body);
    text.push(before_method);
    text.push_json(request.method);
    text.push(b"\", \"url\": \"");
    text.push_json(request.url);
    text.push(b"\"}");
}
