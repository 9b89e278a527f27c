//! The canonical form of one URL.

use urlseen_core::fingerprint::canonical::{
    Buffers, CanonicalizeError, Fragments, push_request_url,
};

/// Returns the canonical form of a URL, as it goes into Scrapy's fingerprint of a request for it:
/// byte for byte the result of `w3lib.url.canonicalize_url(scrapy.Request(url).url)`.
///
/// URLs that differ only in the order of their query, in their escapes or in the case of their host
/// have the same canonical form. A [`Fingerprinter`](crate::Fingerprinter) computes it itself, and
/// faster for many URLs.
///
/// # Errors
/// Scrapy or w3lib refuses the URL; the error names the reason.
///
/// ```
/// use urlseen::{Fragments, canonicalize};
///
/// let canonical = canonicalize("HTTPS://Example.com/a b?y=1&x=2#top", Fragments::Drop)?;
/// assert_eq!(canonical, "https://example.com/a%20b?x=2&y=1");
/// assert!(canonicalize("no/scheme", Fragments::Drop).is_err());
/// # Ok::<(), urlseen::CanonicalizeError>(())
/// ```
pub fn canonicalize(url: &str, fragments: Fragments) -> Result<String, CanonicalizeError> {
    let mut canonical = String::with_capacity(url.len());
    push_request_url(url, fragments, &mut Buffers::default(), &mut canonical)?;
    Ok(canonical)
}
