//! Which algorithm computes fingerprints, by name.

use std::str::FromStr;

/// An algorithm that computes fingerprints, named after the software whose fingerprints it equals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// `scrapy.utils.request.fingerprint` of Scrapy since 2.7.
    Scrapy,
    /// What Scrapy up to 2.6 computed.
    Scrapy26,
    /// `RFPDupeFilter.request_fingerprint` of scrapy-redis 0.9.
    ScrapyRedis,
}

/// A name that no algorithm has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no algorithm is called {0:?}; there are scrapy, scrapy-2.6 and scrapy-redis")]
pub struct UnknownAlgorithm(String);

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        match name {
            "scrapy" => Ok(Self::Scrapy),
            "scrapy-2.6" => Ok(Self::Scrapy26),
            "scrapy-redis" => Ok(Self::ScrapyRedis),
            other => Err(UnknownAlgorithm(other.to_owned())),
        }
    }
}
