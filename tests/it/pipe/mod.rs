//! `urlseen filter`: it reads lines and prints the unseen ones.

mod crawl;
mod inputs;
mod live;
mod model;
mod recrawl;
mod storage;

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::util::binary::{Run, urlseen};

/// Prepares `urlseen filter` with a small filter that makes practically no errors.
fn filter(arguments: &[&str]) -> Run {
    urlseen(["filter", "--capacity", "100000", "--error-rate", "1e-12"].iter().chain(arguments))
}

pub(crate) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstandard(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 1).unwrap()
}

/// Joins these lines, each with a line feed.
fn joined<'a>(lines: impl IntoIterator<Item = &'a str>) -> String {
    lines.into_iter().flat_map(|line| [line, "\n"]).collect()
}

/// Makes `count` different URLs, one a line.
fn urls(count: usize) -> String {
    let urls: Vec<_> = (0..count).map(|number| format!("http://example.com/{number}")).collect();
    joined(urls.iter().map(String::as_str))
}

/// Returns the number of unreadable lines that messages report: each message is about the first
/// line with some reason, or has the number of further lines.
#[track_caller]
fn unreadable(messages: &str) -> usize {
    let count = |line: &str| {
        let words = line.strip_prefix("urlseen: ").expect(line);
        let number = words.split_once(" more line").map(|(number, _)| number.replace(',', ""));
        number.map_or(1, |number| number.parse().expect(line))
    };
    messages.lines().map(count).sum()
}
