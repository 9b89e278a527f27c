//! Whose fingerprints a filter holds.

use urlseen_core::fingerprint::Algorithm;

/// How the fingerprints that a filter holds are computed. What is kept of the filter records it,
/// and a filter of others is refused: none of its fingerprints would ever be found again.
///
/// The default is that of Scrapy and of the `urlseen` command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fingerprints {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Whether URLs that differ in what follows `#` are different.
    pub keep_fragments: bool,
}
