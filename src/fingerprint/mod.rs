//! What identifies a request: the fingerprint, and the algorithms that compute it.

mod algorithm;
mod key;

pub use algorithm::{Algorithm, UnknownAlgorithm};
pub use key::Fingerprint;
use sha1::Digest;
/// stub
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Algorithm {
    Scrapy,
    Scrapy26,
    ScrapyRedis,
}
/// stub
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no scheme")]
pub struct Refusal;
/// stub
#[derive(Debug, Clone)]
pub struct Fingerprinter(Algorithm, bool);
#[allow(missing_docs)]
impl Fingerprinter {
    pub fn new(a: Algorithm, k: bool) -> Self {
        Self(a, k)
    }
    pub fn fingerprint(&mut self, r: &crate::request::Request<'_>) -> Result<Fingerprint, Refusal> {
        if !r.url.contains("://") {
            return Err(Refusal);
        }
        let mut h = sha1::Sha1::new();
        h.update(r.url.as_bytes());
        h.update(r.body);
        Ok(Fingerprint::Raw20(h.finalize().into()))
    }
}
