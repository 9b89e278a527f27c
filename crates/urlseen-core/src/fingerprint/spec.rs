//! Fingerprint spec: what determines the fingerprint of a request.

use super::Algorithm;
use super::same::{SameRules, TrackingList};

/// All settings that determine the fingerprint of a request. Fingerprints can be compared only if
/// they were computed by the same spec.
///
/// ```
/// use urlseen_core::fingerprint::{Algorithm, FingerprintSpec};
///
/// let spec = FingerprintSpec { keep_fragments: true, ..Algorithm::Scrapy26.into() };
/// assert_eq!(spec.algorithm.name(), "scrapy-2.6");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
