//! Canonical form of a URL.

use urlseen_core::fingerprint::canonical::{
    Buffers, CanonicalizeError, Fragments, push_request_url,
};

/// Returns the canonical form of a URL, which Scrapy hashes for the fingerprint of a request.
///
/// The result equals `w3lib.url.canonicalize_url(scrapy.Request(url).url)`, byte for byte. URLs
/// have the same canonical form if they differ only in the order of the query's fields, in escapes,
/// or in the case of the host. `fragments` selects whether the result keeps the part after the `#`.
///
/// A [`Fingerprinter`](crate::Fingerprinter) computes the canonical form by itself. For many URLs,
/// a [`Fingerprinter`](crate::Fingerprinter) is faster than this function.
///
/// # Errors
/// Scrapy or w3lib would refuse the URL. The error states the reason.
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
