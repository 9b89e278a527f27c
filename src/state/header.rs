//! What a state folder was made for: the file `header`.
//!
//! Text, so that it can be read without this program; a line `key = value` each, strings as JSON
//! writes them, and at the end the CRC-32C of all bytes before that line:
//!
//! ```text
//! urlseen state folder
//! format = 1
//! filter = "2b1d9f0c66a1e4d7"
//! crawl = "demo"
//! layout = "native"
//! positions = "murmur3-x64-128/wyrand/line-64/bit-9"
//! shards = "digest-leading-byte/text-murmur3-x64-128-top-byte"
//! seed = 3735928559
//! bits = 287309824
//! k = 20
//! lines = 2
//! bits_per_line = 10
//! lines_per_part = 1096
//! capacity = 10000000
//! error_rate = 1e-6
//! algorithm = "scrapy"
//! algorithm_version = "scrapy 2.19/w3lib 2.5"
//! keep_fragments = false
//! crc = "89abcdef"
//! ```
//!
//! A file that is not, byte for byte, what would be written for what it says is not read.

use std::fmt::{self, Write as _};

use super::error::Damage;
use crate::filter::native::{Native, POSITION_RULE};
use crate::filter::{Capacity, ErrorRate, Geometry, Layout, Lines, SHARD_RULE, Seed};
use crate::fingerprint::Algorithm;

/// The format of the folder that this version writes, and the only one that it reads.
pub const FORMAT: u32 = 1;

/// The file's name.
pub(super) const NAME: &str = "header";

const TITLE: &str = "urlseen state folder";

/// All that moves a bit or changes a fingerprint, and whose filter it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Pins {
    /// The crawl's name.
    pub crawl: String,
    /// How a fingerprint becomes bit positions.
    pub layout: Layout,
    /// What the hash is seeded with; `None` where any seed will do.
    pub seed: Option<Seed>,
    /// How the bits are divided.
    pub geometry: Geometry,
    /// How many fingerprints the filter was sized for.
    pub capacity: Capacity,
    /// The error rate that it was sized for.
    pub error_rate: ErrorRate,
    /// How fingerprints are computed.
    pub algorithm: Algorithm,
    /// Whether URLs that differ in their fragments are different.
    pub keep_fragments: bool,
}

/// What a folder's file `header` says.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    filter: u64,
    seed: Seed,
    /// What the folder was made for; with a seed.
    pins: Pins,
    pub(super) rules: Rules,
}

/// What a program does in ways that have names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rules {
    pub(super) positions: String,
    pub(super) shards: String,
    pub(super) algorithm: String,
}

impl Rules {
    /// What this program does.
    pub(super) fn own(algorithm: Algorithm) -> Self {
        Self {
            positions: POSITION_RULE.to_owned(),
            shards: SHARD_RULE.to_owned(),
            algorithm: algorithm.version().to_owned(),
        }
    }
}

/// Why a header was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// It is not as it was written.
    Damaged(Damage),
    /// It is, by a version with another format.
    Format(u32),
}

impl Header {
    /// What a folder made by this program for `pins` says.
    pub(super) fn new(filter: u64, seed: Seed, pins: &Pins) -> Self {
        let pins = Pins { seed: Some(seed), ..pins.clone() };
        let rules = Rules::own(pins.algorithm);
        Self { filter, seed, pins, rules }
    }

    /// The id of the filter, drawn when the folder was begun.
    pub fn filter(&self) -> u64 {
        self.filter
    }

    /// What the folder was made for; the seed is there.
    pub fn pins(&self) -> &Pins {
        &self.pins
    }

    /// The seed of the filter's hash.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// The layout that the filter must be started with.
    pub fn native(&self) -> Native {
        Native::new(self.seed, self.pins.geometry)
    }

    /// Bytes of a shard.
    pub(super) fn shard_bytes(&self) -> u64 {
        self.pins.geometry.shard_bits() / 8
    }

    /// The file's bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let Pins { crawl, layout, geometry, capacity, error_rate, algorithm, .. } = &self.pins;
        let Rules { positions, shards, algorithm: algorithm_version } = &self.rules;
        let mut text = format!("{TITLE}\n");
        let mut line = |key: &str, value: &dyn fmt::Display| {
            writeln!(text, "{key} = {value}").expect("a string takes all");
        };
        line("format", &FORMAT);
        line("filter", &quoted(&format!("{:016x}", self.filter)));
        line("crawl", &quoted(crawl));
        line("layout", &quoted(layout.name()));
        line("positions", &quoted(positions));
        line("shards", &quoted(shards));
        line("seed", &self.seed.get());
        line("bits", &geometry.bits());
        line("k", &geometry.k());
        line("lines", &geometry.lines().get());
        line("bits_per_line", &geometry.bits_per_line());
        line("lines_per_part", &geometry.lines_per_part());
        line("capacity", &capacity.get());
        line("error_rate", &error_rate);
        line("algorithm", &quoted(algorithm.name()));
        line("algorithm_version", &quoted(algorithm_version));
        line("keep_fragments", &self.pins.keep_fragments);
        text.push_str(&crc_line(text.as_bytes()));
        text.into_bytes()
    }

    /// Reads what [`Header::encode`] wrote.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Unreadable> {
        let damaged = |what| Unreadable::Damaged(Damage { file: NAME.to_owned(), offset: 0, what });
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("it is not text"))?;
        let end = text.rfind("crc = ").ok_or_else(|| damaged("it does not end in its CRC"))?;
        if text[end..] != crc_line(&bytes[..end]) {
            return Err(damaged("its CRC does not hold"));
        }
        let format = value(text, "format").and_then(|value| value.parse().ok());
        if let Some(format) = format.filter(|&format| format != FORMAT) {
            return Err(Unreadable::Format(format));
        }
        let header = Self::parse(text).ok_or_else(|| damaged("a value cannot be read"))?;
        if header.encode() != bytes {
            return Err(damaged("it is not what this version would write"));
        }
        Ok(header)
    }

    fn parse(text: &str) -> Option<Self> {
        let string = |key| serde_json::from_str::<String>(value(text, key)?).ok();
        let number = |key| value(text, key)?.parse::<u32>().ok();
        let lines = Lines::ALL.into_iter().find(|lines| Some(lines.get()) == number("lines"))?;
        let bits_per_line = u8::try_from(number("bits_per_line")?).ok()?;
        let seed = Seed::new(number("seed")?);
        Some(Self {
            filter: u64::from_str_radix(&string("filter")?, 16).ok()?,
            seed,
            pins: Pins {
                crawl: string("crawl")?,
                layout: string("layout")?.parse().ok()?,
                seed: Some(seed),
                geometry: Geometry::new(lines, bits_per_line, number("lines_per_part")?)?,
                capacity: Capacity::new(value(text, "capacity")?.parse().ok()?).ok()?,
                error_rate: value(text, "error_rate")?.parse().ok()?,
                algorithm: string("algorithm")?.parse().ok()?,
                keep_fragments: value(text, "keep_fragments")?.parse().ok()?,
            },
            rules: Rules {
                positions: string("positions")?,
                shards: string("shards")?,
                algorithm: string("algorithm_version")?,
            },
        })
    }
}

/// The last line, behind `content`.
fn crc_line(content: &[u8]) -> String {
    format!("crc = \"{:08x}\"\n", crc32c::crc32c(content))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// What stands behind `key = `.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::state) fn pins() -> Pins {
        Pins {
            crawl: "demo \"1\"\n".to_owned(),
            layout: Layout::Native,
            seed: None,
            geometry: Geometry::new(Lines::Two, 10, 3).unwrap(),
            capacity: Capacity::new(1000).unwrap(),
            error_rate: "1e-6".parse().unwrap(),
            algorithm: Algorithm::Scrapy,
            keep_fragments: false,
        }
    }

    #[test]
    fn a_header_reads_back_and_no_bit_of_it_can_change() {
        let header = Header::new(0x0123_4567_89ab_cdef, Seed::new(7), &pins());
        let bytes = header.encode();
        assert_eq!(Header::decode(&bytes), Ok(header));
        for bit in 0..8 * bytes.len() {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let damaged = Header::decode(&bytes);
            assert!(matches!(damaged, Err(Unreadable::Damaged(_))), "bit {bit}: {damaged:?}");
        }
        for end in 0..bytes.len() {
            assert!(Header::decode(&bytes[..end]).is_err(), "{end} bytes");
        }
    }

    #[test]
    fn another_format_is_told_from_damage() {
        let text = String::from_utf8(Header::new(1, Seed::new(7), &pins()).encode()).unwrap();
        let text = text.replace("format = 1", "format = 2");
        let content = &text[..text.rfind("crc").unwrap()];
        let crc = crc32c::crc32c(content.as_bytes());
        let text = format!("{content}crc = \"{crc:08x}\"\n");
        assert_eq!(Header::decode(text.as_bytes()), Err(Unreadable::Format(2)));
    }
}
