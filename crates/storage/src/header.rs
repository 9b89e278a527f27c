//! Header of a storage folder, with the spec of its filter: the file `header`.
//!
//! The file has the form of the [`notes`]: JSON that people can read, and a CRC. `spec`
//! has the parameters of the filter under the names of their configuration keys, with the numbers
//! that are derived from them:
//!
//! ```text
//! {"format":7,"filter":"2b1d9f0c66a1e4d7","crawl":"demo","rules":{"positions":"murmur3-…",
//! "shards":"murmur3-…","algorithm":"scrapy 2.19/…"},"spec":{"filter.capacity":"10000000",…}}
//! 89abcdef
//! ```
//!
//! urlseen accepts the file only if urlseen itself would write the same bytes.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use urlseen_filter::choice::FilterPlace;
use urlseen_filter::id::RandomId;
use urlseen_filter::{FilterSpec, Seed};

use super::disk::Dir;
use super::error::{Damage, OpenError};
use super::notes;

/// Format of the folder: of its header, its snapshots and its log.
pub(crate) const FORMAT: u32 = 7;

/// Name of the file in the folder.
pub(super) const NAME: &str = "header";

/// Spec of a storage folder: the crawl, and the spec of its filter.
#[derive(Debug, Clone, PartialEq)]
pub struct StorageSpec {
    /// Name of the folder's crawl.
    pub crawl: String,
    /// Spec of the folder's filter.
    pub filter: FilterSpec,
}

/// Directory and header of a storage folder with a filter.
#[derive(Debug, Clone)]
pub(super) struct Begun {
    pub(super) dir: Dir,
    pub(super) header: Header,
}

/// Content of a folder's file `header`.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    filter: u64,
    /// Spec of the folder; with a seed, if the kind has one.
    pub(super) spec: StorageSpec,
    pub(super) rules: Rules,
}

/// Names of the rules that a program follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

    /// Returns the content of the file.
    pub(super) fn encode(&self) -> impl Serialize {
        let StorageSpec { crawl, filter } = self.spec.clone();
        let parts = filter.fields().into_iter().chain(filter.parameters.record());
        let spec = parts.map(|(name, value)| (name.to_owned(), value)).collect();
        let (filter, rules) = (RandomId::new(self.filter), self.rules.clone());
        HeaderContent { format: FORMAT, filter, crawl, rules, spec }
    }

    /// Reads a header that [`Header::encode`] wrote. The error names the folder `dir`.
    pub(super) fn decode(dir: &Path, bytes: &[u8]) -> Result<Self, OpenError> {
        let format = || notes::decode(NAME, bytes).map(|FormatOnly { format }| format);
        let found = text_format(bytes).map_or_else(format, Ok).map_err(OpenError::Header)?;
        if found != FORMAT {
            return Err(OpenError::Format { dir: dir.to_owned(), found });
        }
        let damaged = |what| OpenError::Header(Damage::new(NAME, 0, what));
        let HeaderContent { filter, crawl, rules, spec, .. } =
            notes::decode(NAME, bytes).map_err(OpenError::Header)?;
        let spec = FilterSpec::read(|name| spec.get(name).cloned());
        let filter_spec = spec.map_err(|_| damaged("a value cannot be read"))?;
        let spec = StorageSpec { crawl, filter: filter_spec };
        let header = Self { filter: filter.get(), spec, rules };
        if notes::encode(&header.encode()) != bytes {
            return Err(damaged("this version would write other bytes"));
        }
        Ok(header)
    }
}

/// Returns the format in the header of an early version, which is text without JSON.
fn text_format(bytes: &[u8]) -> Option<u32> {
    let mut lines = std::str::from_utf8(bytes).ok()?.lines();
    lines.find_map(|line| line.strip_prefix("format = ")?.parse().ok())
}

/// Number of the format, which every version can read.
#[derive(Deserialize)]
struct FormatOnly {
    format: u32,
}

/// Values in the JSON of the file.
#[derive(Serialize, Deserialize)]
struct HeaderContent {
    format: u32,
    filter: RandomId,
    crawl: String,
    rules: Rules,
    spec: BTreeMap<String, String>,
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use urlseen_filter::{Blocks, Capacity, Geometry, Parameters, Reservation, Sizing};
    use urlseen_fingerprint::Algorithm;
    use urlseen_fingerprint::same::TrackingList;

    pub(crate) fn spec() -> StorageSpec {
        StorageSpec {
            crawl: "demo \"1\"\n".to_owned(),
            filter: FilterSpec {
                parameters: native(7, Blocks::Two, 1000, "1e-6"),
                fingerprint: Algorithm::Scrapy.into(),
            },
        }
    }

    pub(crate) fn made_for(parameters: Parameters) -> StorageSpec {
        let StorageSpec { crawl, filter } = spec();
        StorageSpec { crawl, filter: FilterSpec { parameters, ..filter } }
    }

    pub(crate) fn native(seed: u32, blocks: Blocks, capacity: u64, rate: &str) -> Parameters {
        let geometry = Geometry::new(blocks, 10, 3).unwrap();
        let capacity = Capacity::new(capacity).unwrap();
        let sizing = Sizing { capacity, error_rate: rate.parse().unwrap(), geometry };
        Parameters::native(&sizing, Some(Seed::new(seed)))
    }

    pub(crate) fn reserved(capacity: u64, rate: &str, expansion: u32) -> Parameters {
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
            let bytes = notes::encode(&header.encode());
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
