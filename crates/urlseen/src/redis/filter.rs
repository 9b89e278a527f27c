//! Filter in Redis, for threads.
//!
//! An addition is one script that tests and sets. Suppose that its answer is lost after a new
//! key was set: a repeated call would answer that the key was seen, and the program would never
//! fetch it. So Redis keeps each answer for a minute, with the client's number of the call, and
//! a repeated call gets this answer. A slot of answers has one call at a time, so there are as
//! many slots as simultaneous calls. A call that arrives late, after the next one of its slot,
//! finds its keys set and changes nothing.
//!
//! A script gets the id of the filter. If the filter was deleted, it is defined again with its
//! id and seed. If another program made a new filter at the same key, the call is refused.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use redis::{Cmd, FromRedisValue as _, Value};

use super::RedisOptions;
use super::address::Address;
use super::link::Link;
use super::links::{Addressed, Links, read_as, unexpected};
use crate::{Error, ErrorKind, Filter, FilterSpec};
use urlseen_filter::redis_kind::Question;
use urlseen_filter::{Outlook, RedisFilterKeys, Verdict, id};
use urlseen_fingerprint::Fingerprint;
use urlseen_redis::filter::ask::{ask, verdicts};
use urlseen_redis::filter::definition::{self, Definition};
use urlseen_redis::hash_tag::hashed;
use urlseen_redis::protocol::{Call, Script};

/// Filter in Redis that many processes can share.
///
/// Three kinds of programs can share a filter: programs with this crate, the `urlseen` daemon with
/// `filter.place = "redis"`, and programs of the project from which the filter's [`Kind`] comes.
///
/// A script tests and adds keys in one step. If several processes add the same key at the same
/// time, the filter reports the key as new to exactly one process. If the connection is lost, the
/// filter repeats the call on a new connection, up to [`RedisOptions::retries`] times. A repeated
/// call returns the answer of the first try.
///
/// The server must be Redis 6.2 or later, or Valkey.
///
/// ```no_run
/// use urlseen::{FilterExt, FilterSpec, RedisFilter};
///
/// let spec = FilterSpec::native(10_000_000, 1e-6);
/// let seen = RedisFilter::open("redis://127.0.0.1/", "demo:filter", &spec)?;
/// assert_eq!(seen.extend(["a", "b", "a"])?, [true, true, false]);
/// # Ok::<(), urlseen::Error>(())
/// ```
///
/// [`Kind`]: crate::Kind
pub struct RedisFilter {
    key: String,
    /// Definition of the filter, with its id and seed. If Redis has lost the definition, the client
    /// sends it again.
    definition: Definition,
    filter: RedisFilterKeys,
    add: Script,
    /// Prefix of the Redis keys that hold the last answers to this client. There is one key for
    /// each slot. A repeated call gets its answer from such a key.
    answers: String,
    address: Address,
    options: RedisOptions,
    /// Number of slots, and those that no call uses now.
    slots: Mutex<(usize, Vec<Slot>)>,
    /// Number of calls so far that added keys.
    number: AtomicU64,
}

/// Connection, and its number, which determines the Redis key for its answers. It has one call at a
/// time, so there are as many as there were calls at the same time.
struct Slot {
    number: usize,
    links: Links,
}

/// Maximum number of times that a call defines the filter again after another program deleted it.
const DEFINED: usize = 5;

impl RedisFilter {
    /// Opens the filter with the name `key` on the server at `url`. If the filter does not exist,
    /// creates the filter.
    ///
    /// `url` begins with `redis://` or `unix://`, or with `rediss://` if the crate has the feature
    /// `tls`. `redis+cluster://HOST:PORT,…` has some nodes of a Redis Cluster, and
    /// `redis+sentinel://HOST:PORT,…/NAME` has Sentinels that know the primary by this name.
    ///
    /// `key` is the name of the filter: its only Redis key, or the start of all its Redis keys. In
    /// a cluster, the name has a text in braces, such as `{demo}:filter`, so that all keys are on
    /// one node. Timeouts and retries are those of [`RedisOptions::default`].
    ///
    /// # Errors
    /// `url` or `spec` is not valid, Redis has a filter `key` with another spec, or Redis is
    /// unreachable.
    pub fn open(url: &str, key: &str, spec: &FilterSpec) -> Result<Self, Error> {
        Self::open_with(url, key, spec, RedisOptions::default())
    }

    /// Opens a filter with the timeouts and retries of `options`: see [`RedisFilter::open`].
    ///
    /// # Errors
    /// The same errors as [`RedisFilter::open`].
    pub fn open_with(
        url: &str,
        key: &str,
        spec: &FilterSpec,
        options: RedisOptions,
    ) -> Result<Self, Error> {
        let wanted = spec.read()?;
        let mut definition = Definition::new(&wanted);
        // Refuses a kind that cannot be in Redis, before any command to Redis.
        keys(key, &definition)?;
        let address = Address::parse(url, None, None)?;
        let address = address.for_key(key);
        let links = Links::new(vec![Link::new(address.clone(), options)], options.retries);
        definition = defined(key, &definition, &links)?;
        let differences = definition.differences(&wanted);
        if !differences.is_empty() {
            let all: Vec<_> = differences.iter().map(ToString::to_string).collect();
            let text = format!("Redis has a filter {key} with another spec: {}", all.join("; "));
            return Err(Error::new(ErrorKind::Mismatch, text));
        }
        let filter = keys(key, &definition)?;
        if address.is_cluster() && !filter.all().all(|it| hashed(&it) == hashed(key)) {
            let text = format!(
                "the address of Redis is a Redis Cluster, and the keys of the filter {key} are in \
                 different slots there; give the filter a name with a text in braces, such as \
                 {{{key}}}"
            );
            return Err(Error::new(ErrorKind::Spec, text));
        }
        Ok(Self {
            key: key.to_owned(),
            definition,
            add: Script::with_kind(&filter.script.lua, include_str!("add.lua")),
            answers: definition::answers(key, id::random()),
            filter,
            address,
            options,
            slots: Mutex::new((1, vec![Slot { number: 0, links }])),
            number: AtomicU64::new(0),
        })
    }

    /// Returns the number of keys that the filter is made for; 0 for a set, which has no capacity.
    pub fn capacity(&self) -> u64 {
        self.definition.spec.parameters.capacity().unwrap_or(0)
    }

    /// Returns the error rate that the filter is made for. It has this rate when it is full.
    pub fn full_error_rate(&self) -> f64 {
        self.definition.spec.parameters.field("filter.error_rate").unwrap_or(0.0)
    }

    fn slots(&self) -> MutexGuard<'_, (usize, Vec<Slot>)> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes calls over a connection that no other thread uses meanwhile. After a panic, this
    /// connection is never used again.
    fn call<T>(&self, calls: impl FnOnce(&Slot) -> Result<T, Error>) -> Result<T, Error> {
        let idle = self.slots().1.pop();
        let slot = idle.unwrap_or_else(|| {
            let link = Link::new(self.address.clone(), self.options);
            let links = Links::new(vec![link], self.options.retries);
            let (count, _) = &mut *self.slots();
            *count += 1;
            Slot { number: *count - 1, links }
        });
        let answer = calls(&slot);
        self.slots().1.push(slot);
        answer
    }

    fn add_part(&self, slot: &Slot, keys: &[Fingerprint]) -> Result<Vec<bool>, Error> {
        for _ in 0..DEFINED {
            let reply = slot.links.ask(0, self.adding(slot.number, keys))?;
            if let Some(is_new) = self.added(keys.len(), reply)? {
                return Ok(is_new);
            }
            let found = defined(&self.key, &self.definition, &slot.links)?;
            if found.id != self.definition.id {
                return Err(self.replaced());
            }
        }
        let key = &self.key;
        let text = format!(
            "another program repeatedly deletes the filter {key} in Redis; stop that program"
        );
        Err(Error::new(ErrorKind::Mismatch, text))
    }

    /// Returns the call that adds keys. A repeated call gets the answer of the first one.
    fn adding(&self, slot: usize, keys: &[Fingerprint]) -> Call {
        let Question { keys: strings, places, extras } =
            self.filter.question(keys.iter().map(Some));
        let (own, answers) = (definition::key(&self.key), format!("{}:{slot}", self.answers));
        let all: Vec<&str> =
            [&own, &answers].into_iter().chain(&strings).map(|key| &**key).collect();
        let number = self.number.fetch_add(1, Relaxed);
        let words = [self.definition.id.to_string(), number.to_string(), keys.len().to_string()];
        let words = words.into_iter().map(String::into_bytes);
        let numbers = (1..=keys.len()).map(|number| number.to_string().into_bytes());
        self.add.call(&all, words.chain([places]).chain(numbers).chain(extras).collect())
    }

    /// Reads the reply to an addition of `count` keys. Returns true for each new key, and `None` if
    /// Redis has no definition of the filter.
    fn added(&self, count: usize, reply: Value) -> Result<Option<Vec<bool>>, Error> {
        let (word, said): (String, String) = read_as(reply)?;
        if word != "ok" {
            return if said.is_empty() { Ok(None) } else { Err(self.replaced()) };
        }
        let mut is_new = vec![false; count];
        for number in said.split(',').filter_map(|number| number.parse::<usize>().ok()) {
            if let Some(is_new) = is_new.get_mut(number.wrapping_sub(1)) {
                *is_new = true;
            }
        }
        Ok(Some(is_new))
    }

    fn outlook(&self) -> Outlook {
        self.filter.kind.outlook(0)
    }

    fn replaced(&self) -> Error {
        let key = &self.key;
        let text = format!(
            "another program deleted the filter {key} in Redis and made another one in its place; \
             open the filter again to use the other one"
        );
        Error::new(ErrorKind::Mismatch, text)
    }
}

/// Returns the Redis keys of the filter with the name `key`. Fails if no filter in Redis can have
/// the spec.
fn keys(key: &str, definition: &Definition) -> Result<RedisFilterKeys, Error> {
    let kind = definition.spec.parameters.in_redis();
    Ok(RedisFilterKeys::new(key, kind.map_err(|error| Error::new(ErrorKind::Spec, error))?))
}

/// Defines the filter, with its id and seed, if it does not exist. Returns the definition that
/// exists after that.
fn defined(key: &str, wanted: &Definition, links: &Links) -> Result<Definition, Error> {
    let reply = links.ask(0, definition::define(key, &wanted.words()).into())?;
    let fields = BTreeMap::<String, String>::from_redis_value(reply);
    let found = fields.ok().and_then(|fields| Definition::found(&fields).ok().flatten());
    found.ok_or_else(|| {
        let key = definition::key(key);
        let text =
            format!("{key} in Redis is not what urlseen writes; find the program that changed it");
        Error::new(ErrorKind::Mismatch, text)
    })
}

impl Filter for RedisFilter {
    fn add_all(&self, keys: &[Fingerprint]) -> Result<Vec<bool>, Error> {
        let mut known = HashSet::with_capacity(keys.len());
        let is_first: Vec<bool> = keys.iter().map(|key| known.insert(key)).collect();
        let first = |(key, _): (&Fingerprint, _)| {
            let unplaced = |why| Error::new(ErrorKind::Placement, format!("the key {key}: {why}"));
            self.filter.check(key).map(|()| key.clone()).map_err(unplaced)
        };
        let firsts = keys.iter().zip(&is_first).filter(|(_, is_first)| **is_first).map(first);
        let firsts = firsts.collect::<Result<Vec<_>, _>>()?;
        let mut is_new = Vec::with_capacity(firsts.len());
        self.call(|slot| {
            for part in firsts.chunks(self.filter.most_judged()) {
                is_new.extend(self.add_part(slot, part)?);
            }
            Ok(())
        })?;
        let mut is_new = is_new.into_iter();
        Ok(is_first.into_iter().map(|is_first| is_first && is_new.next() == Some(true)).collect())
    }

    fn test_all(&self, keys: &[Fingerprint]) -> Result<Vec<bool>, Error> {
        let unplaced = |why| Error::new(ErrorKind::Placement, format!("the key {why}"));
        let groups = ask(&self.filter, keys).map_err(unplaced)?;
        let mut seen = Vec::with_capacity(keys.len());
        self.call(|slot| {
            for (group, counts) in groups {
                let id = Cmd::hget(definition::key(&self.key), "id");
                let questions: Vec<Addressed> =
                    [id].into_iter().chain(group).map(|question| (0, question.into())).collect();
                let answers = slot.links.ask_all(&questions, self.options.retries, |_| {});
                let mut replies = answers.into_iter().collect::<Result<Vec<_>, _>>()?;
                // If Redis has no definition of the filter, it is empty, and no key is seen.
                let id: Option<String> = read_as(replies.remove(0))?;
                if id.is_some_and(|id| id != self.definition.id.to_string()) {
                    return Err(self.replaced());
                }
                let verdicts = verdicts(&self.filter, &counts, replies).map_err(unexpected)?;
                seen.extend(verdicts.into_iter().map(|verdict| verdict == Verdict::Seen));
            }
            Ok(())
        })?;
        Ok(seen)
    }

    fn keys(&self) -> Vec<String> {
        self.filter.all().collect()
    }

    fn bits(&self) -> u64 {
        self.outlook().bits
    }

    fn hashes(&self) -> u32 {
        self.outlook().hashes
    }

    fn delete(&self) -> Result<(), Error> {
        let mut delete = redis::cmd("UNLINK");
        delete.arg(definition::key(&self.key)).arg(self.keys());
        self.call(|slot| slot.links.ask(0, delete.into()).map(drop))
    }
}

/// Formats the filter without its address, because the address may contain a password.
impl fmt::Debug for RedisFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("RedisFilter");
        debug.field("key", &self.key).field("definition", &self.definition).finish_non_exhaustive()
    }
}
