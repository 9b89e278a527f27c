//! `scrapy-redis`: SHA-1 over the JSON that Scrapy hashes, but without its headers.
//!
//! scrapy-redis itself has no setting `keep_fragments`. If urlseen's `keep_fragments` is true, the
//! canonical URL keeps its fragment.

use super::{AlgorithmDefinition, RequestParts, Text, Verbatim};

pub(super) const DEFINITION: AlgorithmDefinition = AlgorithmDefinition {
    name: "scrapy-redis",
    version: "scrapy-redis 0.9/w3lib 2.5",
    verbatim: Verbatim::Canonical,
    write,
};

fn write(request: &RequestParts<'_>, text: &mut Text) {
    text.push(b"{\"body\": \"");
    text.push_hex(request.body);
    text.push(b"\", \"method\": \"");
    text.push_json(request.method);
    text.push(b"\", \"url\": \"");
    text.push_json(request.url);
    text.push(b"\"}");
}
