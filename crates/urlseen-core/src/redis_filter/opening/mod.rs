//! A filter in Redis, opened: what it was made for is settled among all that share it, its keys are
//! what its kind has there, and there is room for what they grow to.

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
use crate::filter::native::Native;
use crate::filter::{Capacity, ErrorRate, FilterSpec, RedisFilterKeys, Seed, Sizing};
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

/// What a filter in Redis is to be, as configured.
#[derive(Debug, Clone)]
pub struct Wanted {
    key: String,
    spec: FilterSpec,
    sizing: Sizing,
}

/// A filter in Redis that can be worked with.
#[derive(Debug, Clone)]
pub struct Opened {
    /// Its id.
    pub id: RandomId,
    /// Its keys.
    pub filter: Arc<RedisFilterKeys>,
    /// Names fingerprints within this process: for `native` as the filter does.
    pub native: Native,
    /// How large it is: only the capacity counts where the kind is not `native`.
    pub sizing: Sizing,
    /// Bytes that its keys may still grow by.
    pub growth: u64,
}

impl Opened {
    /// How many bytes its strings have at most; nothing of a set.
    pub fn bytes(&self) -> u64 {
        self.filter.used().iter().filter_map(|&it| self.filter.content(it).max_bytes()).sum()
    }
}

impl Wanted {
    /// The filter whose keys are named after `key`. `size` is that of the memory of this process
    /// where the kind has none.
    ///
    /// # Errors
    /// The kind cannot be that large, or is none that Redis holds.
    pub fn new(
        key: impl Into<String>,
        spec: FilterSpec,
        size: (Capacity, ErrorRate),
    ) -> Result<Self, RedisOpenError> {
        let sizing = spec.parameters.sizing().unwrap_or_else(|| Sizing::new(size.0, size.1));
        let wanted = Self { key: key.into(), spec, sizing };
        // Refuses what the kind cannot be before Redis is asked.
        wanted.filter(Seed::new(0))?;
        Ok(wanted)
    }

    /// How large a native one is.
    pub fn sizing(&self) -> Sizing {
        self.sizing
    }

    /// The filter's keys, and how it places fingerprints. Only the kind `native` has a seed.
    ///
    /// # Errors
    /// The kind cannot be that large or small, or is none that Redis holds.
    pub fn filter(&self, seed: Seed) -> Result<RedisFilterKeys, RedisOpenError> {
        Ok(RedisFilterKeys::new(&self.key, self.seeded(seed).parameters.in_redis()?))
    }

    /// The spec with that seed, where its kind has one.
    fn seeded(&self, seed: Seed) -> FilterSpec {
        FilterSpec { parameters: self.spec.parameters.reseeded(seed), ..self.spec }
    }

    /// What opening it needs of the server.
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

    /// Opens the filter; where there is none, it is made.
    ///
    /// # Errors
    /// There is another one there, or no room for it.
    pub async fn open(&self, link: &mut Link) -> Result<Opened, RedisOpenError> {
        let wanted = Definition::new(&self.spec);
        let opened = self.settle(link, &wanted, None).await?;
        let strings = Strings::look(link, &opened.filter).await?;
        let growth = strings.check_room(link).await?;
        strings.prepare(link, &opened.filter).await?;
        Ok(Opened { growth, ..opened })
    }

    /// Opens the filter only where it is there already, and changes nothing.
    ///
    /// # Errors
    /// There is none, or another one.
    pub async fn find(&self, link: &mut Link) -> Result<Opened, RedisOpenError> {
        let found = self.definition(link, None).await?;
        let filter = self.filter(Seed::new(0))?;
        let strings = Strings::look(link, &filter).await?;
        match found {
            Some(found) => self.held_to(&found),
            // Another project's needs none.
            None if strings.are_there() && self.spec.kind() != NATIVE => {
                self.opened(RandomId::random(), Seed::new(0))
            }
            None => Err(RedisOpenError::Missing { key: self.key.clone() }),
        }
    }

    /// The same filter again, on another connection. Where Redis has lost it, it is made anew as it
    /// was: then nothing that was in it is there, nor anything that came of it.
    ///
    /// # Errors
    /// Somebody made another one in its place.
    pub async fn reopen(&self, link: &mut Link, opened: &Opened) -> Result<Opened, RedisOpenError> {
        let wanted = Definition::of(opened.id, self.seeded(opened.native.seed()));
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

    /// The filter that is defined so, if that is what is wanted.
    fn held_to(&self, found: &Found) -> Result<Opened, RedisOpenError> {
        let found = self.defined(found)?;
        let differences = found.differences(&self.spec);
        if !differences.is_empty() {
            let key = self.key.clone();
            return Err(RedisOpenError::Differs { key, differences });
        }
        self.opened(found.id, found.spec.parameters.seed().unwrap_or(Seed::new(0)))
    }

    /// The definition of a filter that is all there.
    fn defined<'a>(&self, found: &'a Found) -> Result<&'a Definition, RedisOpenError> {
        match found {
            Found::Defined(definition) => Ok(definition),
            Found::Unfinished(_) => Err(RedisOpenError::Unfinished { key: self.key.clone() }),
        }
    }

    fn opened(&self, id: RandomId, seed: Seed) -> Result<Opened, RedisOpenError> {
        let is_native = self.spec.kind() == NATIVE;
        // Another kind's filter has no seed, but the cache of seen keys needs one.
        let named_by = if is_native { seed } else { Seed::random() };
        Ok(Opened {
            id,
            filter: Arc::new(self.filter(seed)?),
            native: Native::new(named_by, self.sizing.geometry()),
            sizing: self.sizing,
            growth: 0,
        })
    }

    /// The definition that Redis holds, after it was defined as `wanted` where there was none.
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

    /// Where Redis keeps what the filter was made for.
    pub(crate) fn definition_key(&self) -> String {
        definition::key(&self.key)
    }

    /// Deletes the filter, whatever it was made for, and answers how many keys that were.
    ///
    /// # Errors
    /// What is there is no filter.
    pub async fn delete(&self, link: &mut Link) -> Result<u64, RedisOpenError> {
        let found = self.definition(link, None).await?;
        let theirs = match found {
            Some(Found::Defined(found)) => self.made_for(&found),
            Some(Found::Unfinished(_)) | None => self.clone(),
        };
        let filter = theirs.filter(Seed::new(0))?;
        match Strings::look(link, &filter).await {
            // Of another size it may be.
            Err(RedisOpenError::Keys(problems))
                if !problems.iter().any(KeyError::is_of_another) => {}
            looked => drop(looked?),
        }
        let mut delete = redis::cmd("UNLINK");
        delete.arg(self.definition_key());
        delete.arg(filter.all().collect::<Vec<_>>());
        Ok(strings::value(&Ok(link.call(&delete).await?))?)
    }

    /// The same with what a filter was made for in place of what is configured.
    fn made_for(&self, found: &Definition) -> Self {
        let sizing = found.spec.parameters.sizing().unwrap_or(self.sizing);
        Self { key: self.key.clone(), spec: found.spec.clone(), sizing }
    }
}
