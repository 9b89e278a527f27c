//! Definitions of the algorithms. Each one is SHA-1 over the text that its function writes.

use super::{AlgorithmDefinition, RequestParts, Text, Verbatim};

/// `scrapy`: the JSON that Python's `json.dumps(…, sort_keys=True)` writes. Scrapy hashes headers
/// only if a custom fingerprinter asks for them.
pub(super) const SCRAPY: AlgorithmDefinition = AlgorithmDefinition {
    name: "scrapy",
    version: "scrapy 2.19/w3lib 2.5",
    verbatim: Verbatim::AsIs,
    write: |request, text| write_json(b"\", \"headers\": {}, \"method\": \"", request, text),
};

/// `scrapy-2.6`: the method, the canonical URL and the body, without delimiters between them.
///
/// Scrapy 2.6 had no `verbatim_url`, so this fingerprint makes the URL of every request canonical.
pub(super) const SCRAPY_2_6: AlgorithmDefinition = AlgorithmDefinition {
    name: "scrapy-2.6",
    version: "scrapy 2.6/w3lib 2.5",
    verbatim: Verbatim::Canonical,
    write: |request, text| {
        text.push(request.method.as_bytes());
        text.push(request.url.as_bytes());
        text.push(request.body);
    },
};

/// `scrapy-redis`: the JSON that Scrapy hashes, but without its headers.
///
/// scrapy-redis itself has no setting `keep_fragments`. If urlseen's `keep_fragments` is true, the
/// canonical URL keeps its fragment.
pub(super) const SCRAPY_REDIS: AlgorithmDefinition = AlgorithmDefinition {
    name: "scrapy-redis",
    version: "scrapy-redis 0.9/w3lib 2.5",
    verbatim: Verbatim::Canonical,
    write: |request, text| write_json(b"\", \"method\": \"", request, text),
};

/// Writes the JSON. `before_method` is the text between the body and the method.
#[inline]
fn write_json(before_method: &[u8], request: &RequestParts<'_>, text: &mut Text) {
    text.push(b"{\"body\": \"");
    text.push_hex(request.body);
    text.push(before_method);
    text.push_json(request.method);
    text.push(b"\", \"url\": \"");
    text.push_json(request.url);
    text.push(b"\"}");
}
