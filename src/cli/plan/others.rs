//! What the filters of other projects would come to: for the same keys, and with the same wish
//! where they take one.

use std::io::{self, Write};

use serde::Serialize;

use urlseen::filter::layout::{BitStrings, BlockCluster, Imooc, PyreBloom, ScrapyRedisBloomFilter};
use urlseen::filter::{Capacity, ErrorRate, Geometry};
use urlseen::redisbloom::{Forecast, Growth};

use super::costs::REDIS_SET_BYTES;
use super::text::{grouped, size};

/// Where error rates are shown, in percent of capacity.
const PERCENT: [u64; 4] = [50, 100, 150, 200];

/// Error rates below this are all the same to a reader.
const NEGLIGIBLE: f64 = 1e-99;

/// The filters of other projects.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Others(Vec<Other>);

/// A filter of another project.
#[derive(Debug, Serialize)]
struct Other {
    filter: &'static str,
    #[serde(flatten)]
    found: Found,
}

/// What it comes to.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Found {
    Filled(Filled),
    /// It cannot be made for this, and why.
    Refused {
        refused: String,
    },
}

/// A filter that holds what it was made for.
#[derive(Debug, Serialize)]
struct Filled {
    /// A set has none.
    #[serde(flatten)]
    strings: Option<Shape>,
    /// What it takes of Redis's memory: the least and the most.
    redis_bytes: [u64; 2],
    /// The error rate that it was made for, of those that are made for one.
    asked: Option<f64>,
    /// Those that it has.
    error_rates: Vec<RateRow>,
    /// That of `native` at capacity, in as many bits. It is made for no less than
    /// [`ErrorRate::MIN`]; `None` where it has no room for a line in each shard.
    native_error_rate: Option<f64>,
}

/// The Redis strings that hold a filter's bits.
#[derive(Debug, Serialize)]
struct Shape {
    strings: u32,
    /// How many of them ever get a bit.
    used: usize,
    k: u32,
    /// Bits of the strings that get any, whatever was asked for.
    bits: u64,
}

/// The error rate at some number of keys.
#[derive(Debug, Serialize)]
struct RateRow {
    percent: u64,
    keys: u64,
    error_rate: f64,
}

impl Others {
    /// Computes them.
    pub(super) fn of(capacity: Capacity, error_rate: ErrorRate) -> Self {
        let (keys, rate) = (capacity.get(), error_rate.get());
        let imooc = Imooc::new(keys, rate);
        let bloomfilter = ScrapyRedisBloomFilter::new(
            ScrapyRedisBloomFilter::DEFAULT_BIT,
            ScrapyRedisBloomFilter::DEFAULT_HASH_NUMBER,
        );
        let cluster = BlockCluster::new(
            BlockCluster::DEFAULT_BIT,
            BlockCluster::DEFAULT_HASH_NUMBER,
            BlockCluster::DEFAULT_BLOCK_NUM,
        );
        Self(vec![
            Other::of("imooc", keys, Some(rate), imooc),
            Other::of("pyrebloom", keys, Some(rate), pyrebloom(keys, rate)),
            Other::of("scrapy-redis-bloomfilter", keys, None, bloomfilter),
            Other::of("block-cluster", keys, None, cluster),
            Other { filter: "redisbloom", found: redisbloom(keys, rate) },
            Other::set("scrapy-redis", keys),
        ])
    }

    /// Prints the tables: what each takes, and how often each is wrong.
    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "\n{:<24} {:>7} {:>5} {:>4} {:>21} {:>19}",
            "other projects' filters", "strings", "used", "k", "bits written to", "memory in Redis"
        )?;
        for Other { filter, found } in &self.0 {
            match found {
                Found::Filled(filled) => filled.print_memory(filter, out)?,
                Found::Refused { refused } => writeln!(out, "{filter:<24} {refused}")?,
            }
        }
        write!(out, "\n{:<24} {:>9}", "error rate", "asked for")?;
        for percent in PERCENT {
            write!(out, " {:>9}", format!("{percent} %"))?;
        }
        writeln!(out, "  native, as many bits")?;
        for Other { filter, found } in &self.0 {
            if let Found::Filled(filled) = found {
                filled.print_rates(filter, out)?;
            }
        }
        writeln!(out, "\nWhy they are as wrong as that, and what was counted: docs/layouts.md")
    }
}

impl Other {
    /// A filter whose bits lie in strings, or the reason why there is none.
    fn of<L: BitStrings>(
        filter: &'static str,
        keys: u64,
        asked: Option<f64>,
        layout: Result<L, impl ToString>,
    ) -> Self {
        let found = match layout {
            Ok(layout) => Found::Filled(Filled::of(&layout, keys, asked)),
            Err(refused) => Found::Refused { refused: refused.to_string() },
        };
        Self { filter, found }
    }

    /// A Redis set of fingerprints, which is never wrong.
    fn set(filter: &'static str, keys: u64) -> Self {
        let redis_bytes = REDIS_SET_BYTES.map(|bytes| bytes * keys);
        let filled = Filled {
            strings: None,
            redis_bytes,
            asked: None,
            error_rates: rates(keys, |_| 0.0),
            native_error_rate: native(redis_bytes[0], keys),
        };
        Self { filter, found: Found::Filled(filled) }
    }
}

impl Filled {
    fn of(layout: &impl BitStrings, keys: u64, asked: Option<f64>) -> Self {
        let used = layout.used_strings();
        let bytes: u64 = used.iter().map(|&string| layout.max_bytes(string)).sum();
        let allocated = used.iter().map(|&string| allocated(layout.max_bytes(string))).sum();
        Self {
            strings: Some(Shape {
                strings: layout.strings(),
                used: used.len(),
                k: layout.hashes(),
                bits: used.iter().map(|&string| layout.bits(string)).sum(),
            }),
            redis_bytes: [allocated; 2],
            asked,
            error_rates: rates(keys, |keys| layout.error_rate(keys)),
            native_error_rate: native(bytes, keys),
        }
    }

    fn print_memory(&self, filter: &str, out: &mut impl Write) -> io::Result<()> {
        let [least, most] = self.redis_bytes.map(|bytes| size(bytes as f64));
        let memory = if least == most { least } else { format!("{least} - {most}") };
        match &self.strings {
            Some(Shape { strings, used, k, bits }) => {
                let bits = grouped(*bits);
                writeln!(out, "{filter:<24} {strings:>7} {used:>5} {k:>4} {bits:>21} {memory:>19}")
            }
            None => writeln!(out, "{filter:<24} {:<40} {memory:>19}", "  a set, exact"),
        }
    }

    fn print_rates(&self, filter: &str, out: &mut impl Write) -> io::Result<()> {
        let asked = self.asked.map_or_else(|| "-".to_owned(), |rate| format!("{rate:e}"));
        write!(out, "{filter:<24} {asked:>9}")?;
        for RateRow { error_rate, .. } in &self.error_rates {
            let is_exact = self.strings.is_none();
            write!(out, " {:>9}", if is_exact { "0".to_owned() } else { rate(*error_rate) })?;
        }
        let native = match self.native_error_rate {
            None => "-".to_owned(),
            Some(native) if native <= ErrorRate::MIN => format!("< {:e}", ErrorRate::MIN),
            Some(native) => rate(native),
        };
        writeln!(out, " {native:>21}")
    }
}

/// RedisBloom as `BF.RESERVE` makes it for this, which grows: past its capacity its error rate
/// stays, and its memory triples. It is in memory of the module's own.
fn redisbloom(keys: u64, rate: f64) -> Found {
    let grown = |held| Forecast::of(rate, keys, Growth::default(), held);
    let full = match grown(keys) {
        Ok(full) => full.expect("a filter holds what it is made for"),
        Err(refused) => return Found::Refused { refused: refused.to_string() },
    };
    // One that cannot grow takes no more.
    let rate_at = |held| grown(held).ok().flatten().map_or(full.error_rate, |it| it.error_rate);
    let bytes = full.bits / 8;
    Found::Filled(Filled {
        strings: Some(Shape { strings: 1, used: 1, k: full.hashes, bits: full.bits }),
        redis_bytes: [allocated(bytes); 2],
        asked: Some(rate),
        error_rates: rates(keys, rate_at),
        native_error_rate: native(bytes, keys),
    })
}

/// pyreBloom, which counts keys in 32 bits.
fn pyrebloom(keys: u64, rate: f64) -> Result<PyreBloom, String> {
    let most = grouped(u32::MAX.into());
    let Ok(capacity) = u32::try_from(keys) else {
        return Err(format!("its capacity is a number of 32 bits, {most} at most"));
    };
    PyreBloom::new(capacity, rate).map_err(|refused| refused.to_string())
}

/// Error rates at each of [`PERCENT`].
fn rates(capacity: u64, error_rate: impl Fn(u64) -> f64) -> Vec<RateRow> {
    let at = |percent: u64| {
        let keys = (capacity * percent).div_ceil(100);
        RateRow { percent, keys, error_rate: error_rate(keys) }
    };
    PERCENT.map(at).into()
}

/// The error rate of `native` in so many bytes, which is not made for less than its smallest.
fn native(bytes: u64, keys: u64) -> Option<f64> {
    Geometry::fitting(bytes, keys).map(|(_, rate)| rate.max(ErrorRate::MIN))
}

/// What Redis takes for a string of so many bytes, its own header included: jemalloc, which it
/// allocates with, has four sizes from one power of two to the next. A string below a mebibyte,
/// which Redis lets grow to twice its length, may take more.
pub(in crate::cli) fn allocated(bytes: u64) -> u64 {
    // Flags, lengths and the zero behind the last byte; far below the distance of two sizes.
    const HEADER: u64 = 32;
    let taken = bytes + HEADER;
    taken.next_multiple_of(taken.next_power_of_two() / 8)
}

fn rate(rate: f64) -> String {
    if rate < NEGLIGIBLE { format!("<{NEGLIGIBLE:.0e}") } else { format!("{rate:.2e}") }
}
