//! How a filter lies in Redis.

use urlseen_core::filter::{Capacity, ErrorRate, Parameters, Sizing, SpecError, StringLayout};

/// How a filter lies in Redis: urlseen's own way, or that of a project that has one there already.
/// The bits are the same as theirs, both ways.
///
/// The kinds of other projects hash text: the hex digits of a fingerprint, any other key as it is.
/// Some have no place for some text
/// ([`ErrorKind::Placement`](crate::ErrorKind::Placement)): none for text that is not
/// UTF-8 or empty, and `BlockCluster` none for what does not begin with hex digits.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum FilterKind {
    /// urlseen's own: 256 strings by leading byte, bits confined to a few lines of 64 bytes, a
    /// seed.
    Native {
        /// Keys that it is made for.
        capacity: u64,
        /// The share of unseen keys that is taken for seen once so many are in it.
        error_rate: f64,
    },
    /// That of `BloomFilter_imooc`.
    Imooc {
        /// As that project's `data_size`.
        capacity: u64,
        /// As its `error_rate`.
        error_rate: f64,
    },
    /// That of pyreBloom, which rounds the error rate to a C `float`.
    PyreBloom {
        /// As pyreBloom's.
        capacity: u32,
        /// As pyreBloom's `error`.
        error_rate: f64,
    },
    /// That of luw2007's `bloomfilter` as it is today: pyreBloom's without the rounding.
    Luw2007 {
        /// As its `BF_SIZE`.
        capacity: u32,
        /// As its `BF_ERROR`.
        error_rate: f64,
    },
    /// That of scrapy-redis-bloomfilter.
    ScrapyRedisBloomFilter {
        /// As its `BLOOMFILTER_BIT`.
        bit: u32,
        /// As its `BLOOMFILTER_HASH_NUMBER`.
        hash_number: u32,
    },
    /// That of scrapy-redis-bloomfilter-block-cluster.
    BlockCluster {
        /// As its `BLOOMFILTER_BIT`.
        bit: u32,
        /// As its `BLOOMFILTER_HASH_NUMBER`.
        hash_number: u32,
        /// As its `BLOOMFILTER_BLOCK_NUM`.
        block_num: u32,
    },
    /// That of scrapy-redis, a set of hex digits: exact, and 60 to 100 bytes a key.
    ScrapyRedis,
}

impl FilterKind {
    /// The same for the spec of a filter.
    pub(super) fn parameters(self) -> Result<Parameters, SpecError> {
        Ok(match self {
            Self::Native { capacity, error_rate } => {
                let sizing = Sizing::new(Capacity::new(capacity)?, ErrorRate::new(error_rate)?);
                Parameters::native(&sizing, None)
            }
            Self::Imooc { capacity, error_rate } => {
                Parameters::Strings(StringLayout::Imooc { capacity, error_rate })
            }
            Self::PyreBloom { capacity, error_rate } => {
                Parameters::Strings(StringLayout::PyreBloom { capacity, error_rate })
            }
            Self::Luw2007 { capacity, error_rate } => {
                Parameters::Strings(StringLayout::Luw2007 { capacity, error_rate })
            }
            Self::ScrapyRedisBloomFilter { bit, hash_number } => {
                Parameters::Strings(StringLayout::ScrapyRedisBloomFilter { bit, hash_number })
            }
            Self::BlockCluster { bit, hash_number, block_num } => {
                Parameters::Strings(StringLayout::BlockCluster { bit, hash_number, block_num })
            }
            Self::ScrapyRedis => Parameters::Set,
        })
    }
}
