//! Calls of a filter in Redis and their replies, without a connection.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use redis::{Cmd, FromRedisValue, Pipeline, RedisError, RedisResult, Value};

use crate::{Error, ErrorKind, FilterSpec};
use urlseen_core::filter::id;
use urlseen_core::filter::{FilterSpec as CoreSpec, RedisFilterKeys, Verdict};
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::redis::script::{COMMON, Script};
use urlseen_core::redis_filter::definition::{self, DEFINE, Definition, Found};
use urlseen_core::redis_filter::judge::{Judge, Question, ask, verdict};

/// Maximum number of keys in one pipeline.
const ASKED: usize = 200;

/// The calls of one filter in Redis.
#[derive(Debug)]
pub(super) struct Calls {
    key: String,
    /// The definition with id and seed. It serves to define the filter again if Redis lost it.
    definition: Definition,
    judge: Judge,
    add: Script,
    /// Redis key that holds the answers to this client. A repeated call reads its answer there.
    answers: String,
}

/// A requested filter, before Redis has reported the existing one.
#[derive(Debug)]
pub(super) struct Wanted {
    key: String,
    spec: CoreSpec,
    definition: Definition,
}

impl Wanted {
    /// Prepares a filter named `key`. Fails if no filter in Redis can have that spec.
    pub(super) fn new(key: &str, spec: &FilterSpec) -> Result<Self, Error> {
        let spec = spec.read()?;
        spec.parameters.in_redis().map_err(|error| Error::new(ErrorKind::Spec, error))?;
        let definition = Definition::new(&spec);
        Ok(Self { key: key.to_owned(), definition, spec })
    }

    /// Defines the filter, unless it exists in Redis.
    pub(super) fn define(&self) -> Cmd {
        define(&self.key, &self.definition)
    }

    /// Returns the calls for the filter that exists in Redis. Fails if its spec differs from the
    /// requested one.
    pub(super) fn defined(&self, reply: Value) -> Result<Calls, Error> {
        let found = found(&self.key, reply)?;
        let differences = found.differences(&self.spec);
        if !differences.is_empty() {
            let all: Vec<_> = differences.iter().map(ToString::to_string).collect();
            let (key, all) = (&self.key, all.join("; "));
            let text = format!("the filter {key} in Redis is another one: {all}");
            return Err(Error::new(ErrorKind::Mismatch, text));
        }
        let kind = found.spec.parameters.in_redis();
        let kind = kind.map_err(|error| Error::new(ErrorKind::Spec, error))?;
        let judge = Judge::new(Arc::new(RedisFilterKeys::new(&self.key, kind)));
        let text = [COMMON, &judge.lua(), include_str!("add.lua")].join("\n");
        let answers = definition::answers(&self.key, id::random());
        let key = self.key.clone();
        Ok(Calls { key, definition: found, judge, add: Script::new(&text), answers })
    }
}

impl Calls {
    /// Returns the keys of the filter.
    pub(super) fn filter(&self) -> &RedisFilterKeys {
        self.judge.filter()
    }

    /// Fails if the filter's kind cannot place one of the keys.
    pub(super) fn check(&self, keys: &[Fingerprint]) -> Result<(), Error> {
        keys.iter().try_for_each(|key| {
            let unplaced = |why| Error::new(ErrorKind::Placement, format!("the key {key}: {why}"));
            self.filter().check(key).map_err(unplaced)
        })
    }

    /// Splits keys into parts. Each part is sent in one call.
    pub(super) fn parts<'a>(
        &self,
        keys: &'a [Fingerprint],
    ) -> impl Iterator<Item = &'a [Fingerprint]> + use<'a> {
        keys.chunks(self.judge.most())
    }

    /// Defines the filter again, with its id and seed.
    pub(super) fn define(&self) -> Cmd {
        define(&self.key, &self.definition)
    }

    /// Fails if Redis now has a definition of another filter.
    pub(super) fn defined(&self, reply: Value) -> Result<(), Error> {
        let found = found(&self.key, reply)?;
        if found.id == self.definition.id { Ok(()) } else { Err(self.replaced()) }
    }

    /// Loads the script into a server.
    pub(super) fn load(&self) -> Cmd {
        self.add.load()
    }

    /// Adds keys. A repeated call with the same `slot` and `number` gets the answer of the first
    /// call. A slot serves one call at a time.
    pub(super) fn add(&self, slot: usize, number: u64, keys: &[Fingerprint]) -> Cmd {
        let Question { keys: strings, places, extras } = self.judge.question(keys.iter().map(Some));
        let mut command = redis::cmd("EVALSHA");
        command.arg(self.add.hash()).arg(strings.len() + 2);
        command.arg(definition::key(&self.key)).arg(format!("{}:{slot}", self.answers));
        command
            .arg(strings)
            .arg(self.definition.id.to_string())
            .arg(number)
            .arg(keys.len())
            .arg(places);
        for number in 1..=keys.len() {
            command.arg(number);
        }
        command.arg(extras);
        command
    }

    /// Returns true for each of `count` keys that was new. Returns `None` if the filter is not
    /// defined in Redis: the caller then sends [`Calls::define`] first.
    pub(super) fn added(&self, count: usize, reply: Value) -> Result<Option<Vec<bool>>, Error> {
        let unexpected = |error: RedisError| Error::new(ErrorKind::Redis, error);
        let parsed = <(String, String)>::from_redis_value(reply).map_err(Into::into);
        let (word, said) = parsed.map_err(unexpected)?;
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

    /// Tests keys. Returns pipelines, each with the number of replies for each of its keys.
    pub(super) fn ask(&self, keys: &[Fingerprint]) -> Result<Vec<(Pipeline, Vec<usize>)>, Error> {
        let mut parts = Vec::with_capacity(keys.len().div_ceil(ASKED));
        for some in keys.chunks(ASKED) {
            let mut pipeline = Pipeline::new();
            pipeline.ignore_errors();
            pipeline.cmd("HGET").arg(definition::key(&self.key)).arg("id");
            let mut counts = Vec::with_capacity(some.len());
            for key in some {
                let unplaced =
                    |why| Error::new(ErrorKind::Placement, format!("the key {key}: {why}"));
                counts.push(ask(&mut pipeline, self.filter(), key).map_err(unplaced)?);
            }
            parts.push((pipeline, counts));
        }
        Ok(parts)
    }

    /// Reads the replies to a pipeline. Returns true for each seen key.
    pub(super) fn asked(
        &self,
        counts: &[usize],
        replies: &[RedisResult<Value>],
    ) -> RedisResult<Result<Vec<bool>, Error>> {
        let (defined, mut rest) = match replies {
            [defined, rest @ ..] => (defined.clone()?, rest.iter()),
            [] => (Value::Nil, [].iter()),
        };
        // A filter that is not defined is empty.
        let id = Option::<String>::from_redis_value(defined)?;
        if id.is_some_and(|id| id != self.definition.id.to_string()) {
            return Ok(Err(self.replaced()));
        }
        let mut seen = Vec::with_capacity(counts.len());
        for &count in counts {
            seen.push(verdict(self.filter(), rest.by_ref().take(count))? == Verdict::Seen);
        }
        Ok(Ok(seen))
    }

    /// Deletes the filter and its definition.
    pub(super) fn delete(&self) -> Cmd {
        let mut command = redis::cmd("UNLINK");
        command.arg(definition::key(&self.key)).arg(self.keys());
        command
    }

    /// Returns the filter's keys in Redis.
    pub(super) fn keys(&self) -> Vec<String> {
        self.filter().all().collect()
    }

    /// Returns the number of bits of the filter.
    pub(super) fn bits(&self) -> u64 {
        self.filter().kind().bits()
    }

    /// Returns the number of bits of a key.
    pub(super) fn hashes(&self) -> u32 {
        self.filter().kind().hashes()
    }

    /// Error for a filter that another program deletes after each definition.
    pub(super) fn unsteady(&self) -> Error {
        let key = &self.key;
        let text = format!("another program deletes the filter {key} in Redis again and again");
        Error::new(ErrorKind::Mismatch, text)
    }

    fn replaced(&self) -> Error {
        let key = &self.key;
        let text = format!(
            "another program deleted the filter {key} in Redis and made another one in its place; \
             open it again to continue with that"
        );
        Error::new(ErrorKind::Mismatch, text)
    }
}

/// Returns the keys without repetitions, and true for each of `keys` that does not equal an earlier
/// one.
pub(super) fn firsts(keys: &[Fingerprint]) -> (Vec<Fingerprint>, Vec<bool>) {
    let mut known = HashSet::with_capacity(keys.len());
    let is_first: Vec<bool> = keys.iter().map(|key| known.insert(key)).collect();
    let firsts = keys.iter().zip(&is_first).filter(|(_, is_first)| **is_first);
    (firsts.map(|(key, _)| key.clone()).collect(), is_first)
}

fn define(key: &str, definition: &Definition) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(DEFINE).arg(2).arg(&definition::keys(key)[..]);
    command.arg(definition.words());
    command
}

fn found(key: &str, reply: Value) -> Result<Definition, Error> {
    let fields = BTreeMap::<String, String>::from_redis_value(reply);
    let found = fields.ok().and_then(|fields| Definition::found(&fields).ok().flatten());
    match found {
        Some(Found::Defined(definition)) => Ok(definition),
        Some(Found::Unfinished(_)) => {
            let text = format!("the filter {key} in Redis is not all there yet");
            Err(Error::new(ErrorKind::Mismatch, text))
        }
        None => Err(nonsense(key)),
    }
}

fn nonsense(key: &str) -> Error {
    let key = definition::key(key);
    let text = format!("{key} in Redis is not what urlseen wrote there; find out who did");
    Error::new(ErrorKind::Mismatch, text)
}
