//! A request: the part of one that its fingerprint is computed from.

/// What a crawler is about to fetch, as far as its identity goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// As the producer wrote it; upper-cased when the fingerprint is computed.
    pub method: &'a str,
    /// As discovered: neither made safe nor canonical yet.
    pub url: &'a str,
    /// The body's bytes, empty for none.
    pub body: &'a [u8],
    /// Scrapy's `meta.verbatim_url`: the URL is sent, and for `scrapy` fingerprinted, as it is.
    pub verbatim_url: bool,
}

impl<'a> Request<'a> {
    /// A GET of `url` without a body, as a bare URL stands for.
    pub fn get(url: &'a str) -> Self {
        Self { method: "GET", url, body: &[], verbatim_url: false }
    }
}
