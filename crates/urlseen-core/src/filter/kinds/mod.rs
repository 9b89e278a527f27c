//! The registry of kinds of filters: one file a kind, and one line in `ALL`.
//!
//! A kind is looked up by its word in the configuration ([`Kind`]). It reads what is chosen for a
//! filter from names of the configuration ([`Parameters`]), and from there on the filter is asked
//! through [`KindParameters`] alone.

mod block_cluster;
mod exact;
mod imooc;
mod native;
mod parameters;
mod pyrebloom;
mod redis_lua_scaling;
mod redisbloom;
mod redisson;
mod scrapy_redis;
mod scrapy_redis_bloomfilter;
mod sized;
#[cfg(test)]
mod tests;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use super::choice::{Choice, ChoiceError, FilterPlace, choose};
use super::spec::SpecError;
use super::{
    BuildError, Capacity, ErrorRate, FilterKind, KeyHasher, Outlook, RedisKind, SHARDS, Seed,
};
pub use block_cluster::BlockCluster;
pub use imooc::Imooc;
#[cfg(test)]
pub(super) use native::InBlocks;
pub use native::NATIVE;
pub use parameters::Parameters;
pub use pyrebloom::PyreBloom;
pub use redis_lua_scaling::Scaling;
pub use redisbloom::REDISBLOOM;
pub use redisson::Redisson;
#[cfg(test)]
pub(super) use scrapy_redis::Set;
pub use scrapy_redis_bloomfilter::ScrapyRedisBloomFilter;

/// Declares the registry: a constant for each kind.
macro_rules! kinds {
    ($( $(#[doc = $doc:literal])+ $NAME:ident = $kind:expr, )+) => {
        const ALL: &[(&str, Kind)] = &[$( (Kind::$NAME.name(), Kind::$NAME), )+];

        impl Kind {
            $( $(#[doc = $doc])+ pub const $NAME: Self = $kind; )+
        }
    };
}

// In the order of messages and tables.
kinds! {
    /// urlseen's own: shards by leading byte, bits of a key in few cache lines, a seed.
    NATIVE = native::NATIVE,
    /// A set of key hashes, in memory: exact, and 18 to 37 bytes a key.
    EXACT = exact::KIND,
    /// RedisBloom's, in memory: layers that grow.
    REDISBLOOM = redisbloom::REDISBLOOM,
    /// The kind of `BloomFilter_imooc`.
    IMOOC = imooc::KIND,
    /// The kind of pyreBloom, which rounds the error rate to a C `float`.
    PYREBLOOM = pyrebloom::PYREBLOOM,
    /// The kind of luw2007's `bloomfilter` as it is today: pyreBloom's without the rounding.
    LUW2007 = pyrebloom::LUW2007,
    /// The kind of scrapy-redis-bloomfilter.
    SCRAPY_REDIS_BLOOMFILTER = scrapy_redis_bloomfilter::KIND,
    /// The kind of scrapy-redis-bloomfilter-block-cluster. It has no place for text that does not
    /// begin with hex digits.
    BLOCK_CLUSTER = block_cluster::KIND,
    /// The kind of Redisson's `RBloomFilter`, with the codec `StringCodec` or `ByteArrayCodec`.
    REDISSON = redisson::KIND,
    /// The kind of redis-lua-scaling-bloom-filter, which grows, in its plain variant.
    REDIS_LUA_SCALING = redis_lua_scaling::KIND,
    /// The set of scrapy-redis: exact, and 60 to 100 bytes a key.
    SCRAPY_REDIS = scrapy_redis::KIND,
}

/// Kind of a filter: urlseen's own, or that of another project, with the same bits as there.
///
/// A kind is one of the constants, or the parsed word of `filter.kind`. Kinds of other projects
/// hash text: the hex digits of a fingerprint, and any other key as it is. Some of them have no
/// place for text that is empty or not UTF-8.
#[derive(Clone, Copy)]
pub struct Kind(&'static Registered);

/// Entry of the registry.
struct Registered {
    /// The word of `filter.kind`.
    name: &'static str,
    /// A shorter word for tables, the same where that is short enough.
    short: &'static str,
    /// Description of the kind, in a line.
    summary: &'static str,
    /// The keys of the section `filter` that its parameters are read from.
    keys: &'static [&'static str],
    /// Settings of the kind's project that differ from the defaults of the configuration.
    usual: &'static [(&'static str, &'static str)],
    /// Places that such a filter can live in.
    places: &'static [FilterPlace],
    /// Reads the values that are configured for a filter.
    read: fn(&Values<'_>) -> Result<Parameters, SpecError>,
}

impl Kind {
    /// Returns all kinds in the order of tables.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        ALL.iter().map(|&(_, kind)| kind)
    }

    /// The kinds of filters that can live there.
    pub fn all_in(place: FilterPlace) -> impl Iterator<Item = Self> {
        Self::all().filter(move |kind| kind.is_in(place))
    }

    /// The word for it in the configuration.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// The word for it in tables, where that is not too long for them.
    pub fn short(self) -> &'static str {
        self.0.short
    }

    /// Returns a description of the kind, in a line.
    pub fn summary(self) -> &'static str {
        self.0.summary
    }

    /// The keys of the configuration that say what such a filter is made for.
    pub fn keys(self) -> &'static [&'static str] {
        self.0.keys
    }

    /// Setting of the kind's project under a name of the configuration, if it differs from the
    /// default there.
    pub fn usual(self, name: &str) -> Option<&'static str> {
        self.0.usual.iter().find(|(known, _)| *known == name).map(|&(_, value)| value)
    }

    /// Returns true if such a filter can live there.
    pub fn is_in(self, place: FilterPlace) -> bool {
        self.0.places.contains(&place)
    }

    /// Reads what is chosen for a filter from names of the configuration.
    ///
    /// # Errors
    /// A part is missing or no such filter exists.
    pub fn read(
        self,
        value: &dyn Fn(&'static str) -> Option<String>,
    ) -> Result<Parameters, SpecError> {
        (self.0.read)(&Values(value))
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

/// Values under names of the configuration.
struct Values<'a>(&'a dyn Fn(&'static str) -> Option<String>);

impl Values<'_> {
    /// Reads a part that must be there.
    fn part<T: FromStr>(&self, name: &'static str) -> Result<T, SpecError> {
        super::spec::part(&self.0, name)
    }

    /// Reads a part that may be open.
    fn open<T: FromStr>(&self, name: &'static str) -> Result<Option<T>, SpecError> {
        (self.0)(name).map(|_| self.part(name)).transpose()
    }

    /// Reads a capacity and an error rate that urlseen's own limits hold for.
    fn size(&self) -> Result<(Capacity, ErrorRate), SpecError> {
        let (capacity, error_rate) = (self.part(CAPACITY)?, self.part(ERROR_RATE)?);
        Ok((Capacity::new(capacity)?, ErrorRate::new(error_rate)?))
    }
}

/// Names of parts that several kinds have.
pub(super) const CAPACITY: &str = "filter.capacity";
pub(super) const ERROR_RATE: &str = "filter.error_rate";
const SEED: &str = "filter.seed";
const BIT: &str = "filter.bit";
const HASH_NUMBER: &str = "filter.hash_number";

fn capacity_field(capacity: u64) -> (&'static str, String) {
    (CAPACITY, capacity.to_string())
}

fn error_rate_field(rate: f64) -> (&'static str, String) {
    (ERROR_RATE, format!("{rate:e}"))
}

/// Parameters of a filter: everything that is chosen for it.
pub trait KindParameters: fmt::Debug + Send + Sync {
    /// Returns the kind of the filter.
    fn kind(&self) -> Kind;

    /// Returns the parts by the names of the configuration, as [`Kind::read`] reads them. An open
    /// part is left out.
    fn fields(&self) -> Vec<(&'static str, String)>;

    /// Returns what a storage folder records: the fields, and what this program derived from them.
    /// [`Kind::read`] reads it too.
    fn record(&self) -> Vec<(&'static str, String)> {
        self.fields()
    }

    /// Returns true if a filter past its capacity takes more memory and stays as right as before.
    fn grows(&self) -> bool {
        false
    }

    /// Returns true if the filter takes no unseen fingerprint for seen.
    fn is_exact(&self) -> bool {
        false
    }

    /// Describes the shape of a filter in memory, for people.
    fn shape(&self) -> String {
        String::new()
    }

    /// Returns numbers that describe the shape of a filter in memory, by their names.
    fn figures(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Returns true if a filter was imported that says itself what it was made for.
    fn is_imported(&self) -> bool {
        false
    }

    /// The seed of the hash, where there is one.
    fn seed(&self) -> Option<Seed> {
        None
    }

    /// The same with that seed; `None` where the kind has none.
    fn with_seed(&self, _seed: Seed) -> Option<Parameters> {
        None
    }

    /// The rules by which keys become bit positions and fall on shards; empty where there is none
    /// that could ever be another one.
    fn rules(&self) -> [&'static str; 2] {
        ["", ""]
    }

    /// Division of the bits in words, if it follows from more than the configuration.
    fn division(&self) -> Option<String> {
        None
    }

    /// Memory and error rate of such a filter with this number of keys.
    ///
    /// # Errors
    /// No such filter exists.
    fn outlook(&self, keys: u64) -> Result<Outlook, SpecError> {
        Ok(self.in_redis()?.outlook(keys))
    }

    /// Name of the variant of the kind, if it has several. They divide the bits differently.
    fn variant(&self) -> Option<String> {
        None
    }

    /// Filters for the same keys of all variants. Empty if the kind has only one.
    fn variants(&self) -> Vec<Parameters> {
        Vec::new()
    }

    /// Number of shards of a filter in memory.
    fn shards(&self) -> usize {
        SHARDS
    }

    /// Makes of fingerprints what a filter in memory knows them by; with a seed of 0 if it is open.
    fn hasher(&self) -> KeyHasher {
        KeyHasher::of_seed(self.seed().unwrap_or(Seed::new(0)))
    }

    /// Checks that a filter in memory fits into what this process can still have.
    ///
    /// # Errors
    /// It does not.
    fn check_memory(&self) -> Result<(), BuildError> {
        Ok(())
    }

    /// Builds an empty filter in memory, or those shards of it that are `owner`'s, one of `owners`;
    /// with a seed of 0 if it is open.
    ///
    /// # Errors
    /// There is no memory for it, or it is of a kind that is never in memory.
    fn build(&self, _owner: usize, _owners: usize) -> Result<Box<dyn FilterKind>, BuildError> {
        Err(BuildError::InRedis(self.kind()))
    }

    /// The filter in Redis, with a seed of 0 if it is open.
    ///
    /// # Errors
    /// The kind is none that Redis holds, or cannot be that large.
    fn in_redis(&self) -> Result<Arc<dyn RedisKind>, SpecError> {
        Err(SpecError::NotInRedis(self.kind()))
    }
}
