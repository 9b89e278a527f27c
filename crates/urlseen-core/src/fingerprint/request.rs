//! Request of a crawler: the parts from which a fingerprint is computed.

/// Request of a crawler: the parts that determine its fingerprint.
///
/// ```
/// use urlseen_core::fingerprint::request::Request;
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
