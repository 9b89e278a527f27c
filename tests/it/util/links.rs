//! Links of the bundled crawl. `tests/data/README.md` has their origin.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;

use flate2::read::GzDecoder;

/// Returns the 164,289 links that the crawl discovered, one a line, with duplicates.
pub(crate) fn discovered() -> String {
    unpack("python-docs-links.txt.gz")
}

/// Returns those lines of [`discovered`] that are unseen, in order. Scrapy computed the
/// fingerprints, and an exact set found the unseen ones.
pub(crate) fn unseen() -> String {
    unpack("python-docs-unseen.txt.gz")
}

/// Returns the lines of [`discovered`] from which Scrapy makes no request: the number, from 1, and
/// the link.
pub(crate) fn refused() -> Vec<(usize, String)> {
    let text = fs::read_to_string(file("python-docs-refused.txt")).expect("a bundled file");
    text.lines()
        .map(|line| {
            let (number, link) = line.split_once('\t').expect("number, tab, link");
            (number.parse().expect("a line number"), link.to_owned())
        })
        .collect()
}

fn unpack(name: &str) -> String {
    let mut text = String::new();
    let packed = File::open(file(name)).expect("a bundled file");
    GzDecoder::new(packed).read_to_string(&mut text).expect("gzip of text");
    text
}

fn file(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "data", name].iter().collect()
}
