//! Random items of every form, each with the expected outcome.

use std::env;

use super::Bytes;

/// Returns the seeds of a random test: the environment variable `TEST_SEED` if it is set, otherwise
/// `fixed`.
pub(crate) fn seeds(fixed: &[u64]) -> Vec<u64> {
    match env::var("TEST_SEED") {
        Ok(seed) => vec![seed.parse().expect("TEST_SEED is a whole number")],
        Err(_) => fixed.to_vec(),
    }
}

/// Generator of random numbers: SplitMix64 (Steele, Lea and Flood, 2014).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Returns a number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Bytes {
        (0..count).map(|_| self.next().to_le_bytes()[0]).collect()
    }
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Expected outcome of an item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    /// The first item with this key is emitted.
    Key(String),
    /// The item is always emitted.
    Unfiltered,
    /// The item is always rejected.
    Unreadable,
}

#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) bytes: Bytes,
    pub(crate) identity: Identity,
}

/// Makes a random item of a random form. Each form has `keys` different keys. One item in a
/// thousand has a size of a mebibyte.
pub(crate) fn item(random: &mut Random, keys: usize) -> Item {
    let padding = if random.below(1000) == 0 { 1 << 20 } else { random.below(20) };
    let padding = "x".repeat(padding);
    let number = random.below(keys);
    let item = |bytes: Bytes, key: String| Item { bytes, identity: Identity::Key(key) };
    match random.below(12) {
        0..=2 => {
            let url = url(random, number);
            item(format!("{url}#{padding}").into(), format!("url {number}"))
        }
        3 => {
            let url = url(random, number);
            let json = format!(r#"{{"url": "{url}", "meta": {{"padding": "{padding}"}}}}"#);
            item(json.into(), format!("url {number}"))
        }
        4 => {
            let url = url(random, number);
            let json = format!(r#"{{"padding": "{padding}", "url": "{url}", "method": "POST"}}"#);
            item(json.into(), format!("post {number}"))
        }
        5 => item(
            format!(r#"{{"fingerprint": "{number:08x}", "padding": "{padding}"}}"#).into(),
            format!("text {number}"),
        ),
        6 => Item {
            bytes: format!(r#"{{"url": "http://a/{number}", "dont_filter": true}}"#).into(),
            identity: Identity::Unfiltered,
        },
        7 => Item { bytes: garbage(random, &padding), identity: Identity::Unreadable },
        _ => fingerprint(random, number, &padding),
    }
}

fn url(random: &mut Random, number: usize) -> String {
    match random.below(3) {
        0 => format!("http://example.com/{number}?b=2&a=1"),
        1 => format!("HTTP://EXAMPLE.COM/{number}?a=1&b=2"),
        _ => format!("http://example.com/{number}?a=1&b=2"),
    }
}

/// Makes an item from a fingerprint of random length and case. The item is the fingerprint alone,
/// the fingerprint and a payload, or JSON with the fingerprint.
fn fingerprint(random: &mut Random, number: usize, padding: &str) -> Item {
    let length = [32, 40, 64][random.below(3)];
    let parts = [0, 1, 2, 3].map(|part| format!("{:016x}", mix(number as u64 * 4 + part)));
    let digits = parts.concat();
    let lower = &digits[..length];
    let shown = if random.below(2) == 0 { lower.to_uppercase() } else { lower.to_owned() };
    let bytes = match random.below(4) {
        0 => [shown.as_bytes(), b"\t", padding.as_bytes(), &random.bytes(9)].concat(),
        1 => format!(r#"{{"padding": "{padding}", "fingerprint": "{shown}"}}"#).into(),
        _ => shown.into(),
    };
    Item { bytes, identity: Identity::Key(format!("hex {lower}")) }
}

fn garbage(random: &mut Random, padding: &str) -> Bytes {
    match random.below(6) {
        0 => Bytes::new(),
        1 => [b"\xff", random.bytes(20).as_slice()].concat(),
        2 => [b"\x80\x04", random.bytes(20).as_slice()].concat(),
        3 => format!("{{{padding}").into(),
        4 => format!("/{padding}").into(),
        _ => [b"http://example.com/", padding.as_bytes(), b"\xff"].concat(),
    }
}
