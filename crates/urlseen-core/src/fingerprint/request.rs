//! Request: the parts from which a fingerprint is computed.

/// Request of a crawler, reduced to its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// HTTP method as the producer wrote it. The fingerprinter converts it to upper case.
    pub method: &'a str,
    /// URL as discovered: neither safe nor canonical yet.
    pub url: &'a str,
    /// Bytes of the body; empty if there is none.
    pub body: &'a [u8],
    /// Scrapy's `meta.verbatim_url`: the URL is sent unchanged. `scrapy` also hashes it unchanged.
    pub verbatim_url: bool,
}

impl<'a> Request<'a> {
    /// Makes a GET request without a body, the meaning of a bare URL.
    pub fn get(url: &'a str) -> Self {
        Self { method: "GET", url, body: &[], verbatim_url: false }
    }
}
