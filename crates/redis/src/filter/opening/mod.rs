//! Functions that open a filter in Redis. They compare its parameters with the configuration, check
//! its keys, and check that the server has memory for its full size.

mod error;
mod new_filter;
mod sample;
mod strings;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::filter::definition::{self, Definition};
use crate::link::Link;
use crate::preflight::{KeyOwner, Needs};
use error::KeyError;
pub use error::RedisOpenError;
pub use new_filter::{NewFilter, get};
pub use sample::{Sample, Samples, estimate};
use strings::Strings;
use urlseen_filter::{FilterSpec, KeyHasher, RedisFilterKeys, Seed};

/// Filter in Redis as the configuration describes it, before it is opened.
#[derive(Debug, Clone)]
pub struct Wanted {
    key: String,
    spec: FilterSpec,
}

/// A filter in Redis that is ready for use.
#[derive(Debug, Clone)]
pub struct Opened {
    /// Definition of the filter. A filter of another project may have no definition in Redis. Then
    /// this definition has the configured parameters.
    pub definition: Definition,
    /// Redis keys of the filter.
    pub filter: Arc<RedisFilterKeys>,
    /// Seed of the hasher of this process: the seed of the filter, or a random seed for a kind
    /// without seeds.
    pub seed: Seed,
    /// Maximum number of bytes by which the keys of the filter can still grow.
    pub growth: u64,
}

impl Opened {
    /// Returns the hasher of fingerprints for this process.
    pub fn hasher(&self) -> KeyHasher {
        KeyHasher::new(self.seed)
    }

    /// Returns the maximum total size of the filter's strings, in bytes. Returns 0 for a set.
    pub fn bytes(&self) -> u64 {
        self.filter.keys.iter().filter_map(|(_, content)| content.max_bytes()).sum()
    }
}

impl Wanted {
    /// Describes the filter with this `filter.key` and this spec.
    ///
    /// # Errors
    /// Filters of the kind cannot be that large, or cannot be in Redis.
    pub fn new(key: impl Into<String>, spec: FilterSpec) -> Result<Self, RedisOpenError> {
        let wanted = Self { key: key.into(), spec };
        // Refuses a size that the kind does not permit, before any command to Redis.
        wanted.filter(Seed::new(0))?;
        Ok(wanted)
    }

    /// Returns the keys of the filter. Only the kind `native` uses the seed.
    ///
    /// # Errors
    /// Filters of the kind cannot be that large or small, or cannot be in Redis.
    pub fn filter(&self, seed: Seed) -> Result<RedisFilterKeys, RedisOpenError> {
        self.filter_of(&self.seeded(seed))
    }

    /// Returns the keys of the filter with these parameters.
    fn filter_of(&self, spec: &FilterSpec) -> Result<RedisFilterKeys, RedisOpenError> {
        Ok(RedisFilterKeys::new(&self.key, spec.parameters.in_redis()?))
    }

    /// Returns the spec with the given seed, if the kind of the filter has a seed.
    fn seeded(&self, seed: Seed) -> FilterSpec {
        FilterSpec { parameters: self.spec.parameters.reseeded(seed), ..self.spec.clone() }
    }

    /// Returns the keys and commands that the server must permit for opening the filter.
    pub fn needs(&self) -> Needs {
        let (mut needs, definition) = (Needs::default(), self.definition_key());
        needs.key(KeyOwner::Own("filter's definition"), &definition, "hash");
        needs.commands(&[&definition], &["EXISTS $", "HGETALL $", "HSET $ a b"]);
        needs.commands(&[&self.key], &["STRLEN $"]);
        if let Some(record) = self.filter(Seed::new(0)).ok().and_then(|it| it.record()) {
            needs.key(KeyOwner::Setting("filter.key"), &record.key, "hash");
            needs.commands(&[&record.key], &["HMGET $ a", "HSET $ a b"]);
        }
        needs
    }

    /// Opens the filter. If Redis has no filter at the key, creates an empty one.
    ///
    /// # Errors
    /// Redis has another filter at the key, or the server has no memory for the filter's full size.
    pub async fn open(&self, link: &mut Link) -> Result<Opened, RedisOpenError> {
        if self.spec.kind().has_seed()
            && self.definition(link, None).await?.is_none()
            && self.look(link).await?.are_there
        {
            return Err(RedisOpenError::Undefined(self.key.clone()));
        }
        let opened = self.settle(link, &Definition::new(&self.spec)).await?;
        let strings = Strings::look(link, &opened.filter).await?;
        let growth = strings.check_room(link).await?;
        strings.prepare(link, &opened.filter).await?;
        Ok(Opened { growth, ..opened })
    }

    /// Checks that [`Wanted::open`] would succeed, and changes nothing. Returns the filter, or
    /// `None` if Redis has no filter at the key.
    ///
    /// # Errors
    /// The errors of [`Wanted::open`].
    pub async fn rehearse(&self, link: &mut Link) -> Result<Option<Opened>, RedisOpenError> {
        let found = self.definition(link, None).await?;
        let strings = self.look(link).await?;
        let opened = match found {
            Some(found) => Some(self.held_to(found, &self.spec)?),
            None if strings.are_there && self.spec.kind().has_seed() => {
                return Err(RedisOpenError::Undefined(self.key.clone()));
            }
            None => None,
        };
        let growth = strings.check_room(link).await?;
        Ok(opened.map(|opened| Opened { growth, ..opened }))
    }

    /// Opens the filter only if it exists, and changes nothing.
    ///
    /// # Errors
    /// The filter does not exist, or has other parameters.
    pub async fn find(&self, link: &mut Link) -> Result<Opened, RedisOpenError> {
        let found = self.definition(link, None).await?;
        let strings = self.look(link).await?;
        match found {
            Some(found) => self.held_to(found, &self.spec),
            // A filter of another project needs no definition.
            None if strings.are_there && !self.spec.kind().has_seed() => {
                self.opened(Definition::new(&self.spec))
            }
            None => Err(RedisOpenError::Missing(self.key.clone())),
        }
    }

    /// Looks at the keys of a filter with the wanted parameters, whatever its seed.
    async fn look(&self, link: &mut Link) -> Result<Strings, RedisOpenError> {
        Strings::look(link, &self.filter(Seed::new(0))?).await
    }

    /// Opens the same filter again, on another connection. If Redis has lost the filter, makes an
    /// empty filter with the same id and seed.
    ///
    /// # Errors
    /// Another program has made another filter at the key.
    pub async fn reopen(&self, link: &mut Link, opened: &Opened) -> Result<Opened, RedisOpenError> {
        let again = self.settle(link, &opened.definition).await?;
        if again.definition.id != opened.definition.id {
            return Err(RedisOpenError::Replaced(self.key.clone()));
        }
        let strings = Strings::look(link, &again.filter).await?;
        strings.prepare(link, &again.filter).await?;
        Ok(again)
    }

    /// Defines the filter as `wanted`, unless Redis already has a definition, and returns the
    /// filter.
    async fn settle(&self, link: &mut Link, wanted: &Definition) -> Result<Opened, RedisOpenError> {
        let found = self.definition(link, Some(wanted)).await?;
        let found = found.ok_or_else(|| RedisOpenError::Nonsense(self.definition_key()))?;
        self.held_to(found, &self.spec)
    }

    /// Returns the filter with the found definition. Fails if the definition has other parameters
    /// than `wanted`, or other rules than this program.
    fn held_to(&self, found: Definition, wanted: &FilterSpec) -> Result<Opened, RedisOpenError> {
        let differences = found.differences(wanted);
        if !differences.is_empty() {
            let key = self.key.clone();
            return Err(RedisOpenError::Differs { key, differences });
        }
        self.opened(found)
    }

    fn opened(&self, definition: Definition) -> Result<Opened, RedisOpenError> {
        let filter = Arc::new(self.filter_of(&definition.spec)?);
        // A filter of another kind has no seed, but the cache of seen keys needs a seed.
        let seed = definition.spec.parameters.seed().unwrap_or_else(Seed::random);
        Ok(Opened { definition, filter, seed, growth: 0 })
    }

    /// Reads the definition in Redis. Defines a missing filter as `wanted` first.
    async fn definition(
        &self,
        link: &mut Link,
        wanted: Option<&Definition>,
    ) -> Result<Option<Definition>, RedisOpenError> {
        let words = wanted.map(Definition::words).unwrap_or_default();
        let define = definition::define(&self.key, &words);
        let fields: BTreeMap<String, String> = link.query(&define).await?;
        Definition::found(&fields).map_err(|_| RedisOpenError::Nonsense(self.definition_key()))
    }

    /// Returns the key of the filter's definition.
    pub(crate) fn definition_key(&self) -> String {
        definition::key(&self.key)
    }

    /// Deletes the filter, even if its parameters differ from the configured ones. Returns the
    /// number of deleted keys.
    ///
    /// # Errors
    /// The keys do not hold a filter.
    pub async fn delete(&self, link: &mut Link) -> Result<u64, RedisOpenError> {
        let found = self.definition(link, None).await?;
        let filter = match found {
            Some(found) => self.filter_of(&found.spec)?,
            None => self.filter(Seed::new(0))?,
        };
        match Strings::look(link, &filter).await {
            // These problems only mean that the size of the filter is not the configured one.
            Err(RedisOpenError::Keys(problems))
                if !problems.iter().any(|problem| problem.is_of_another) => {}
            looked => drop(looked?),
        }
        let mut delete = redis::cmd("UNLINK");
        delete.arg(self.definition_key());
        delete.arg(filter.all().collect::<Vec<_>>());
        Ok(link.query(&delete).await?)
    }
}
