//! `scrapy-2.6`: SHA-1 over the method, the canonical URL and the body, without delimiters between
//! them.
//!
//! Scrapy 2.6 had no `verbatim_url`, so this fingerprint makes the URL of every request canonical.

use super::{AlgorithmDefinition, RequestParts, Text, Verbatim};

pub(super) const DEFINITION: AlgorithmDefinition = AlgorithmDefinition {
    name: "scrapy-2.6",
    version: "scrapy 2.6/w3lib 2.5",
    verbatim: Verbatim::Canonical,
    write,
};

fn write(request: &RequestParts<'_>, text: &mut Text) {
    text.push(request.method.as_bytes());
    text.push(request.url.as_bytes());
    text.push(request.body);
}
