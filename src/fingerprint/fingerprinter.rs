//! Computing fingerprints, one after another.

use std::borrow::Cow;

use super::{Algorithm, Fingerprint, Parts, Text, Verbatim};
use crate::canonical::{self, Buffers, Fragments, Refusal};
use crate::request::Request;

/// Computes fingerprints with one algorithm. Its buffers are kept from one request to the next, so
/// each thread has its own.
///
/// ```
/// use urlseen::fingerprint::{Algorithm, Fingerprinter};
/// use urlseen::request::Request;
///
/// let mut fingerprinter = Fingerprinter::new(Algorithm::Scrapy, false);
/// let one = fingerprinter.fingerprint(&Request::get("https://example.com/?b=2&a=1"))?;
/// let same = fingerprinter.fingerprint(&Request::get("https://EXAMPLE.com?a=1&b=2#top"))?;
/// assert_eq!(one, same);
/// # Ok::<(), urlseen::canonical::Refusal>(())
/// ```
#[derive(Debug)]
pub struct Fingerprinter {
    algorithm: Algorithm,
    fragments: Fragments,
    buffers: Buffers,
    url: String,
    text: Text,
}

impl Fingerprinter {
    /// With `keep_fragments`, URLs that differ in their fragments only are different requests.
    pub fn new(algorithm: Algorithm, keep_fragments: bool) -> Self {
        Self {
            algorithm,
            fragments: if keep_fragments { Fragments::Keep } else { Fragments::Drop },
            buffers: Buffers::default(),
            url: String::new(),
            text: Text::default(),
        }
    }

    /// The fingerprint of a request: always a [`Fingerprint::Raw20`].
    ///
    /// # Errors
    /// What is wrong with the URL, where Scrapy refuses it.
    pub fn fingerprint(&mut self, request: &Request<'_>) -> Result<Fingerprint, Refusal> {
        self.canonicalise(request)?;
        let method = upper_case(request.method);
        let parts = Parts { method: &method, url: &self.url, body: request.body };
        (self.algorithm.definition().write)(&parts, &mut self.text);
        Ok(Fingerprint::Raw20(self.text.finish()))
    }

    /// The form of a request's URL that goes into its fingerprint: canonical, or as it is where the
    /// request is verbatim and the algorithm leaves it at that.
    ///
    /// # Errors
    /// What is wrong with the URL, where Scrapy refuses it.
    pub fn canonical(&mut self, request: &Request<'_>) -> Result<&str, Refusal> {
        self.canonicalise(request)?;
        Ok(&self.url)
    }

    fn canonicalise(&mut self, request: &Request<'_>) -> Result<(), Refusal> {
        let Self { fragments, ref mut buffers, ref mut url, .. } = *self;
        url.clear();
        if !request.verbatim_url {
            return canonical::push_request_url(request.url, fragments, buffers, url);
        }
        if !canonical::is_absolute(request.url) {
            return Err(Refusal::NotAbsolute);
        }
        match self.algorithm.definition().verbatim {
            Verbatim::AsIs => {
                url.push_str(request.url);
                Ok(())
            }
            Verbatim::Canonical => {
                canonical::push_canonical_url(request.url, fragments, buffers, url)
            }
        }
    }
}

/// A method as Scrapy has it: Unicode's full upper case, nothing trimmed or checked.
fn upper_case(method: &str) -> Cow<'_, str> {
    if method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        Cow::Borrowed(method)
    } else {
        Cow::Owned(method.to_uppercase())
    }
}
