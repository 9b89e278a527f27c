//! Computation of fingerprints for one request after the other.

use std::borrow::Cow;

use super::algorithms::{RequestParts, Text};
use super::canonical::{self, Buffers, CanonicalForm, CanonicalSpec, CanonicalizeError};
use super::same::{Merger, SameRules, SameStep, TrackingList};
use super::{Algorithm, Fingerprint};

/// All settings that determine the fingerprint of a request. Fingerprints can be compared only if
/// they were computed by the same spec.
///
/// ```
/// use urlseen_fingerprint::{Algorithm, FingerprintSpec};
///
/// let spec = FingerprintSpec { keep_fragments: true, ..Algorithm::Scrapy26.into() };
/// assert_eq!(spec.algorithm.name(), "scrapy-2.6");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FingerprintSpec {
    /// Algorithm that computes the fingerprint.
    pub algorithm: Algorithm,
    /// Version of w3lib that makes URLs canonical.
    pub canonical: CanonicalForm,
    /// True if URLs that differ only in the part after `#` have different fingerprints.
    pub keep_fragments: bool,
    /// List of parameters that do not affect the fingerprint, for all URLs.
    pub drop_tracking: TrackingList,
    /// Rules by which different URLs are the same.
    pub same: SameRules,
}

impl FingerprintSpec {
    /// Returns the settings of the canonical URL.
    pub fn canonical_spec(&self) -> CanonicalSpec {
        CanonicalSpec { form: self.canonical, keep_fragments: self.keep_fragments }
    }

    /// Returns the packages and versions whose fingerprints this spec reproduces. Storage for
    /// fingerprints records this text, and compares it before the fingerprints are used.
    pub fn version(&self) -> String {
        format!("{}/{}", self.algorithm.version(), self.canonical.name().replace('-', " "))
    }
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
/// use urlseen_fingerprint::Request;
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

/// Computes the fingerprints of requests by one spec.
///
/// A fingerprinter reuses its buffers from one request to the next. So each thread needs its own
/// fingerprinter. A clone shares the patterns of rules, which take long to compile.
///
/// ```
/// use urlseen_fingerprint::{Algorithm, Fingerprinter};
/// use urlseen_fingerprint::Request;
///
/// let mut fingerprinter = Fingerprinter::new(Algorithm::Scrapy);
/// let one = fingerprinter.fingerprint(&Request::get("https://example.com/?b=2&a=1"))?;
/// let same = fingerprinter.fingerprint(&Request::get("https://EXAMPLE.com?a=1&b=2#top"))?;
/// assert_eq!(one, same);
/// # Ok::<(), urlseen_fingerprint::canonical::CanonicalizeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Fingerprinter {
    algorithm: Algorithm,
    canonical: CanonicalSpec,
    /// True if only the rules decide which URLs keep their fragments.
    rules_keep_fragments: bool,
    /// Rules by which different URLs are the same, if there are any.
    merger: Option<Box<Merger>>,
    buffers: Buffers,
    url: String,
    text: Text,
}

impl Fingerprinter {
    /// Creates a fingerprinter for a spec, or for an algorithm as its package applies it.
    pub fn new(spec: impl Into<FingerprintSpec>) -> Self {
        let spec = spec.into();
        let rules_keep_fragments = !spec.keep_fragments && spec.same.keep_fragments();
        let keep_fragments = spec.keep_fragments || rules_keep_fragments;
        Self {
            algorithm: spec.algorithm,
            canonical: CanonicalSpec { keep_fragments, ..spec.canonical_spec() },
            rules_keep_fragments,
            merger: Merger::new(spec.drop_tracking, &spec.same),
            buffers: Buffers::default(),
            url: String::new(),
            text: Text::default(),
        }
    }

    /// Returns the fingerprint of a request, always a [`Fingerprint::Raw20`].
    ///
    /// # Errors
    /// Fails if Scrapy would refuse the URL. The error states the reason.
    pub fn fingerprint(&mut self, request: &Request<'_>) -> Result<Fingerprint, CanonicalizeError> {
        self.canonicalise(request)?;
        Ok(self.finish(request))
    }

    /// Returns the fingerprint of a request. Immediately before, the caller must have called
    /// [`Fingerprinter::canonical`] for the same request, without an error.
    #[doc(hidden)]
    pub fn finish(&mut self, request: &Request<'_>) -> Fingerprint {
        self.merge(request);
        let method = upper_case(request.method);
        let parts = RequestParts { method: &method, url: &self.url, body: request.body };
        (self.algorithm.definition().write)(&parts, &mut self.text);
        Fingerprint::Raw20(self.text.finish())
    }

    /// Returns the URL before the rules by which URLs are the same. This is the canonical URL,
    /// except for a verbatim request with an algorithm that hashes verbatim URLs unchanged.
    ///
    /// # Errors
    /// Fails if Scrapy would refuse the URL. The error states the reason.
    pub fn canonical(&mut self, request: &Request<'_>) -> Result<&str, CanonicalizeError> {
        self.canonicalise(request)?;
        Ok(&self.url)
    }

    /// Returns the URL that is hashed for the fingerprint: the canonical URL, changed by the rules
    /// by which URLs are the same.
    ///
    /// # Errors
    /// Fails if Scrapy would refuse the URL. The error states the reason.
    pub fn hashed(&mut self, request: &Request<'_>) -> Result<&str, CanonicalizeError> {
        self.canonicalise(request)?;
        self.merge(request);
        Ok(&self.url)
    }

    /// Returns the changes that the rules make to the canonical URL of a request, in order.
    ///
    /// # Errors
    /// Fails if Scrapy would refuse the URL. The error states the reason.
    pub fn same_steps(
        &mut self,
        request: &Request<'_>,
    ) -> Result<Vec<SameStep>, CanonicalizeError> {
        self.canonicalise(request)?;
        let is_canonical = self.is_canonical(request);
        let merger = self.merger.as_mut().filter(|_| is_canonical);
        Ok(merger.map_or_else(Vec::new, |merger| merger.trace(&self.url)))
    }

    /// Applies the rules by which URLs are the same.
    fn merge(&mut self, request: &Request<'_>) {
        let is_canonical = self.is_canonical(request);
        if let Some(merger) = self.merger.as_mut().filter(|_| is_canonical) {
            merger.apply(&mut self.url);
        }
    }

    /// Returns true if the URL that is hashed for a request is canonical, so that rules apply.
    fn is_canonical(&self, request: &Request<'_>) -> bool {
        !request.verbatim_url || self.algorithm.definition().changes_verbatim
    }

    fn canonicalise(&mut self, request: &Request<'_>) -> Result<(), CanonicalizeError> {
        let Self { canonical: spec, ref mut buffers, ref mut url, .. } = *self;
        url.clear();
        if !request.verbatim_url {
            canonical::push_request_url(request.url, spec, buffers, url)?;
        } else if !canonical::is_absolute(request.url) {
            return Err(CanonicalizeError::NotAbsolute);
        } else if self.algorithm.definition().changes_verbatim {
            canonical::push_canonical_url(request.url, spec, buffers, url, &mut ())?;
        } else {
            url.push_str(request.url);
            return Ok(());
        }
        if self.rules_keep_fragments {
            self.cut_fragment();
        }
        Ok(())
    }

    /// Removes the fragment of the canonical URL, unless a rule keeps it.
    fn cut_fragment(&mut self) {
        let Some(at) = self.url.find('#') else { return };
        let keeps = |merger: &mut Box<Merger>| merger.keeps_fragment(&self.url[..at]);
        if !self.merger.as_mut().is_some_and(keeps) {
            self.url.truncate(at);
        }
    }
}

/// Creates a fingerprinter for Scrapy's fingerprints, without fragments.
impl Default for Fingerprinter {
    fn default() -> Self {
        Self::new(FingerprintSpec::default())
    }
}

/// Converts a method to upper case by Unicode, as Scrapy does, without trimming or checking it.
fn upper_case(method: &str) -> Cow<'_, str> {
    if method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        Cow::Borrowed(method)
    } else {
        Cow::Owned(method.to_uppercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_url_does_not_change_the_next_fingerprint() {
        let mut fingerprinter = Fingerprinter::new(Algorithm::Scrapy);
        let request = Request::get("http://h/");
        let before = fingerprinter.fingerprint(&request);
        assert!(fingerprinter.fingerprint(&Request::get("http://h:x/")).is_err());
        assert_eq!(fingerprinter.fingerprint(&request), before);
    }
}
