//! Header of a storage folder, with the spec of its filter: the file `header`.
//!
//! The file is text, so that people can read it without this program. Each line is `key = value`,
//! with strings as in JSON. The last line is the CRC-32C of all bytes before it:
//!
//! ```text
//! urlseen storage folder
//! format = 5
//! filter = "2b1d9f0c66a1e4d7"
//! crawl = "demo"
//! kind = "native"
//! positions = "murmur3-x64-128/wyrand/block-64/bit-9"
//! shards = "murmur3-x64-128-top-byte"
//! seed = 3735928559
//! bits = 287309824
//! k = 20
//! blocks = 2
//! bits_per_block = 10
//! blocks_per_part = 1096
//! capacity = 10000000
//! error_rate = 1e-6
//! algorithm = "scrapy"
//! algorithm_version = "scrapy 2.19/w3lib 2.5"
//! keep_fragments = false
//! drop_tracking = "2026-11"               only with a list of tracking parameters
//! same = [{"host":"^h$","fold":["www"]}]  only with rules [[same]]
//! crc = "89abcdef"
//! ```
//!
//! The lines from `kind` to `same` are the spec of the filter. For a filter of RedisBloom,
//! these lines have the parameters of its `BF.RESERVE`. For an imported filter, they are the
//! parameters of its first layer:
//!
//! ```text
//! kind = "redisbloom"
//! positions = "redisbloom/hex-digits/murmur64a-chained"
//! capacity = 10000000                     imported = true
//! error_rate = 1e-6
//! expansion = 2
//! ```
//!
//! urlseen accepts the file only if urlseen itself would write the same bytes.

use std::fmt::{self, Write as _};
use std::path::Path;

use super::damage::Damage;
use super::error::OpenError;
use crate::filter::choice::FilterPlace;
use crate::filter::{FilterSpec, Kind, Seed};
use crate::fingerprint::FingerprintSpec;
use crate::fingerprint::same::{SameRules, TrackingList};

/// Format of the folder: of its header, its snapshots and its log.
pub(crate) const FORMAT: u32 = 6;

/// Name of the file in the folder.
pub(super) const NAME: &str = "header";

const TITLE: &str = "urlseen storage folder";

/// Prefix of the configuration keys that belong to a filter.
const SECTION: &str = "filter.";

/// Spec of a storage folder: the crawl, and the spec of its filter.
#[derive(Debug, Clone, PartialEq)]
pub struct StorageSpec {
    /// Name of the folder's crawl.
    pub crawl: String,
    /// Spec of the folder's filter.
    pub filter: FilterSpec,
}

/// Content of a folder's file `header`.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    filter: u64,
    /// Spec of the folder; with a seed, if the kind has one.
    spec: StorageSpec,
    pub(super) rules: Rules,
}

/// Names of the rules that a program follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rules {
    pub(super) positions: String,
    pub(super) shards: String,
    pub(super) algorithm: String,
}

impl Rules {
    /// Returns the rules of this program.
    pub(super) fn own(filter: &FilterSpec) -> Self {
        let [positions, shards] = filter.parameters.rules();
        Self { positions, shards, algorithm: filter.fingerprint.algorithm.version().to_owned() }
    }
}

impl Header {
    /// Builds the header of a folder that this program makes for `spec`.
    ///
    /// # Panics
    /// If the spec lacks a seed that its kind needs, or the kind exists only in Redis.
    pub(super) fn new(filter: u64, spec: &StorageSpec) -> Self {
        let parameters = &spec.filter.parameters;
        let is_open = parameters.seeded(|| Seed::new(0)) != *parameters;
        assert!(!is_open, "the seed is drawn before");
        let kind = parameters.kind();
        assert!(kind.is_in(FilterPlace::Local), "{kind} is a kind of Redis alone");
        Self { filter, spec: spec.clone(), rules: Rules::own(&spec.filter) }
    }

    /// Returns the header with another spec of the fingerprints.
    pub(super) fn computed_by(&self, fingerprint: FingerprintSpec) -> Self {
        let mut header = self.clone();
        header.spec.filter.fingerprint = fingerprint;
        header
    }

    /// Returns the id of the filter, drawn when the folder was begun.
    pub fn filter(&self) -> u64 {
        self.filter
    }

    /// Returns the spec of the folder, with its seed.
    pub fn spec(&self) -> &StorageSpec {
        &self.spec
    }

    /// Returns the number of the filter's shards.
    pub fn shards(&self) -> usize {
        self.spec.filter.parameters.shards()
    }

    /// Returns the bytes of the file.
    pub(super) fn encode(&self) -> Vec<u8> {
        let StorageSpec { crawl, filter } = &self.spec;
        let FilterSpec { parameters, fingerprint } = filter;
        let Rules { positions, shards, algorithm: algorithm_version } = &self.rules;
        let mut text = format!("{TITLE}\n");
        let mut line = |key: &str, value: &dyn fmt::Display| {
            writeln!(text, "{key} = {value}").expect("a string takes all");
        };
        line("format", &FORMAT);
        line("filter", &quoted(&id(self.filter)));
        line("crawl", &quoted(crawl));
        line("kind", &quoted(parameters.kind().name()));
        line("positions", &quoted(positions));
        if !shards.is_empty() {
            line("shards", &quoted(shards));
        }
        for (name, value) in parameters.record() {
            line(name.trim_start_matches(SECTION), &value);
        }
        line("algorithm", &quoted(fingerprint.algorithm.name()));
        line("algorithm_version", &quoted(algorithm_version));
        line("keep_fragments", &fingerprint.keep_fragments);
        if fingerprint.drop_tracking != TrackingList::None {
            line("drop_tracking", &quoted(fingerprint.drop_tracking.name()));
        }
        if !fingerprint.same.is_empty() {
            line("same", &fingerprint.same);
        }
        text.push_str(&crc_line(text.as_bytes()));
        text.into_bytes()
    }

    /// Reads a header that [`Header::encode`] wrote. The error names the folder `dir`.
    pub(super) fn decode(dir: &Path, bytes: &[u8]) -> Result<Self, OpenError> {
        let damaged = |what| OpenError::Header(Damage::new(NAME, 0, what));
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("the file is not text"))?;
        let end =
            text.rfind("crc = ").ok_or_else(|| damaged("the file does not end with a CRC"))?;
        if text[end..] != crc_line(&bytes[..end]) {
            return Err(damaged("the CRC does not match"));
        }
        let format = value(text, "format").and_then(|value| value.parse().ok());
        if let Some(found) = format.filter(|&format| format != FORMAT) {
            return Err(OpenError::Format { dir: dir.to_owned(), found });
        }
        let header = Self::parse(text).ok_or_else(|| damaged("a value cannot be read"))?;
        if header.encode() != bytes {
            return Err(damaged("this version would write other bytes"));
        }
        Ok(header)
    }

    fn parse(text: &str) -> Option<Self> {
        let string = |key| serde_json::from_str::<String>(value(text, key)?).ok();
        let number = |key| u64::from_str_radix(&string(key)?, 16).ok();
        let kind: Kind = string("kind")?.parse().ok()?;
        let part = |name: &'static str| value(text, name.trim_start_matches(SECTION));
        Some(Self {
            filter: number("filter")?,
            spec: StorageSpec {
                crawl: string("crawl")?,
                filter: FilterSpec {
                    parameters: kind.read(&|name| part(name).map(str::to_owned)).ok()?,
                    fingerprint: FingerprintSpec {
                        algorithm: string("algorithm")?.parse().ok()?,
                        keep_fragments: value(text, "keep_fragments")?.parse().ok()?,
                        drop_tracking: match string("drop_tracking") {
                            Some(list) => list.parse().ok()?,
                            None => TrackingList::None,
                        },
                        same: match value(text, "same") {
                            Some(rules) => rules.parse().ok()?,
                            None => SameRules::default(),
                        },
                    },
                },
            },
            rules: Rules {
                positions: string("positions")?,
                shards: string("shards").unwrap_or_default(),
                algorithm: string("algorithm_version")?,
            },
        })
    }
}

/// Returns the last line of the header: the CRC of `content`.
fn crc_line(content: &[u8]) -> String {
    format!("crc = \"{:08x}\"\n", crc32c::crc32c(content))
}

fn id(number: u64) -> String {
    format!("{number:016x}")
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns the text after `key = `.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::filter::{Blocks, Capacity, Geometry, Parameters, Reservation, Sizing};
    use crate::fingerprint::Algorithm;

    pub(in crate::storage) fn spec() -> StorageSpec {
        StorageSpec {
            crawl: "demo \"1\"\n".to_owned(),
            filter: FilterSpec {
                parameters: native(7, Blocks::Two, 1000, "1e-6"),
                fingerprint: Algorithm::Scrapy.into(),
            },
        }
    }

    pub(in crate::storage) fn made_for(parameters: Parameters) -> StorageSpec {
        let StorageSpec { crawl, filter } = spec();
        StorageSpec { crawl, filter: FilterSpec { parameters, ..filter } }
    }

    pub(in crate::storage) fn native(
        seed: u32,
        blocks: Blocks,
        capacity: u64,
        rate: &str,
    ) -> Parameters {
        let geometry = Geometry::new(blocks, 10, 3).unwrap();
        let capacity = Capacity::new(capacity).unwrap();
        let sizing = Sizing { capacity, error_rate: rate.parse().unwrap(), geometry };
        Parameters::native(&sizing, Some(Seed::new(seed)))
    }

    pub(in crate::storage) fn reserved(capacity: u64, rate: &str, expansion: u32) -> Parameters {
        Parameters::reserved(Reservation {
            capacity: Capacity::new(capacity).unwrap(),
            error_rate: rate.parse().unwrap(),
            expansion,
        })
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Header, OpenError> {
        Header::decode(Path::new("folder"), bytes)
    }

    #[test]
    fn a_header_is_read_back_and_a_flipped_bit_is_noticed() {
        let others = [reserved(1000, "1e-6", 2), reserved(5, "0.01", 0), Parameters::imported()];
        let mut with_rules = spec();
        with_rules.filter.fingerprint.drop_tracking = TrackingList::November2026;
        with_rules.filter.fingerprint.same = r#"[{"host":"^h$","fold":["www"]}]"#.parse().unwrap();
        for spec in others.map(made_for).into_iter().chain([spec(), with_rules]) {
            let header = Header::new(0x0123_4567_89ab_cdef, &spec);
            let bytes = header.encode();
            assert_eq!(decode(&bytes).unwrap(), header);
            for bit in 0..8 * bytes.len() {
                let mut bytes = bytes.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let damaged = decode(&bytes);
                assert!(matches!(damaged, Err(OpenError::Header(_))), "bit {bit}: {damaged:?}");
            }
            for end in 0..bytes.len() {
                assert!(decode(&bytes[..end]).is_err(), "{end} bytes");
            }
        }
    }
}
