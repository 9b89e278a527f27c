//! Links for benchmarks: real ones, and invented ones with parameters.

use std::io::{BufRead, BufReader};

use flate2::read::GzDecoder;
use serde_json::Value;

/// Reads 2500 links of docs.python.org, in the order of a crawl: the first ones of `tests/vectors`.
pub fn real() -> Vec<String> {
    let vectors = include_bytes!("../../tests/vectors/fingerprints.jsonl.gz");
    let mut lines = BufReader::new(GzDecoder::new(&vectors[..]))
        .lines()
        .map(|line| serde_json::from_str::<Value>(&line.expect("readable")).expect("JSON"));
    let header = lines.next().expect("a header");
    let count = header["real_links"].as_u64().and_then(|count| usize::try_from(count).ok());
    lines
        .take(count.expect("a number of links"))
        .map(|vector| vector["url"].as_str().expect("a URL").to_owned())
        .collect()
}

/// Makes links with percent-escapes and three unsorted parameters.
pub fn busy() -> Vec<String> {
    (0..1000)
        .map(|n| {
            format!(
                "https://www.example.com/caf%C3%A9/item-{n}.html?sort=price%2casc&page={n}&\
                 category=shoes%20and%20boots"
            )
        })
        .collect()
}

/// Returns the pickle of a request in the form of scrapy-redis: `Request.to_dict`, protocol 5.
pub fn pickled(link: &str) -> Vec<u8> {
    const BEFORE: &[u8] = b"\x80\x05}\x94(\x8c\x03url\x94X";
    const BEHIND: &[u8] = b"\x94\x8c\x08callback\x94N\x8c\x07errback\x94N\x8c\x07headers\x94}\x94\
        \x8c\x04body\x94C\x00\x94\x8c\x07cookies\x94}\x94\x8c\x04meta\x94}\x94\x8c\x05depth\x94K\
        \x03s\x8c\x08encoding\x94\x8c\x05utf-8\x94\x8c\x05flags\x94]\x94\x8c\tcb_kwargs\x94}\x94\
        \x8c\x0bdont_filter\x94\x89\x8c\x06method\x94\x8c\x03GET\x94\x8c\x08priority\x94K\x00u.";
    let length = u32::try_from(link.len()).expect("a link is short").to_le_bytes();
    [BEFORE, &length, link.as_bytes(), BEHIND].concat()
}
