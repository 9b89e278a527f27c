//! Registry of the kinds of filters: one line for each kind.
//!
//! A word in the configuration names a [`Kind`]. [`Kind::read`] reads the parameters of a filter
//! from the configuration's values. All other code learns the filter's properties from these
//! [`Parameters`].

pub(crate) mod kind;
pub(crate) mod parameters;
pub(crate) mod values;

use std::str::FromStr;

pub use kind::Kind;
pub use parameters::Parameters;

use super::choice::{Choice, ChoiceError, FilterPlace, choose};
use super::{exact, native, peers, two_choice};

/// Declares the registry: a constant for each kind.
macro_rules! kinds {
    ($( $(#[doc = $doc:literal])+ $NAME:ident = $kind:expr, )+) => {
        const ALL: &[(&str, Kind)] = &[$( (Kind::$NAME.name(), Kind::$NAME), )+];

        impl Kind {
            $( $(#[doc = $doc])+ pub const $NAME: Self = $kind; )+
        }
    };
}

// Messages and tables list the kinds in this order.
kinds! {
    /// urlseen's own kind: shards by leading byte, the bits of a key in few cache lines, a seed.
    NATIVE = native::kind::KIND,
    /// urlseen's own kind that grows and forgets: each key in one of two blocks.
    TWO_CHOICE = two_choice::kind::KIND,
    /// Exact set of key hashes, in memory. It takes 20 to 39 bytes for each key.
    EXACT = exact::KIND,
    /// The kind of RedisBloom, in memory. A full filter grows by another layer.
    REDISBLOOM = peers::redisbloom::kind::KIND,
    /// The kind of valkey-bloom, in memory. A full filter grows by another layer.
    VALKEY_BLOOM = peers::valkey_bloom::KIND,
    /// The kind of `BloomFilter_imooc`.
    IMOOC = peers::imooc::KIND,
    /// The kind of pyreBloom, which rounds the error rate to a C `float`.
    PYREBLOOM = peers::pyrebloom::PYREBLOOM,
    /// The kind of luw2007's `bloomfilter`: pyreBloom's, but the error rate is not rounded.
    LUW2007 = peers::pyrebloom::LUW2007,
    /// The kind of scrapy-redis-bloomfilter.
    SCRAPY_REDIS_BLOOMFILTER = peers::scrapy_redis_bloomfilter::KIND,
    /// The kind of scrapy-redis-bloomfilter-block-cluster. Its keys must begin with hex digits.
    BLOCK_CLUSTER = peers::block_cluster::KIND,
    /// The kind of Redisson's `RBloomFilter`, with the codec `StringCodec` or `ByteArrayCodec`.
    REDISSON = peers::redisson::KIND,
    /// The kind of redis-lua-scaling-bloom-filter in its plain variant. A full filter grows.
    REDIS_LUA_SCALING = peers::redis_lua_scaling::KIND,
    /// The set of scrapy-redis. It is exact, and takes 88 to 104 bytes for each key.
    SCRAPY_REDIS = peers::scrapy_redis::KIND,
}

impl Default for Kind {
    fn default() -> Self {
        Self::TWO_CHOICE
    }
}

impl Kind {
    /// Returns all kinds in the order of tables.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        ALL.iter().map(|&(_, kind)| kind)
    }

    /// Returns the kinds of filters that can live in this place.
    pub fn all_in(place: FilterPlace) -> impl Iterator<Item = Self> {
        Self::all().filter(move |kind| kind.is_in(place))
    }
}

impl Choice for Kind {
    const ALL: &'static [(&'static str, Self)] = ALL;
}

impl FromStr for Kind {
    type Err = ChoiceError;

    fn from_str(word: &str) -> Result<Self, ChoiceError> {
        choose(word)
    }
}
