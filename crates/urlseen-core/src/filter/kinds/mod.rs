//! Registry of the kinds of filters: one file for each kind, and one line in `ALL`.
//!
//! A word in the configuration names a [`Kind`]. [`Kind::read`] reads the parameters of a filter
//! from the configuration's values. All other code learns the filter's properties from these
//! [`Parameters`].

mod block_cluster;
mod exact;
mod imooc;
mod in_redis;
mod native;
mod parameters;
mod pyrebloom;
mod redis_lua_scaling;
mod redisbloom;
mod redisson;
mod scrapy_redis;
mod scrapy_redis_bloomfilter;
#[cfg(test)]
mod tests;
mod two_choice;
mod values;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use super::choice::{Choice, ChoiceError, FilterPlace, choose};
use super::expire_after::ExpireAfter;
use super::spec::SpecError;
use super::{BuildError, FilterKind, KeyHasher, Outlook, RedisKind, SHARDS, Seed, lost};
use crate::fingerprint::PartitionCount;
pub use block_cluster::BlockCluster;
pub use imooc::Imooc;
pub use native::NATIVE;
pub use parameters::Parameters;
pub use pyrebloom::PyreBloom;
pub use redis_lua_scaling::Scaling;
pub use redisbloom::REDISBLOOM;
pub use redisson::Redisson;
#[cfg(test)]
pub(super) use scrapy_redis::Set;
pub use scrapy_redis_bloomfilter::ScrapyRedisBloomFilter;
use values::{EXPIRE_AFTER, Values, expire_after_field};

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
    NATIVE = native::NATIVE,
    /// urlseen's own kind that grows and forgets: each key in one of two blocks.
    TWO_CHOICE = two_choice::KIND,
    /// Exact set of key hashes, in memory. It takes 20 to 39 bytes for each key.
    EXACT = exact::KIND,
    /// The kind of RedisBloom, in memory. A full filter grows by another layer.
    REDISBLOOM = redisbloom::REDISBLOOM,
    /// The kind of `BloomFilter_imooc`.
    IMOOC = imooc::KIND,
    /// The kind of pyreBloom, which rounds the error rate to a C `float`.
    PYREBLOOM = pyrebloom::PYREBLOOM,
    /// The kind of luw2007's `bloomfilter`: pyreBloom's, but the error rate is not rounded.
    LUW2007 = pyrebloom::LUW2007,
    /// The kind of scrapy-redis-bloomfilter.
    SCRAPY_REDIS_BLOOMFILTER = scrapy_redis_bloomfilter::KIND,
    /// The kind of scrapy-redis-bloomfilter-block-cluster. Its keys must begin with hex digits.
    BLOCK_CLUSTER = block_cluster::KIND,
    /// The kind of Redisson's `RBloomFilter`, with the codec `StringCodec` or `ByteArrayCodec`.
    REDISSON = redisson::KIND,
    /// The kind of redis-lua-scaling-bloom-filter in its plain variant. A full filter grows.
    REDIS_LUA_SCALING = redis_lua_scaling::KIND,
    /// The set of scrapy-redis. It is exact, and takes 88 to 104 bytes for each key.
    SCRAPY_REDIS = scrapy_redis::KIND,
}

/// Kind of a filter: urlseen's own kind, or a kind that sets the same bits as another project.
///
/// A kind is one of the constants, or the parsed word of `filter.kind`. The kinds of other projects
/// hash the hex digits of a fingerprint. They hash any other key unchanged. Some of these kinds
/// refuse a key that is empty or not UTF-8.
#[derive(Clone, Copy)]
pub struct Kind(&'static Registered);

impl Default for Kind {
    fn default() -> Self {
        Self::TWO_CHOICE
    }
}

/// Entry of the registry.
struct Registered {
    /// The word of `filter.kind`.
    name: &'static str,
    /// A shorter word for tables; empty if the name is short enough.
    short: &'static str,
    /// Keys of the section `filter` from which the parameters of a filter are read.
    keys: &'static [&'static str],
    /// Default settings of the kind's project, if they differ from those of the configuration.
    usual: &'static [(&'static str, &'static str)],
    /// Places that a filter of this kind can live in.
    places: &'static [FilterPlace],
    /// True if a full filter takes more memory and keeps its error rate.
    grows: bool,
    /// True if a client's addition is to be inserted when it is answered, before the log has it.
    /// The answer for a key then follows from the bits of all earlier additions.
    inserts_at_once: bool,
    /// True if a filter never reports an unseen fingerprint as seen.
    is_exact: bool,
    /// Names of two rules: the rule from keys to bit positions, and the rule from keys to shards. A
    /// name is empty if only one such rule is possible.
    rules: [&'static str; 2],
    /// Number of shards of a filter in memory.
    shards: usize,
    /// Reads the values that are configured for a filter.
    read: fn(&Values<'_>) -> Result<Parameters, SpecError>,
}

/// Default values for the entry of a kind that exists only in Redis. Its filters have a capacity
/// and an error rate.
const IN_REDIS: Registered = Registered {
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
    read: |values| Err(SpecError::NotInRedis(values.kind)),
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

    /// Returns the default that the kind's project has for a configuration key, if urlseen's own
    /// default differs.
    pub fn usual(self, name: &str) -> Option<&'static str> {
        self.0.usual.iter().find(|(known, _)| *known == name).map(|&(_, value)| value)
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
        (self.0.read)(&Values { kind: self, value })
    }
}

impl Choice for Kind {
    const ALL: &'static [(&'static str, Self)] = ALL;
    const LATER: &'static [&'static str] = &[];
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

impl Hash for Kind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

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
const GROW_TO: &str = "filter.grow_to";
const SEED: &str = "filter.seed";
const BIT: &str = "filter.bit";
const HASH_NUMBER: &str = "filter.hash_number";

/// Name of a parameter of the kinds that have shards. It is left out in a crawl with one partition.
const PARTITIONS: &str = "partitions.count";

fn size_fields(capacity: u64, error_rate: f64) -> [(&'static str, String); 2] {
    [(CAPACITY, capacity.to_string()), (ERROR_RATE, format!("{error_rate:e}"))]
}

fn seed_field(seed: Option<Seed>) -> Option<(&'static str, String)> {
    seed.map(|seed| (SEED, seed.get().to_string()))
}

fn partitions_field(partitions: PartitionCount) -> Option<(&'static str, String)> {
    (partitions != PartitionCount::ONE).then(|| (PARTITIONS, partitions.to_string()))
}

/// Parameters of a filter of one kind.
pub trait KindParameters: fmt::Debug + Send + Sync {
    /// Returns the kind of the filter.
    fn kind(&self) -> Kind;

    /// Returns the parameters under their names in the configuration, for [`Kind::read`]. A
    /// parameter without a value yet is left out.
    fn fields(&self) -> Vec<(&'static str, String)>;

    /// Returns the parameters that a storage folder records: the fields, and numbers derived from
    /// them. [`Kind::read`] can read these records, too.
    fn record(&self) -> Vec<(&'static str, String)> {
        self.fields()
    }

    /// Returns true if an existing filter must have the same value of this parameter as the
    /// configuration.
    fn is_compared(&self, _name: &str) -> bool {
        true
    }

    /// Describes the shape of a filter in memory, for people.
    fn shape(&self) -> String {
        String::new()
    }

    /// Returns named numbers that describe the shape of a filter in memory.
    fn figures(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Returns true for an imported filter. The parameters of such a filter come from its data.
    fn is_imported(&self) -> bool {
        false
    }

    /// Returns the parameters of the frozen filter below this one, if there is one.
    fn frozen(&self) -> Option<&Parameters> {
        None
    }

    /// Returns these parameters for a filter over a frozen one, whose seed it gets. `None` if a
    /// filter of this kind cannot be over such a filter.
    fn over(&self, _frozen: &Parameters) -> Option<Parameters> {
        None
    }

    /// Returns the time after which a fingerprint passes again, if fingerprints expire.
    fn expire_after(&self) -> Option<ExpireAfter> {
        None
    }

    /// Returns the seed of the hash, if the kind has a seed and it is set.
    fn seed(&self) -> Option<Seed> {
        None
    }

    /// Returns these parameters with another seed; `None` if the kind has no seed.
    fn with_seed(&self, _seed: Seed) -> Option<Parameters> {
        None
    }

    /// Returns the number of partitions of the crawl. The shards of a filter with the keys of one
    /// partition depend on it. A kind without shards returns [`PartitionCount::ONE`].
    fn partitions(&self) -> PartitionCount {
        PartitionCount::ONE
    }

    /// Describes the division of the bits into blocks, if the configuration alone does not
    /// determine this division.
    fn division(&self) -> Option<String> {
        None
    }

    /// Computes memory and error rate of a filter with these parameters and this number of keys.
    ///
    /// # Errors
    /// No filter can have these parameters.
    fn outlook(&self, keys: u64) -> Result<Outlook, SpecError> {
        Ok(self.in_redis()?.outlook(keys))
    }

    /// Computes the expected number of URLs that a crawl loses until its filter has these keys.
    ///
    /// # Errors
    /// No filter can have these parameters, or the filter is imported.
    fn lost_urls(&self, keys: u64) -> Result<f64, SpecError> {
        lost::integral(keys, |keys| Ok(self.outlook(keys)?.error_rate))
    }

    /// Returns the name of the kind's variant. Each variant divides the bits into blocks in its own
    /// way. `None` if the kind has only one variant.
    fn variant(&self) -> Option<String> {
        None
    }

    /// Returns the parameters of all variants with the same capacity and error rate. Empty if the
    /// kind has only one variant.
    fn variants(&self) -> Vec<Parameters> {
        Vec::new()
    }

    /// Returns the hasher that computes key hashes from fingerprints, for a filter in memory. A
    /// seed that is not set yet counts as 0.
    fn hasher(&self) -> KeyHasher {
        KeyHasher::new(self.seed().unwrap_or(Seed::new(0)))
    }

    /// Builds an empty filter in memory. A seed that is not set yet counts as 0.
    ///
    /// # Errors
    /// The process has too little memory, or the kind exists only in Redis.
    fn build(&self) -> Result<Box<dyn FilterKind>, BuildError> {
        Err(BuildError::InRedis(self.kind()))
    }

    /// Returns the filter in Redis. A seed that is not set yet counts as 0.
    ///
    /// # Errors
    /// The kind does not exist in Redis, or no filter can have this size.
    fn in_redis(&self) -> Result<Arc<dyn RedisKind>, SpecError> {
        Err(SpecError::NotInRedis(self.kind()))
    }
}
