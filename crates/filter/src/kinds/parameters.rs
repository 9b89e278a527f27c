//! A kind of filter with its parameters.

use std::str::FromStr;
use std::sync::Arc;

use urlseen_fingerprint::PartitionCount;

use super::kind::{CAPACITY, GROW_TO, IMPORTED, Kind, KindParameters, SEED};
use super::values::{EXPIRE_AFTER, Values};
use crate::SpecError;
use crate::expire_after::ExpireAfter;
use crate::memory::{self, Available, TooLarge};
use crate::native::kind::KIND as NATIVE;
use crate::{
    BuildError, FilterKind, KeyHasher, Outlook, OverFrozen, RedisKind, SHARD_RULE, Seed, outlook,
};

/// Name of a parameter of the kinds that have shards. It is left out in a crawl with one partition.
const PARTITIONS: &str = "partitions.count";

/// Parameters of a filter of any kind.
#[derive(Debug, Clone)]
pub struct Parameters(Arc<Given>);

#[derive(Debug, Clone)]
struct Given {
    kind: Kind,
    /// Seed of the hash. `None` if the kind has no seed, or until one is chosen.
    seed: Option<Seed>,
    /// Number of partitions of the crawl. The shards of a filter with the keys of one partition
    /// depend on it.
    partitions: PartitionCount,
    own: Arc<dyn KindParameters>,
    /// Parameters of the frozen filter below this one.
    frozen: Option<Parameters>,
}

impl Kind {
    /// Reads the parameters of a filter. `value` returns the text that the configuration has for a
    /// key.
    ///
    /// # Errors
    /// A parameter is missing or invalid, or no filter can have these parameters.
    pub fn read(
        self,
        value: &dyn Fn(&'static str) -> Option<String>,
    ) -> Result<Parameters, SpecError> {
        let values = Values(value);
        let seed = if self.has_seed() { values.open(SEED)?.map(Seed::new) } else { None };
        let own = (self.0.read)(&values)?;
        let has_shards = self.0.rules[1] == SHARD_RULE;
        let partitions = if has_shards { values.open(PARTITIONS)? } else { None };
        let below = |name| {
            let recorded = self.0.frozen.iter().find(|(_, below)| *below == name);
            value(recorded.map_or(name, |&(recorded, _)| recorded))
        };
        let has_frozen = !self.0.frozen.is_empty() && below(CAPACITY).is_some();
        let frozen = if has_frozen { Some(NATIVE.read(&below)?) } else { None };
        let partitions = partitions.unwrap_or_default();
        Ok(Parameters(Arc::new(Given { kind: self, seed, partitions, own, frozen })))
    }
}

impl Parameters {
    /// Makes the parameters of a filter of a crawl with one partition.
    pub(crate) fn new(kind: Kind, seed: Option<Seed>, own: impl KindParameters + 'static) -> Self {
        let partitions = PartitionCount::ONE;
        Self(Arc::new(Given { kind, seed, partitions, own: Arc::new(own), frozen: None }))
    }

    /// Returns the kind of the filter.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Returns the parameters under their names in the configuration, for [`Kind::read`]. A
    /// parameter without a value yet is left out.
    pub(crate) fn fields(&self) -> Vec<(&'static str, String)> {
        let seed = self.0.seed.map(|seed| (SEED, seed.0.to_string()));
        // The number of partitions is left out in a crawl with one partition.
        let partitions = Some(self.0.partitions).filter(|&it| it != PartitionCount::ONE);
        let partitions = partitions.map(|it| (PARTITIONS, it.to_string()));
        seed.into_iter().chain(self.0.own.fields()).chain(partitions).collect()
    }

    /// Returns the parameters that a storage folder records: the fields, and numbers derived from
    /// them. [`Kind::read`] can read these records, too.
    pub fn record(&self) -> Vec<(&'static str, String)> {
        let below = self.0.frozen.iter().flat_map(Self::record);
        let below = below.filter_map(|(own, value)| {
            let recorded = self.0.kind.0.frozen.iter().find(|(_, below)| *below == own);
            recorded.map(|&(recorded, _)| (recorded, value))
        });
        self.fields().into_iter().chain(self.0.own.derived()).chain(below).collect()
    }

    /// Returns the parameter of this name, if the kind has one.
    pub fn field<T: FromStr>(&self, name: &str) -> Option<T> {
        found(self.fields(), name)
    }

    /// Returns the recorded value of this name, if the kind has one.
    pub(crate) fn recorded<T: FromStr>(&self, name: &str) -> Option<T> {
        found(self.record(), name)
    }

    /// Returns true if an existing filter must have the same value of this parameter as the
    /// configuration.
    pub(crate) fn is_compared(&self, name: &str) -> bool {
        !self.0.kind.0.free.contains(&name)
    }

    /// Describes the shape of a filter in memory, for people.
    pub fn shape(&self) -> String {
        let over = if self.0.frozen.is_some() { ", over a frozen native filter" } else { "" };
        self.0.own.shape() + over
    }

    /// Returns true for an imported filter. The parameters of such a filter come from its data.
    pub fn is_imported(&self) -> bool {
        self.recorded(IMPORTED) == Some(true)
    }

    /// Returns the time after which a fingerprint passes again, if fingerprints expire.
    pub fn expire_after(&self) -> Option<ExpireAfter> {
        self.field(EXPIRE_AFTER)
    }

    /// Returns true if a full filter grows: it takes more memory and keeps its error rate.
    pub fn grows(&self) -> bool {
        self.0.kind.0.grows
    }

    /// Returns true if a client's addition is to be inserted when it is answered, before the log
    /// has it.
    pub fn inserts_at_once(&self) -> bool {
        self.0.kind.0.inserts_at_once
    }

    /// Returns true if the filter never reports an unseen fingerprint as seen.
    pub fn is_exact(&self) -> bool {
        self.0.kind.0.is_exact
    }

    /// Returns the names of two rules: the rule from keys to bit positions, and the rule from keys
    /// to shards. A name is empty if only one such rule is possible.
    pub fn rules(&self) -> [String; 2] {
        let [positions, shards] = self.0.kind.0.rules.map(str::to_owned);
        match &self.0.frozen {
            Some(frozen) => [format!("{positions} over {}", frozen.rules()[0]), shards],
            None => [positions, shards],
        }
    }

    /// Returns the number of shards of a filter in memory.
    pub fn shards(&self) -> usize {
        self.0.kind.0.shards
    }

    /// Checks that an empty filter fits into the memory that this process can still take.
    ///
    /// # Errors
    /// The filter does not fit.
    pub fn check_memory(&self) -> Result<(), TooLarge> {
        memory::check(self.capacity().unwrap_or(0), self.bytes(), memory::available())
    }

    /// Returns the number of bytes that a filter takes with as many fingerprints as it keeps its
    /// error rate for, and the memory available to this process, if that is less.
    pub fn outgrown(&self) -> Option<(u64, Available)> {
        let bytes = self.outlook(self.field(GROW_TO)?).ok()?.bytes[0];
        memory::available().filter(|available| available.bytes < bytes).map(|it| (bytes, it))
    }

    /// Returns the largest number of fingerprints with which a filter takes at most this number of
    /// bytes. A filter that grows takes as much in the worst case.
    pub fn keys_within(&self, bytes: u64) -> u64 {
        let fits = |keys| self.outlook(keys).is_ok_and(|it| it.bytes[1] <= bytes);
        let (mut keys, mut step) = (0, 1_u64 << 40);
        while step > 0 {
            keys += if fits(keys + step) { step } else { 0 };
            step /= 2;
        }
        keys
    }

    /// Returns the maximum memory of an empty filter in bytes; 0 if it is unknown.
    pub fn bytes(&self) -> u64 {
        self.outlook(0).map_or(0, |outlook| outlook.bytes[1])
    }

    /// Returns the number of fingerprints that the filter is made for. `None` if the parameters
    /// contain no capacity.
    pub fn capacity(&self) -> Option<u64> {
        self.field(CAPACITY)
    }

    /// Divides a number of keys into those of the frozen filter, which counts as full, and the
    /// others.
    fn split(&self, keys: u64) -> (u64, u64) {
        let below = self.0.frozen.as_ref().and_then(Self::capacity).unwrap_or(0);
        (keys.min(below), keys.saturating_sub(below))
    }

    /// Computes memory and error rate of a filter with these parameters and this number of keys.
    ///
    /// # Errors
    /// No filter can have these parameters.
    pub fn outlook(&self, keys: u64) -> Result<Outlook, SpecError> {
        let (below, own) = self.split(keys);
        let mut outlook = self.0.own.outlook(own)?;
        if let Some(frozen) = &self.0.frozen {
            let frozen = frozen.outlook(below)?;
            outlook.bytes.iter_mut().zip(frozen.bytes).for_each(|(all, frozen)| *all += frozen);
            outlook.error_rate += frozen.error_rate;
        }
        Ok(outlook)
    }

    /// Computes the expected number of URLs that a crawl loses until its filter has these keys.
    ///
    /// # Errors
    /// No filter can have these parameters, or the filter is imported.
    pub fn lost_urls(&self, keys: u64) -> Result<f64, SpecError> {
        let (below, own) = self.split(keys);
        let before = self.0.frozen.as_ref().map_or(Ok(0.0), |frozen| frozen.lost_urls(below))?;
        let rate = |own| Ok::<_, SpecError>(self.outlook(below + own)?.error_rate);
        Ok(before + outlook::integral(own, rate)?)
    }

    /// Returns the seed of the hash, if the kind has a seed and it is set.
    pub fn seed(&self) -> Option<Seed> {
        self.0.seed
    }

    /// Returns the seed, or 0 if it is not set.
    pub(crate) fn seed_or_0(&self) -> Seed {
        self.0.seed.unwrap_or(Seed::new(0))
    }

    /// Returns the hasher that computes key hashes from fingerprints, for a filter in memory. A
    /// seed that is not set yet counts as 0.
    pub fn hasher(&self) -> KeyHasher {
        self.0.own.hasher(self.seed_or_0())
    }

    /// Builds an empty filter in memory. A seed that is not set yet counts as 0.
    ///
    /// # Errors
    /// The process has too little memory, or the kind exists only in Redis.
    pub fn build(&self) -> Result<Box<dyn FilterKind>, BuildError> {
        let own = self.0.own.build(self.seed_or_0()).ok_or(BuildError::InRedis(self.0.kind))??;
        Ok(match &self.0.frozen {
            Some(frozen) => Box::new(OverFrozen::new(own, frozen.build()?)),
            None => own,
        })
    }

    /// Returns the filter in Redis. A seed that is not set yet counts as 0.
    ///
    /// # Errors
    /// The kind does not exist in Redis, or no filter can have this size.
    pub fn in_redis(&self) -> Result<Arc<dyn RedisKind>, SpecError> {
        let filter = self.0.own.in_redis(self.seed_or_0());
        filter.ok_or_else(|| {
            let (kind, place) = (self.0.kind, "filter.place = \"local\"");
            SpecError(format!("the filter kind {kind} exists only in memory, with {place}"))
        })?
    }

    /// Returns the parameters with a seed. If no seed is set, `draw` draws one.
    #[must_use]
    pub fn seeded(&self, draw: impl FnOnce() -> Seed) -> Self {
        match self.0.seed {
            Some(_) => self.clone(),
            // A kind without a seed stays as it is.
            None => self.reseeded(draw()),
        }
    }

    /// Returns the parameters with another seed. A kind without a seed stays as it is.
    #[must_use]
    pub fn reseeded(&self, seed: Seed) -> Self {
        if !self.0.kind.has_seed() {
            return self.clone();
        }
        let frozen = self.0.frozen.as_ref().map(|frozen| frozen.reseeded(seed));
        self.with(|parts| (parts.seed, parts.frozen) = (Some(seed), frozen))
    }

    /// Returns these parameters for a filter over a frozen one, whose seed it gets. `None` if a
    /// filter of this kind cannot be over such a filter.
    pub fn over(&self, frozen: &Self) -> Option<Self> {
        // The keys of a frozen filter have no generations.
        let fits = !self.0.kind.0.frozen.is_empty()
            && frozen.0.kind == NATIVE
            && self.expire_after().is_none();
        let set =
            |parts: &mut Given| (parts.seed, parts.frozen) = (frozen.0.seed, Some(frozen.clone()));
        fits.then(|| self.with(set))
    }

    /// Returns the parameters for an existing filter: with its seed, and with its frozen filter if
    /// it has one.
    #[must_use]
    pub fn continuing(&self, existing: &Self) -> Self {
        let over = existing.0.frozen.as_ref().and_then(|frozen| self.over(frozen));
        let parameters = over.unwrap_or_else(|| self.clone());
        match existing.0.seed {
            Some(seed) => parameters.reseeded(seed),
            None => parameters,
        }
    }

    /// Returns these parameters with others of the kind in their place.
    pub(crate) fn with_own(&self, own: impl KindParameters + 'static) -> Self {
        self.with(|parts| parts.own = Arc::new(own))
    }

    fn with(&self, change: impl FnOnce(&mut Given)) -> Self {
        let mut parts = Given::clone(&self.0);
        change(&mut parts);
        Self(Arc::new(parts))
    }
}

/// Returns the value of this name, if it can be read.
fn found<T: FromStr>(values: Vec<(&'static str, String)>, name: &str) -> Option<T> {
    values.into_iter().find(|&(it, _)| it == name)?.1.parse().ok()
}

impl PartialEq for Parameters {
    fn eq(&self, other: &Self) -> bool {
        let parts = |it: &Self| (it.0.kind, it.fields(), it.division());
        parts(self) == parts(other)
    }
}
