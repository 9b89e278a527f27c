//! Registry of the kinds of filters: one line for each kind.
//!
//! A word in the configuration names a [`Kind`]. [`Kind::read`] reads the parameters of a filter
//! from the configuration's values. All other code learns the filter's properties from these
//! [`Parameters`].

mod parameters;
mod values;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

pub(crate) use parameters::KindParameters;
pub use parameters::Parameters;
pub(super) use values::Values;
pub(crate) use values::{EXPIRE_AFTER, expire_after_field};

use super::choice::{Choice, ChoiceError, FilterPlace, choose};
pub use super::native::kind::NATIVE;
pub use super::peers::redisbloom::kind::REDISBLOOM;
use super::spec::SpecError;
use super::{SHARDS, exact, native, peers, two_choice};

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
    NATIVE = native::kind::NATIVE,
    /// urlseen's own kind that grows and forgets: each key in one of two blocks.
    TWO_CHOICE = two_choice::kind::KIND,
    /// Exact set of key hashes, in memory. It takes 20 to 39 bytes for each key.
    EXACT = exact::KIND,
    /// The kind of RedisBloom, in memory. A full filter grows by another layer.
    REDISBLOOM = peers::redisbloom::kind::REDISBLOOM,
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

/// Kind of a filter: urlseen's own kind, or a kind that sets the same bits as another project.
///
/// A kind is one of the constants, or the parsed word of `filter.kind`. The kinds of other projects
/// hash the hex digits of a fingerprint. They hash any other key unchanged. Some of these kinds
/// refuse a key that is empty or not UTF-8.
#[derive(Clone, Copy)]
pub struct Kind(pub(crate) &'static Registered);

impl Default for Kind {
    fn default() -> Self {
        Self::TWO_CHOICE
    }
}

/// Entry of the registry.
pub(crate) struct Registered {
    /// The word of `filter.kind`.
    pub(crate) name: &'static str,
    /// A shorter word for tables; empty if the name is short enough.
    pub(crate) short: &'static str,
    /// Keys of the section `filter` from which the parameters of a filter are read.
    pub(crate) keys: &'static [&'static str],
    /// Default settings of the kind's project, besides capacity and error rate.
    pub(crate) usual: &'static [(&'static str, &'static str)],
    /// Places that a filter of this kind can live in.
    pub(crate) places: &'static [FilterPlace],
    /// True if a full filter takes more memory and keeps its error rate.
    pub(crate) grows: bool,
    /// True if a client's addition is to be inserted when it is answered, before the log has it.
    /// The answer for a key then follows from the bits of all earlier additions.
    pub(crate) inserts_at_once: bool,
    /// True if a filter never reports an unseen fingerprint as seen.
    pub(crate) is_exact: bool,
    /// Names of two rules: the rule from keys to bit positions, and the rule from keys to shards. A
    /// name is empty if only one such rule is possible.
    pub(crate) rules: [&'static str; 2],
    /// Number of shards of a filter in memory.
    pub(crate) shards: usize,
    /// Keys whose values in the configuration may differ from those of an existing filter.
    pub(crate) free: &'static [&'static str],
    /// Names under which a folder records the values of a frozen native filter below, with their
    /// own names. Empty if the kind cannot be over such a filter.
    pub(crate) frozen: &'static [(&'static str, &'static str)],
    /// Reads the values that are configured for a filter.
    pub(crate) read: fn(&Values<'_>) -> Result<Arc<dyn KindParameters>, SpecError>,
}

/// Default values for the entry of a kind that exists only in Redis. Its filters have a capacity
/// and an error rate.
pub(crate) const IN_REDIS: Registered = Registered {
    name: "",
    short: "",
    keys: &[CAPACITY, ERROR_RATE],
    usual: &[],
    places: &[FilterPlace::Redis],
    grows: false,
    inserts_at_once: false,
    is_exact: false,
    rules: ["", ""],
    shards: SHARDS,
    free: &[],
    frozen: &[],
    read: |_| Err(SpecError::NotInRedis(NATIVE)),
};

impl Kind {
    /// Returns all kinds in the order of tables.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        ALL.iter().map(|&(_, kind)| kind)
    }

    /// Returns the kinds of filters that can live in this place.
    pub fn all_in(place: FilterPlace) -> impl Iterator<Item = Self> {
        Self::all().filter(move |kind| kind.is_in(place))
    }

    /// Returns the word of the kind in the configuration.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns the word of the kind in tables, which have little room.
    pub fn short(self) -> &'static str {
        if self.0.short.is_empty() { self.0.name } else { self.0.short }
    }

    /// Returns the keys of the configuration that set the parameters of a filter of this kind.
    pub fn keys(self) -> &'static [&'static str] {
        self.0.keys
    }

    /// Returns the default that the kind's project has for a configuration key, unless the key is
    /// about capacity or error rate. urlseen's own default may differ.
    pub fn usual(self, name: &str) -> Option<&'static str> {
        self.0.usual.iter().find(|(known, _)| *known == name).map(|&(_, value)| value)
    }

    /// Returns true if the hash of the kind has a seed.
    pub fn has_seed(self) -> bool {
        self.0.keys.contains(&SEED)
    }

    /// Returns true if a filter of this kind can live in this place.
    pub fn is_in(self, place: FilterPlace) -> bool {
        self.0.places.contains(&place)
    }

    /// Reads the parameters of a filter. `value` returns the text that the configuration has for a
    /// key.
    ///
    /// # Errors
    /// A parameter is missing or invalid, or no filter can have these parameters.
    pub fn read(
        self,
        value: &dyn Fn(&'static str) -> Option<String>,
    ) -> Result<Parameters, SpecError> {
        Parameters::read(self, value)
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

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Kind {}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kind({})", self.name())
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Names of parameters that several kinds have.
pub(super) const CAPACITY: &str = "filter.capacity";
pub(super) const ERROR_RATE: &str = "filter.error_rate";
/// Number of fingerprints up to which the error rate holds.
pub(crate) const GROW_TO: &str = "filter.grow_to";
pub(crate) const SEED: &str = "filter.seed";
pub(crate) const BIT: &str = "filter.bit";
pub(crate) const HASH_NUMBER: &str = "filter.hash_number";

/// Name of a parameter of the kinds that have shards. It is left out in a crawl with one partition.
const PARTITIONS: &str = "partitions.count";

pub(crate) fn size_fields(capacity: u64, error_rate: f64) -> [(&'static str, String); 2] {
    [(CAPACITY, capacity.to_string()), (ERROR_RATE, format!("{error_rate:e}"))]
}
