//! Header and notes of a storage folder: the files `header` and `notes`.
//!
//! The first line of both is JSON, and the last line is the CRC-32C of the first line in hex. A
//! change replaces the whole file. In the header, `spec` has the parameters of the filter under
//! the names of their configuration keys, with the numbers that are derived from them:
//!
//! ```text
//! {"format":7,"filter":"2b1d9f0c66a1e4d7","crawl":"demo","rules":{"positions":"murmur3-…",
//! "shards":"murmur3-…","algorithm":"scrapy 2.19/…"},"spec":{"filter.capacity":"10000000",…}}
//! 89abcdef
//! ```
//!
//! urlseen accepts a header only if urlseen itself would write the same bytes.
//!
//! The notes are what a folder records beside its filter:
//!
//! ```text
//! {"lock":131090,"runs":["2b1d9f0c66a1e4d7"],"filter":null,"checkpoints":[],"timing":null}
//! 89abcdef
//! ```

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use urlseen_filter::choice::FilterPlace;
use urlseen_filter::id::RandomId;
use urlseen_filter::{CANONICAL, FilterSpec, Seed};
use urlseen_fingerprint::canonical::CanonicalForm;

use super::clock::Timing;
use super::disk::{Dir, aside};
use super::encoding::FORMAT;
use super::error::{Damage, OpenError, ReadError};

/// Names of the two files in the folder.
pub(super) const HEADER: &str = "header";
pub(super) const NOTES: &str = "notes";

/// Maximum number of runs to remember, for restarts in quick succession.
pub(super) const RUNS_MAX: usize = 64;

/// Maximum number of sources to remember. Only the most recently imported sources are kept.
pub(super) const CHECKPOINTS_MAX: usize = 1000;

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
    /// Id of the filter, drawn when the folder was begun.
    pub filter: RandomId,
    /// Spec of the folder; with a seed, if the kind has one.
    pub spec: StorageSpec,
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
        Self { positions, shards, algorithm: filter.fingerprint.version() }
    }
}

impl Header {
    /// Builds the header of a folder that this program makes for `spec`.
    ///
    /// # Panics
    /// If the spec lacks a seed that its kind needs, or the kind exists only in Redis.
    pub(super) fn new(filter: RandomId, spec: &StorageSpec) -> Self {
        let parameters = &spec.filter.parameters;
        let is_open = parameters.seeded(|| Seed::new(0)) != *parameters;
        assert!(!is_open, "the seed is drawn before");
        let kind = parameters.kind();
        assert!(kind.is_in(FilterPlace::Local), "{kind} is a kind of Redis alone");
        Self { filter, spec: spec.clone(), rules: Rules::own(&spec.filter) }
    }

    /// Returns the number of the filter's shards.
    pub(crate) fn shards(&self) -> usize {
        self.spec.filter.parameters.shards()
    }

    /// Returns the content of the file.
    pub(super) fn encode(&self) -> impl Serialize {
        let StorageSpec { crawl, filter } = self.spec.clone();
        // As before there were two canonical forms, the default one has no field.
        let is_recorded = |(name, value): &(&str, String)| {
            *name != CANONICAL || *value != CanonicalForm::default().name()
        };
        let parts = filter.fields().into_iter().filter(is_recorded);
        let parts = parts.chain(filter.parameters.record());
        let spec = parts.map(|(name, value)| (name.to_owned(), value)).collect();
        let (filter, rules) = (self.filter, self.rules.clone());
        HeaderContent { format: FORMAT, filter, crawl, rules, spec }
    }

    /// Reads a header that [`Header::encode`] wrote. The error names the folder `dir`.
    pub(super) fn decode(dir: &Path, bytes: &[u8]) -> Result<Self, OpenError> {
        let format = || decode::<Value>(HEADER, bytes).map(|it| it["format"].as_u64());
        let found = text_format(bytes).map_or_else(format, |it| Ok(Some(it)));
        let found = found.map_err(OpenError::Header)?.unwrap_or_default();
        if found != u64::from(FORMAT) {
            return Err(OpenError::Format { dir: dir.to_owned(), found });
        }
        let damaged = |what| OpenError::Header(Damage::new(HEADER, 0, what));
        let HeaderContent { filter, crawl, rules, spec, .. } =
            decode(HEADER, bytes).map_err(OpenError::Header)?;
        let spec = FilterSpec::read(|name| spec.get(name).cloned());
        let filter_spec = spec.map_err(|_| damaged("a value cannot be read"))?;
        let spec = StorageSpec { crawl, filter: filter_spec };
        let header = Self { filter, spec, rules };
        if encode(&header.encode()) != bytes {
            return Err(damaged("this version would write other bytes"));
        }
        Ok(header)
    }
}

/// Returns the format in the header of an early version, which is text without JSON.
fn text_format(bytes: &[u8]) -> Option<u64> {
    let mut lines = std::str::from_utf8(bytes).ok()?.lines();
    lines.find_map(|line| line.strip_prefix("format = ")?.parse().ok())
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

/// All that a folder records beside its filter.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Notes {
    /// Inode of the folder's file `lock`. A process that holds the lock of the same file knows that
    /// the `runs` have ended. In a copy of the folder, the lock is another file and proves nothing.
    pub(super) lock: u64,
    /// Runs that may hold the crawl's lease in Redis, newest first.
    pub(crate) runs: Vec<RandomId>,
    /// Id of the filter of the `checkpoints`.
    pub(super) filter: Option<RandomId>,
    /// Progress of the imports into the filter.
    pub checkpoints: Vec<Checkpoint>,
    /// Times that the clocks showed when a run began. Without them, it is unknown how
    /// much time has passed since that run.
    pub timing: Option<Timing>,
}

/// Progress of the import of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Name of the imported source.
    pub source: String,
    /// Version of the source. It distinguishes the source from other content of the same name.
    pub version: String,
    /// Place in the source: everything before it is in the log.
    pub at: u64,
    /// Number of elements of the source before `at`.
    pub count: u64,
}

impl Notes {
    /// Reads the notes of a folder. A new folder has none.
    pub(super) fn read(dir: &Dir) -> Result<Self, ReadError> {
        Ok(dir.read(NOTES)?.map_or_else(|| Ok(Self::default()), |bytes| decode(NOTES, &bytes))?)
    }

    /// Adds checkpoints, and removes the earlier ones of the same sources.
    pub fn add(&mut self, new: &[Checkpoint]) {
        self.checkpoints.retain(|known| new.iter().all(|new| new.source != known.source));
        self.checkpoints.extend_from_slice(new);
        self.checkpoints.drain(..self.checkpoints.len().saturating_sub(CHECKPOINTS_MAX));
    }
}

/// Returns the bytes of a file: the content, and its CRC.
pub(super) fn encode(content: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_string(content).expect("text and numbers");
    text.push('\n');
    text.push_str(&crc_line(text.as_bytes()));
    text.into_bytes()
}

/// Reads the content of a file with these bytes.
pub(super) fn decode<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, Damage> {
    let end = memchr::memchr(b'\n', bytes).map_or(0, |end| end + 1);
    let (content, crc) = bytes.split_at(end);
    if crc != crc_line(content).as_bytes() {
        return Err(Damage::new(name, 0, "the CRC does not match"));
    }
    serde_json::from_slice(content).map_err(|_| Damage::new(name, 0, "a value cannot be read"))
}

fn crc_line(content: &[u8]) -> String {
    format!("{:08x}\n", crc32c::crc32c(content))
}

/// Replaces the file called `name`. It is on the disk when the function returns.
pub(super) fn write(dir: &Dir, name: &str, content: &impl Serialize) -> io::Result<()> {
    dir.write_aside(name, &encode(content)).and_then(|()| dir.replace(name)).inspect_err(|_| {
        // If the disk is full, the half-written file must not occupy the last free space.
        let _ = dir.remove(&aside(name));
    })?;
    dir.sync()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use urlseen_filter::redisbloom::Reservation;
    use urlseen_filter::{Blocks, Capacity, Geometry, Parameters, Sizing};
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
            let header = Header::new(RandomId::new(0x0123_4567_89ab_cdef), &spec);
            let bytes = encode(&header.encode());
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
