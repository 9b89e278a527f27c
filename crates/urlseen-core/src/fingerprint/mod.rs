//! What identifies a request: the fingerprint, and the algorithms that compute it.
//!
//! An algorithm is one file here, which says how it treats the URL and what it hashes, and one line
//! in the registry below.

pub mod canonical;
mod fingerprinter;
mod hex;
mod key;
pub mod lanes;
pub mod request;
mod text;

pub use fingerprinter::Fingerprinter;
pub use key::Fingerprint;

use text::{RequestParts, Text};

/// What an algorithm's file defines.
struct AlgorithmDefinition {
    /// Its name in configurations and on command lines.
    name: &'static str,
    /// What its fingerprints equal, and since when: it changes with them, and what was kept under
    /// another is not to be compared with what is computed now.
    version: &'static str,
    /// What it does with the URL of a request whose `verbatim_url` is set.
    verbatim: Verbatim,
    /// Writes what is hashed.
    write: fn(&RequestParts<'_>, &mut Text),
}

/// What an algorithm does with a URL that is to be sent as it is. Such a URL is never made safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verbatim {
    /// Hashes it as it is, fragment and all.
    AsIs,
    /// Makes it canonical all the same.
    Canonical,
}

/// Makes [`Algorithm`] out of `Variant => file` lines; the files define `DEFINITION`.
macro_rules! algorithms {
    ($($(#[$attribute:meta])* $variant:ident => $file:ident,)+) => {
        $(mod $file;)+

        /// How a fingerprint is computed from a request.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub enum Algorithm {
            $($(#[$attribute])* $variant,)+
        }

        impl Algorithm {
            /// Every algorithm, the default first.
            pub const fn all() -> &'static [Self] {
                &[$(Self::$variant),+]
            }

            fn definition(self) -> &'static AlgorithmDefinition {
                match self {
                    $(Self::$variant => &$file::DEFINITION,)+
                }
            }
        }
    };
}

algorithms! {
    #[default]
    /// `scrapy.utils.request.fingerprint` of Scrapy 2.7 and later, as of Scrapy 2.19.
    Scrapy => scrapy,
    /// Scrapy's own up to 2.6, and `REQUEST_FINGERPRINTER_IMPLEMENTATION = "2.6"` after that.
    Scrapy26 => scrapy_2_6,
    /// `RFPDupeFilter.request_fingerprint` of scrapy-redis 0.9.
    ScrapyRedis => scrapy_redis,
}

impl Algorithm {
    /// The name in configurations and on command lines: `scrapy`, `scrapy-2.6`, `scrapy-redis`.
    pub fn name(self) -> &'static str {
        self.definition().name
    }

    /// What its fingerprints equal: the packages and their versions. Whatever keeps fingerprints
    /// keeps this beside them, and compares.
    pub fn version(self) -> &'static str {
        self.definition().version
    }
}

/// The algorithm's name.
impl std::fmt::Display for Algorithm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no algorithm has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no fingerprint algorithm `{name}`; use one of {}", names())]
pub struct UnknownAlgorithmError {
    name: String,
}

fn names() -> String {
    Algorithm::all().iter().map(|algorithm| algorithm.name()).collect::<Vec<_>>().join(", ")
}

impl std::str::FromStr for Algorithm {
    type Err = UnknownAlgorithmError;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithmError> {
        let known = Self::all().iter().find(|algorithm| algorithm.name() == name);
        known.copied().ok_or_else(|| UnknownAlgorithmError { name: name.to_owned() })
    }
}
