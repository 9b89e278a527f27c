//! `scrapy`: SHA-1 over the JSON that Python's `json.dumps(…, sort_keys=True)` writes.

use super::{AlgorithmDefinition, RequestParts, Text, Verbatim};

pub(super) const DEFINITION: AlgorithmDefinition = AlgorithmDefinition {
    name: "scrapy",
    version: "scrapy 2.19/w3lib 2.5",
    verbatim: Verbatim::AsIs,
    write,
};

fn write(request: &RequestParts<'_>, text: &mut Text) {
    text.push(b"{\"body\": \"");
    text.push_hex(request.body);
    // Scrapy hashes headers only if a custom fingerprinter asks for them.
    text.push(b"\", \"headers\": {}, \"method\": \"");
    text.push_json(request.method);
    text.push(b"\", \"url\": \"");
    text.push_json(request.url);
    text.push(b"\"}");
}
