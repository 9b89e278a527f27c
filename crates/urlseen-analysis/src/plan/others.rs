//! What the filters of other projects would come to: for the same keys, and with the same wish
//! where they take one.

use std::io::{self, Write};

use serde::Serialize;

use urlseen_core::filter::kinds::{BlockCluster, Imooc, PyreBloom, ScrapyRedisBloomFilter};
use urlseen_core::filter::layout::BitStrings;
use urlseen_core::filter::redisbloom::{Forecast, Growth};
use urlseen_core::filter::{Capacity, ErrorRate, Geometry};

use super::costs::REDIS_SET_BYTES;
use super::rates::{RateRow, rates, shown};
use super::text::{grouped, size};

/// The filters of other projects.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Others(pub(super) Vec<Other>);

/// A filter of another project.
#[derive(Debug, Serialize)]
pub(super) struct Other {
    pub(super) filter: &'static str,
    #[serde(flatten)]
    pub(super) found: Found,
}

/// What it comes to.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Found {
    Filled(Filled),
    /// It cannot be made for this, and why.
    Refused {
        refused: String,
    },
}

/// A filter that holds what it was made for.
#[derive(Debug, Serialize)]
pub(super) struct Filled {
    /// A set has none.
    #[serde(flatten)]
    pub(super) strings: Option<StringsShape>,
    /// What it takes of Redis's memory: the least and the most.
    pub(super) redis_bytes: [u64; 2],
    /// Bits of that memory for each key of the capacity.
    pub(super) bits_per_key: f64,
    /// The error rate that it was made for, of those that are made for one.
    asked: Option<f64>,
    /// Those that it has.
    pub(super) error_rates: Vec<RateRow>,
    /// That of `native` at capacity, in as many bits. It is made for no less than
    /// [`ErrorRate::MIN`]; `None` where it has no room for a block in each shard.
    native_error_rate: Option<f64>,
    /// Why the error rates are not the one asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// The Redis strings that hold a filter's bits.
#[derive(Debug, Serialize)]
pub(super) struct StringsShape {
    strings: u32,
    /// How many of them ever get a bit.
    used: usize,
    pub(super) k: u32,
    /// Bits of the strings that get any, whatever was asked for.
    bits: u64,
}

/// A filter of another project that can be made.
#[derive(Debug)]
pub(super) enum Made {
    /// Its bits lie in strings.
    Strings(Box<dyn BitStrings>),
    /// RedisBloom as `BF.RESERVE` makes it, which grows: past its capacity its error rate stays,
    /// and its memory triples. It is in memory of the module's own.
    RedisBloom { full: Forecast, capacity: u64, error_rate: f64 },
    /// A Redis set of fingerprints, which is never wrong.
    Set,
}

/// The kinds of other projects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Project {
    /// `BloomFilter_imooc`.
    Imooc,
    /// pyreBloom.
    PyreBloom,
    /// luw2007's port of pyreBloom.
    Luw2007,
    /// scrapy-redis-bloomfilter.
    ScrapyRedisBloomFilter,
    /// scrapy-redis-bloomfilter-block-cluster.
    BlockCluster,
    /// RedisBloom, a module of Redis.
    RedisBloom,
    /// The exact set of scrapy-redis.
    ScrapyRedis,
}

impl Project {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 7] = [
        Self::Imooc,
        Self::PyreBloom,
        Self::Luw2007,
        Self::ScrapyRedisBloomFilter,
        Self::BlockCluster,
        Self::RedisBloom,
        Self::ScrapyRedis,
    ];

    /// Returns its name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Imooc => "imooc",
            Self::PyreBloom => "pyrebloom",
            Self::Luw2007 => "luw2007-bloomfilter",
            Self::ScrapyRedisBloomFilter => "scrapy-redis-bloomfilter",
            Self::BlockCluster => "block-cluster",
            Self::RedisBloom => "redisbloom",
            Self::ScrapyRedis => "scrapy-redis",
        }
    }

    /// Whether it is made for an error rate.
    pub(super) fn asks(self) -> bool {
        !matches!(self, Self::ScrapyRedisBloomFilter | Self::BlockCluster | Self::ScrapyRedis)
    }

    /// The filter, made for so many keys and for that error rate where it is made for one; with its
    /// project's default settings.
    pub(super) fn make(self, keys: u64, rate: f64) -> Result<Made, String> {
        match self {
            Self::ScrapyRedisBloomFilter => self.sized(ScrapyRedisBloomFilter::DEFAULT_BIT),
            Self::BlockCluster => self.sized(BlockCluster::DEFAULT_BIT),
            Self::Imooc => strings(Imooc::new(keys, rate)),
            Self::PyreBloom => strings(PyreBloom::new(few(keys)?, rate)),
            Self::Luw2007 => strings(PyreBloom::unrounded(few(keys)?, rate)),
            Self::RedisBloom => match Forecast::of(rate, keys, Growth::default(), keys) {
                Ok(full) => Ok(Made::RedisBloom {
                    full: full.expect("a filter holds what it is made for"),
                    capacity: keys,
                    error_rate: rate,
                }),
                Err(refused) => Err(refused.to_string()),
            },
            Self::ScrapyRedis => Ok(Made::Set),
        }
    }

    /// The filter, with strings of 2^`bit` bits, of those projects that are sized so.
    pub(super) fn sized(self, bit: u32) -> Result<Made, String> {
        match self {
            Self::ScrapyRedisBloomFilter => strings(ScrapyRedisBloomFilter::new(
                bit,
                ScrapyRedisBloomFilter::DEFAULT_HASH_NUMBER,
            )),
            _ => strings(BlockCluster::new(
                bit,
                BlockCluster::DEFAULT_HASH_NUMBER,
                BlockCluster::DEFAULT_BLOCK_NUM,
            )),
        }
    }
}

fn strings<L: BitStrings + 'static>(kind: Result<L, impl ToString>) -> Result<Made, String> {
    match kind {
        Ok(kind) => Ok(Made::Strings(Box::new(kind))),
        Err(refused) => Err(refused.to_string()),
    }
}

/// pyreBloom counts keys in 32 bits.
fn few(keys: u64) -> Result<u32, String> {
    let most = grouped(u32::MAX.into());
    u32::try_from(keys).map_err(|_| format!("its capacity is a number of 32 bits, {most} at most"))
}

impl Made {
    /// Its error rate once it holds so many keys.
    pub(super) fn error_rate(&self, keys: u64) -> f64 {
        match self {
            Self::Strings(kind) => kind.error_rate(keys),
            Self::RedisBloom { full, capacity, error_rate } => {
                let grown = Forecast::of(*error_rate, *capacity, Growth::default(), keys);
                // One that cannot grow takes no more.
                grown.ok().flatten().map_or(full.rate.total, |it| it.rate.total)
            }
            Self::Set => 0.0,
        }
    }

    /// What it takes of Redis's memory with so many keys: the least and the most.
    pub(super) fn redis_bytes(&self, keys: u64) -> [u64; 2] {
        match self {
            Self::Strings(kind) => {
                let used = kind.used_strings().into_iter();
                [used.map(|string| allocated(kind.max_bytes(string))).sum(); 2]
            }
            Self::RedisBloom { full, .. } => [allocated(full.bits / 8); 2],
            Self::Set => REDIS_SET_BYTES.map(|bytes| bytes.saturating_mul(keys)),
        }
    }

    /// Why its error rate is not the one asked for.
    fn warning(&self) -> Option<String> {
        match self {
            Self::RedisBloom { full, .. } => full.rate.warning(),
            Self::Strings(_) | Self::Set => None,
        }
    }

    /// Its strings, and bytes of bits in them.
    fn shape(&self) -> Option<(StringsShape, u64)> {
        match self {
            Self::Strings(kind) => {
                let used = kind.used_strings();
                let bytes = used.iter().map(|&string| kind.max_bytes(string)).sum();
                let shape = StringsShape {
                    strings: kind.strings(),
                    used: used.len(),
                    k: kind.hashes(),
                    bits: used.iter().map(|&string| kind.bits(string)).sum(),
                };
                Some((shape, bytes))
            }
            Self::RedisBloom { full, .. } => {
                let shape = StringsShape { strings: 1, used: 1, k: full.hashes, bits: full.bits };
                Some((shape, full.bits / 8))
            }
            Self::Set => None,
        }
    }
}

impl Others {
    /// Computes them.
    pub(super) fn of(capacity: Capacity, error_rate: ErrorRate) -> Self {
        let (keys, rate) = (capacity.get(), error_rate.get());
        let other = |project: Project| {
            let found = match project.make(keys, rate) {
                Ok(made) => Found::Filled(Filled::of(&made, keys, project.asks().then_some(rate))),
                Err(refused) => Found::Refused { refused },
            };
            Other { filter: project.name(), found }
        };
        Self(Project::ALL.map(other).into())
    }

    /// Prints what they have in Redis, and what that is worth.
    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "\n{:<24} {:>7} {:>5} {:>21} {:>19} {:>9} {:>21}",
            "other projects' filters",
            "strings",
            "used",
            "bits written to",
            "memory in Redis",
            "asked for",
            "native, as many bits"
        )?;
        for Other { filter, found } in &self.0 {
            if let Found::Filled(filled) = found {
                filled.print(filter, out)?;
            }
        }
        for Other { filter, found } in &self.0 {
            if let Found::Filled(Filled { warning: Some(warning), .. }) = found {
                writeln!(out, "\n{filter}: {warning}")?;
            }
        }
        writeln!(
            out,
            "\nWhy they are as wrong as that, and what was counted: docs/design/layouts.md"
        )
    }
}

impl Filled {
    fn of(made: &Made, keys: u64, asked: Option<f64>) -> Self {
        let redis_bytes = made.redis_bytes(keys);
        let (strings, bytes) = made.shape().unzip();
        Self {
            strings,
            redis_bytes,
            bits_per_key: redis_bytes[0] as f64 * 8.0 / keys as f64,
            asked,
            error_rates: rates(keys, |keys| made.error_rate(keys)),
            native_error_rate: native(bytes.unwrap_or(redis_bytes[0]), keys),
            warning: made.warning(),
        }
    }

    fn print(&self, filter: &str, out: &mut impl Write) -> io::Result<()> {
        let [least, most] = self.redis_bytes.map(|bytes| size(bytes as f64));
        let memory = if least == most { least } else { format!("{least} - {most}") };
        let strings = match &self.strings {
            Some(StringsShape { strings, used, bits, .. }) => {
                format!("{strings:>7} {used:>5} {:>21}", grouped(*bits))
            }
            None => format!("{:<35}", "  a set, exact"),
        };
        let asked = self.asked.map_or_else(|| "-".to_owned(), |rate| format!("{rate:e}"));
        let native = match self.native_error_rate {
            None => "-".to_owned(),
            Some(native) if native <= ErrorRate::MIN => format!("< {:e}", ErrorRate::MIN),
            Some(native) => shown(native),
        };
        writeln!(out, "{filter:<24} {strings} {memory:>19} {asked:>9} {native:>21}")
    }
}

/// The error rate of `native` in so many bytes, which is not made for less than its smallest.
fn native(bytes: u64, keys: u64) -> Option<f64> {
    Geometry::fitting(bytes, keys).map(|(_, rate)| rate.max(ErrorRate::MIN))
}

/// What Redis takes for a string of so many bytes, its own header included: jemalloc, which it
/// allocates with, has four sizes from one power of two to the next. A string below a mebibyte,
/// which Redis lets grow to twice its length, may take more.
pub fn allocated(bytes: u64) -> u64 {
    // Flags, lengths and the zero behind the last byte; far below the distance of two sizes.
    const HEADER: u64 = 32;
    let taken = bytes + HEADER;
    taken.next_multiple_of(taken.next_power_of_two() / 8)
}
