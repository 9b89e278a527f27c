//! Items for the benchmarks, one per line on standard output. The same arguments give the same
//! items:
//!
//! ```text
//! items tab COUNT UNSEEN    a ready fingerprint, a tab and a payload: 94 bytes each
//! items url COUNT UNSEEN    the bundled links with made-up query parameters
//! items other COUNT         fingerprints that no tab item has, for a filter that is not empty
//! ```
//!
//! Of a hundred items, `UNSEEN` are new. Each other item repeats an earlier item. It is drawn
//! evenly from all earlier items, so that the processor's cache does not help. One in ten repeated
//! links is spelled in another way than the first time, and a filter for requests must still
//! recognise it. At the end, the program prints the number of different requests on standard error.

// A failure ends the program, as in a test.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, BufWriter, Write};

use fastrand::Rng;
use flate2::read::GzDecoder;

const LINKS: &[u8] = include_bytes!("../tests/data/python-docs-links.txt.gz");
const SEED: u64 = 20_260_101;
/// Number from which the first fingerprint of `other` is made. Tab items have lower numbers.
const OTHER: u64 = 1 << 40;
/// Digits that fill a tab item to 94 bytes.
const PAYLOAD: usize = 53;

fn main() {
    // `--bench` comes from cargo.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut out = BufWriter::with_capacity(1 << 20, std::io::stdout().lock());
    let distinct = match words[..] {
        ["tab", count, unseen] => {
            write(&mut out, number(count), number(unseen), |out, number, _| {
                writeln!(out, "{}\t{number:0PAYLOAD$}", Fingerprint(number)).unwrap();
            })
        }
        ["url", count, unseen] => {
            let links = canonical_links();
            write(&mut out, number(count), number(unseen), |out, number, otherwise| {
                link(out, &links, number, otherwise);
            })
        }
        ["other", count] => {
            let count = number(count);
            for number in OTHER..OTHER + count {
                writeln!(out, "{}", Fingerprint(number)).unwrap();
            }
            count
        }
        _ => panic!("items tab|url COUNT UNSEEN, or items other COUNT"),
    };
    out.flush().unwrap();
    eprintln!("{distinct}");
}

fn number(word: &str) -> u64 {
    word.parse().unwrap()
}

/// Calls `item` for each of `count` items, with the number of the item and a second number. This
/// second number is 10 for a new item, and random from 0 to 9 for a repeated one. With 0, a link is
/// spelled in another way. Returns the number of different items.
fn write<W: Write>(
    out: &mut W,
    count: u64,
    unseen: u64,
    mut item: impl FnMut(&mut W, u64, u64),
) -> u64 {
    let mut rng = Rng::with_seed(SEED);
    let mut distinct = 0;
    for _ in 0..count {
        let is_new = distinct == 0 || rng.u64(..100) < unseen;
        if is_new {
            item(out, distinct, 10);
            distinct += 1;
        } else {
            item(out, rng.u64(..distinct), rng.u64(..10));
        }
    }
    distinct
}

/// Writes the link of this number, or, if `otherwise` is 0, another spelling of it.
fn link(out: &mut impl Write, links: &[String], number: u64, otherwise: u64) {
    let link = &links[usize::try_from(number).unwrap() % links.len()];
    match (otherwise, number % 2) {
        (0, 0) => writeln!(out, "{link}?sort=price&page={number}"),
        (0, _) => writeln!(out, "{link}?page={number}&sort=price#section-{}", number % 7),
        _ => writeln!(out, "{link}?page={number}&sort=price"),
    }
    .unwrap();
}

/// Returns the distinct bundled links without query and fragment.
fn canonical_links() -> Vec<String> {
    let mut links: Vec<String> = BufReader::new(GzDecoder::new(LINKS))
        .lines()
        .map(|link| link.unwrap().split(['#', '?']).next().unwrap().to_owned())
        .filter(|link| link.starts_with("http"))
        .collect();
    links.sort();
    links.dedup();
    // The links are sorted now. Without a shuffle, similar links would follow one another.
    Rng::with_seed(SEED).shuffle(&mut links);
    links
}

/// 40 hex digits, as evenly spread as those of a digest.
struct Fingerprint(u64);

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = |which| mix(self.0.wrapping_mul(3).wrapping_add(which));
        write!(formatter, "{:016x}{:016x}{:08x}", word(0), word(1), word(2) >> 32)
    }
}

/// Output function of SplitMix64.
fn mix(number: u64) -> u64 {
    let word = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
