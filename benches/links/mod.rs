//! The links that benchmarks take for usual ones.

use std::fs::File;
use std::io::{BufRead, BufReader};

use flate2::read::GzDecoder;
use serde_json::Value;

/// 2500 links of docs.python.org, as a crawl finds them: those that `tests/vectors` begins with.
pub fn real() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/fingerprints.jsonl.gz");
    let file = File::open(path).expect("the vectors are in the repository");
    let mut lines = BufReader::new(GzDecoder::new(file))
        .lines()
        .map(|line| serde_json::from_str::<Value>(&line.expect("readable")).expect("JSON"));
    let header = lines.next().expect("a header");
    let count = header["real_links"].as_u64().and_then(|count| usize::try_from(count).ok());
    lines
        .take(count.expect("a number of links"))
        .map(|vector| vector["url"].as_str().expect("a URL").to_owned())
        .collect()
}

/// Links with three parameters that are not in order, and percent-escapes.
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
