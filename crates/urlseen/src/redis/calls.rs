//! Calls of a filter in Redis and their replies, without a connection.
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

use redis::{FromRedisValue, Pipeline, RedisError, RedisResult, Value};

use super::address::Address;
use crate::{Error, ErrorKind, FilterSpec};
use urlseen_filter::id;
use urlseen_filter::redis_kind::Question;
use urlseen_filter::{Outlook, Parameters, RedisFilterKeys, Verdict};
use urlseen_fingerprint::Fingerprint;
use urlseen_redis::filter::ask::{ask, verdicts};
use urlseen_redis::filter::definition::{self, Definition};
use urlseen_redis::hash_tag::hashed;
use urlseen_redis::protocol::{Call, Script};

/// Calls of one filter in Redis.
#[derive(Debug)]
pub(super) struct Calls {
    key: String,
    /// Definition of the filter, with its id and seed. If Redis has lost the definition, the client
    /// sends it again.
    definition: Definition,
    pub(super) filter: RedisFilterKeys,
    add: Script,
    /// Prefix of the Redis keys that hold the last answers to this client. There is one key for
    /// each slot. A repeated call gets its answer from such a key.
    answers: String,
}

impl Calls {
    /// Prepares to open a filter with the name `key`. Fails if no filter in Redis can have the
    /// spec.
    pub(super) fn wanted(key: &str, spec: &FilterSpec) -> Result<Self, Error> {
        Self::new(key, Definition::new(&spec.read()?))
    }

    fn new(key: &str, definition: Definition) -> Result<Self, Error> {
        let kind = definition.spec.parameters.in_redis();
        let kind = kind.map_err(|error| Error::new(ErrorKind::Spec, error))?;
        let filter = RedisFilterKeys::new(key, kind);
        let add = Script::with_kind(&filter.script().lua, include_str!("add.lua"));
        let answers = definition::answers(key, id::random());
        Ok(Self { key: key.to_owned(), definition, filter, add, answers })
    }

    /// Reads the reply to the first [`Calls::define`], and returns the calls of the existing
    /// filter. Fails if the spec of the existing filter differs from the wanted `spec`.
    pub(super) fn opened(&self, spec: &FilterSpec, reply: Value) -> Result<Self, Error> {
        let found = found(&self.key, reply)?;
        let differences = found.differences(&spec.read()?);
        if differences.is_empty() {
            return Self::new(&self.key, found);
        }
        let all: Vec<_> = differences.iter().map(ToString::to_string).collect();
        let (key, all) = (&self.key, all.join("; "));
        let text = format!("Redis has a filter {key} with another spec: {all}");
        Err(Error::new(ErrorKind::Mismatch, text))
    }

    /// Checks that all keys of the filter are in one slot, if they are in a cluster.
    pub(super) fn check_slots(&self, address: &Address) -> Result<(), Error> {
        let key = &self.key;
        if !address.is_cluster() || self.filter.all().all(|it| hashed(&it) == hashed(key)) {
            return Ok(());
        }
        let text = format!(
            "the address of Redis is a Redis Cluster, and the keys of the filter {key} are in \
             different slots there; give the filter a name with a text in braces, such as \
             {{{key}}}"
        );
        Err(Error::new(ErrorKind::Spec, text))
    }

    /// Removes repeated keys. Returns the remaining keys, and one value for each element of `keys`:
    /// true if no earlier element equals it. Fails if the filter's kind has no bit positions for a
    /// key.
    pub(super) fn firsts(
        &self,
        keys: &[Fingerprint],
    ) -> Result<(Vec<Fingerprint>, Vec<bool>), Error> {
        let mut known = HashSet::with_capacity(keys.len());
        let is_first: Vec<bool> = keys.iter().map(|key| known.insert(key)).collect();
        let first = |(key, _): (&Fingerprint, _)| {
            let unplaced = |why| Error::new(ErrorKind::Placement, format!("the key {key}: {why}"));
            self.filter.check(key).map(|()| key.clone()).map_err(unplaced)
        };
        let firsts = keys.iter().zip(&is_first).filter(|(_, is_first)| **is_first).map(first);
        Ok((firsts.collect::<Result<_, _>>()?, is_first))
    }

    /// Returns the command that defines the filter, with its id and seed, if it does not exist.
    /// Redis always replies with the definition that exists after the command.
    pub(super) fn define(&self) -> Call {
        definition::define(&self.key, &self.definition.words()).into()
    }

    /// Reads the reply to a later [`Calls::define`]. Fails if Redis has the definition of another
    /// filter.
    pub(super) fn defined(&self, reply: Value) -> Result<(), Error> {
        let found = found(&self.key, reply)?;
        if found.id == self.definition.id { Ok(()) } else { Err(self.replaced()) }
    }

    /// Returns the call that adds keys. A repeated call with the same `slot` and `number` gets the
    /// answer of the first call. A slot serves one call at a time.
    pub(super) fn add(&self, slot: usize, number: u64, keys: &[Fingerprint]) -> Call {
        let Question { keys: strings, places, extras } =
            self.filter.question(keys.iter().map(Some));
        let (own, answers) = (definition::key(&self.key), format!("{}:{slot}", self.answers));
        let all: Vec<&str> =
            [&own, &answers].into_iter().chain(&strings).map(|key| &**key).collect();
        let id = self.definition.id.to_string();
        let words = [id, number.to_string(), keys.len().to_string()].map(String::into_bytes);
        let numbers = (1..=keys.len()).map(|number| number.to_string().into_bytes());
        let arguments = words.into_iter().chain([places]).chain(numbers).chain(extras);
        self.add.call(&all, arguments.collect())
    }

    /// Reads the reply to [`Calls::add`] for `count` keys. Returns true for each new key. Returns
    /// `None` if Redis has no definition of the filter: then the caller must send
    /// [`Calls::define`] and repeat the call.
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

    /// Returns pipelines that test keys. Each pipeline comes with the number of replies for each of
    /// its keys.
    pub(super) fn ask(&self, keys: &[Fingerprint]) -> Result<Vec<(Pipeline, Vec<usize>)>, Error> {
        let id = |pipeline: &mut Pipeline| {
            pipeline.cmd("HGET").arg(definition::key(&self.key)).arg("id");
        };
        let unplaced = |why| Error::new(ErrorKind::Placement, format!("the key {why}"));
        ask(&self.filter, keys, id).map_err(unplaced)
    }

    /// Reads the replies to a pipeline of [`Calls::ask`]. Returns true for each seen key.
    pub(super) fn asked(
        &self,
        counts: &[usize],
        replies: &[RedisResult<Value>],
    ) -> RedisResult<Result<Vec<bool>, Error>> {
        let (defined, rest) = match replies {
            [defined, rest @ ..] => (defined.clone()?, rest),
            [] => (Value::Nil, replies),
        };
        // If Redis has no definition of the filter, the filter is empty, and no key is seen.
        let id = Option::<String>::from_redis_value(defined)?;
        if id.is_some_and(|id| id != self.definition.id.to_string()) {
            return Ok(Err(self.replaced()));
        }
        let verdicts = verdicts(&self.filter, counts, rest)?;
        Ok(Ok(verdicts.into_iter().map(|verdict| verdict == Verdict::Seen).collect()))
    }

    /// Returns the command that deletes the filter and its definition.
    pub(super) fn delete(&self) -> Call {
        let mut command = redis::cmd("UNLINK");
        command.arg(definition::key(&self.key)).arg(self.filter.all().collect::<Vec<_>>());
        command.into()
    }

    /// Returns the parameters of the filter.
    pub(super) fn parameters(&self) -> &Parameters {
        &self.definition.spec.parameters
    }

    /// Returns the size and the error rate of the empty filter.
    pub(super) fn outlook(&self) -> Outlook {
        self.filter.kind().outlook(0)
    }

    /// Makes the error for a filter that another program keeps deleting. Each time the client has
    /// defined the filter, the other program deletes it again.
    pub(super) fn unsteady(&self) -> Error {
        let key = &self.key;
        let text = format!(
            "another program repeatedly deletes the filter {key} in Redis; stop that program"
        );
        Error::new(ErrorKind::Mismatch, text)
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

fn found(key: &str, reply: Value) -> Result<Definition, Error> {
    let fields = BTreeMap::<String, String>::from_redis_value(reply);
    let found = fields.ok().and_then(|fields| Definition::found(&fields).ok().flatten());
    found.ok_or_else(|| {
        let key = definition::key(key);
        let text =
            format!("{key} in Redis is not what urlseen writes; find the program that changed it");
        Error::new(ErrorKind::Mismatch, text)
    })
}
