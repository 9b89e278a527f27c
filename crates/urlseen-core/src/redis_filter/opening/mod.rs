//! Opening of a filter in Redis. It agrees on the parameters with all users of the filter,
//! validates the keys, and checks that the server has memory for the full size.

mod ask;
mod error;
mod moving;
mod sample;
mod sets;
mod strings;
mod uniting;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::filter::id::RandomId;
use crate::filter::kinds::NATIVE;
use crate::filter::{FilterSpec, KeyHasher, RedisFilterKeys, Seed};
use crate::redis::link::Link;
use crate::redis::preflight::{CommandNeed, KeyKind, KeyOwner, Needs};
use crate::redis_filter::definition::{self, DEFINE, Definition, Found};
pub use ask::verdicts;
pub(crate) use error::KeyError;
pub use error::RedisOpenError;
pub use moving::{get, put};
pub use sample::{Sample, Samples, estimate};
pub use sets::{Members, common};
use strings::Strings;
pub use uniting::{Defined, Uniting, page};

/// Configured filter in Redis.
#[derive(Debug, Clone)]
pub struct Wanted {
    key: String,
    spec: FilterSpec,
}

/// A filter in Redis that is ready for use.
#[derive(Debug, Clone)]
pub struct Opened {
    /// Random id of the filter.
    pub id: RandomId,
    /// Redis keys of the filter.
    pub filter: Arc<RedisFilterKeys>,
    /// Seed of the hash by which this process names fingerprints: that of the filter, or a random
    /// one for a kind without a seed.
    pub seed: Seed,
    /// Bytes that its keys may still grow by.
    pub growth: u64,
}

impl Opened {
    /// Returns the hasher by which this process names fingerprints.
    pub fn hasher(&self) -> KeyHasher {
        KeyHasher::of_seed(self.seed)
    }

    /// Returns the most bytes that its strings can have; 0 for a set.
    pub fn bytes(&self) -> u64 {
        self.filter.used().iter().filter_map(|&it| self.filter.content(it).max_bytes()).sum()
    }
}

impl Wanted {
    /// Configures the filter whose keys are named after `key`.
    ///
    /// # Errors
    /// The kind cannot be that large, or Redis cannot hold it.
    pub fn new(key: impl Into<String>, spec: FilterSpec) -> Result<Self, RedisOpenError> {
        let wanted = Self { key: key.into(), spec };
        // Refuses a size that the kind cannot have before Redis is asked.
        wanted.filter(Seed::new(0))?;
        Ok(wanted)
    }

    /// Returns the filter's keys, which place fingerprints. Only the kind `native` has a seed.
    ///
    /// # Errors
    /// The kind cannot be that large or small, or Redis cannot hold it.
    pub fn filter(&self, seed: Seed) -> Result<RedisFilterKeys, RedisOpenError> {
        Ok(RedisFilterKeys::new(&self.key, self.seeded(seed).parameters.in_redis()?))
    }

    /// Returns the spec with that seed, if its kind has one.
    fn seeded(&self, seed: Seed) -> FilterSpec {
        FilterSpec { parameters: self.spec.parameters.reseeded(seed), ..self.spec }
    }

    /// Collects the server's needs for opening the filter.
    pub fn needs(&self) -> Needs {
        let (mut needs, definition) = (Needs::new(), self.definition_key());
        needs.key(KeyOwner::Own("filter's definition"), definition.as_str(), KeyKind::Hash);
        let [_, earlier] = definition::keys(&self.key);
        needs.command(CommandNeed::new("EXISTS").key(earlier));
        let command = |words| CommandNeed::new(words).key(definition.as_str());
        needs.command(command("EXISTS"));
        needs.command(command("HGETALL"));
        needs.command(command("HSET").arg("a").arg("b"));
        let first = self.key.as_str();
        needs.command(CommandNeed::new("STRLEN").key(first));
        if let Some(record) = self.filter(Seed::new(0)).ok().and_then(|it| it.record()) {
            let command = |words| CommandNeed::new(words).key(record.key.as_str());
            needs.key(KeyOwner::Setting("filter.key"), record.key.as_str(), KeyKind::Hash);
            needs.command(command("HMGET").arg("a"));
            needs.command(command("HSET").arg("a").arg("b"));
        }
        needs
    }

    /// Opens the filter; makes it if there is none.
    ///
    /// # Errors
    /// Another filter is there, or the server has no room for this one.
    pub async fn open(&self, link: &mut Link) -> Result<Opened, RedisOpenError> {
        let wanted = Definition::new(&self.spec);
        let opened = self.settle(link, &wanted, None).await?;
        let strings = Strings::look(link, &opened.filter).await?;
        let growth = strings.check_room(link).await?;
        strings.prepare(link, &opened.filter).await?;
        Ok(Opened { growth, ..opened })
    }

    /// Opens the filter only if it exists, and changes nothing.
    ///
    /// # Errors
    /// There is none, or another one.
    pub async fn find(&self, link: &mut Link) -> Result<Opened, RedisOpenError> {
        let found = self.definition(link, None).await?;
        let filter = self.filter(Seed::new(0))?;
        let strings = Strings::look(link, &filter).await?;
        match found {
            Some(found) => self.held_to(&found),
            // A filter of another project needs no definition.
            None if strings.are_there() && self.spec.kind() != NATIVE => {
                self.opened(RandomId::random(), Seed::new(0))
            }
            None => Err(RedisOpenError::Missing { key: self.key.clone() }),
        }
    }

    /// Opens the same filter again, on another connection. If Redis has lost it, makes it anew with
    /// the same id and seed, and empty.
    ///
    /// # Errors
    /// Another program made another filter in its place.
    pub async fn reopen(&self, link: &mut Link, opened: &Opened) -> Result<Opened, RedisOpenError> {
        let wanted = Definition::of(opened.id, self.seeded(opened.seed));
        let again = self.settle(link, &wanted, Some(opened.id)).await?;
        if again.id != opened.id {
            return Err(RedisOpenError::Replaced { key: self.key.clone() });
        }
        let strings = Strings::look(link, &again.filter).await?;
        strings.prepare(link, &again.filter).await?;
        Ok(again)
    }

    /// Defines the filter as `wanted`, unless it is defined.
    async fn settle(
        &self,
        link: &mut Link,
        wanted: &Definition,
        known: Option<RandomId>,
    ) -> Result<Opened, RedisOpenError> {
        let is_native = self.spec.kind() == NATIVE;
        if is_native && known.is_none() && self.definition(link, None).await?.is_none() {
            let filter = self.filter(Seed::new(0))?;
            if Strings::look(link, &filter).await?.are_there() {
                let (key, definition) = (self.key.clone(), self.definition_key());
                return Err(RedisOpenError::Undefined { key, definition });
            }
        }
        let found = self.definition(link, Some(wanted)).await?;
        let found = found.ok_or_else(|| RedisOpenError::Nonsense(self.definition_key()))?;
        self.held_to(&found)
    }

    /// Returns the filter with the found definition, if its parameters are the configured ones.
    fn held_to(&self, found: &Found) -> Result<Opened, RedisOpenError> {
        let found = self.defined(found)?;
        let differences = found.differences(&self.spec);
        if !differences.is_empty() {
            let key = self.key.clone();
            return Err(RedisOpenError::Differs { key, differences });
        }
        self.opened(found.id, found.spec.parameters.seed().unwrap_or(Seed::new(0)))
    }

    /// Returns the definition of a complete filter.
    fn defined<'a>(&self, found: &'a Found) -> Result<&'a Definition, RedisOpenError> {
        match found {
            Found::Defined(definition) => Ok(definition),
            Found::Unfinished(_) => Err(RedisOpenError::Unfinished { key: self.key.clone() }),
        }
    }

    fn opened(&self, id: RandomId, seed: Seed) -> Result<Opened, RedisOpenError> {
        let is_native = self.spec.kind() == NATIVE;
        // A filter of another kind has no seed, but the cache of seen keys needs one.
        let named_by = if is_native { seed } else { Seed::random() };
        Ok(Opened { id, filter: Arc::new(self.filter(seed)?), seed: named_by, growth: 0 })
    }

    /// Reads the definition in Redis. If there is none, defines the filter as `wanted` first.
    async fn definition(
        &self,
        link: &mut Link,
        wanted: Option<&Definition>,
    ) -> Result<Option<Found>, RedisOpenError> {
        let mut define = redis::cmd("EVAL");
        define.arg(DEFINE).arg(2).arg(&definition::keys(&self.key)[..]);
        if let Some(wanted) = wanted {
            define.arg(wanted.words());
        }
        let fields: BTreeMap<String, String> = strings::value(&Ok(link.call(&define).await?))?;
        Definition::found(&fields).map_err(|_| RedisOpenError::Nonsense(self.definition_key()))
    }

    /// Returns the key of the filter's definition.
    pub(crate) fn definition_key(&self) -> String {
        definition::key(&self.key)
    }

    /// Deletes the filter, with any parameters, and returns the number of deleted keys.
    ///
    /// # Errors
    /// The keys do not hold a filter.
    pub async fn delete(&self, link: &mut Link) -> Result<u64, RedisOpenError> {
        let found = self.definition(link, None).await?;
        let theirs = match found {
            Some(Found::Defined(found)) => self.made_for(&found),
            Some(Found::Unfinished(_)) | None => self.clone(),
        };
        let filter = theirs.filter(Seed::new(0))?;
        match Strings::look(link, &filter).await {
            // The filter may have another size.
            Err(RedisOpenError::Keys(problems))
                if !problems.iter().any(KeyError::is_of_another) => {}
            looked => drop(looked?),
        }
        let mut delete = redis::cmd("UNLINK");
        delete.arg(self.definition_key());
        delete.arg(filter.all().collect::<Vec<_>>());
        Ok(strings::value(&Ok(link.call(&delete).await?))?)
    }

    /// Returns the same with the parameters of a found definition.
    fn made_for(&self, found: &Definition) -> Self {
        Self { key: self.key.clone(), spec: found.spec.clone() }
    }
}
