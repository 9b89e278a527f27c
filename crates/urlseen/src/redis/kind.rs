//! How a filter lies in Redis.

use urlseen_core::filter::{Kind, Parameters, SpecError};

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
    /// That of Redisson's `RBloomFilter`, with the codec `StringCodec` or `ByteArrayCodec`.
    Redisson {
        /// As its `expectedInsertions`.
        capacity: u64,
        /// As its `falseProbability`.
        error_rate: f64,
    },
    /// That of redis-lua-scaling-bloom-filter, which grows, in its plain variant.
    RedisLuaScaling {
        /// As the initial size that its scripts are called with.
        capacity: u64,
        /// As their precision.
        error_rate: f64,
    },
    /// That of scrapy-redis, a set of hex digits: exact, and 60 to 100 bytes a key.
    ScrapyRedis,
}

impl FilterKind {
    /// The same for the spec of a filter.
    pub(super) fn parameters(self) -> Result<Parameters, SpecError> {
        let size = |capacity: u64, error_rate: f64| {
            vec![
                ("filter.capacity", capacity.to_string()),
                ("filter.error_rate", error_rate.to_string()),
            ]
        };
        let bits = |bit: u32, hash_number: u32| {
            vec![("filter.bit", bit.to_string()), ("filter.hash_number", hash_number.to_string())]
        };
        let (kind, mut parts) = match self {
            Self::Native { capacity, error_rate } => ("native", size(capacity, error_rate)),
            Self::Imooc { capacity, error_rate } => ("imooc", size(capacity, error_rate)),
            Self::PyreBloom { capacity, error_rate } => {
                ("pyrebloom", size(capacity.into(), error_rate))
            }
            Self::Luw2007 { capacity, error_rate } => {
                ("luw2007-bloomfilter", size(capacity.into(), error_rate))
            }
            Self::ScrapyRedisBloomFilter { bit, hash_number } => {
                ("scrapy-redis-bloomfilter", bits(bit, hash_number))
            }
            Self::BlockCluster { bit, hash_number, .. } => {
                ("scrapy-redis-bloomfilter-block-cluster", bits(bit, hash_number))
            }
            Self::Redisson { capacity, error_rate } => ("redisson", size(capacity, error_rate)),
            Self::RedisLuaScaling { capacity, error_rate } => {
                ("redis-lua-scaling", size(capacity, error_rate))
            }
            Self::ScrapyRedis => ("scrapy-redis", Vec::new()),
        };
        if let Self::BlockCluster { block_num, .. } = self {
            parts.push(("filter.block_num", block_num.to_string()));
        }
        let kind: Kind = kind.parse().expect("a kind of the registry");
        kind.read(&|name| {
            let part = parts.iter().find(|(part, _)| *part == name);
            part.map(|(_, value)| value.clone())
        })
    }
}
