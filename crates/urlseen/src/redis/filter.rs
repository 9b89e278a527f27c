//! Filter in Redis, for threads.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use redis::{Connection, Pipeline, RedisResult, Value};

use super::RedisOptions;
use super::address::Address;
use super::calls::Calls;
use super::link::Link;
use crate::{Error, Filter, FilterSpec};
use urlseen_fingerprint::Fingerprint;

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
    calls: Calls,
    link: Mutex<Link>,
    /// Number of calls so far that added keys.
    number: AtomicU64,
}

/// Maximum number of times that a call defines the filter again after another program deleted it.
pub(super) const DEFINED: usize = 5;

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
        let wanted = Calls::wanted(key, spec)?;
        let address = Address::parse(url)?;
        let mut link = Link::new(address.for_key(key), options);
        let calls = wanted.opened(spec, link.call(&wanted.define())?)?;
        calls.check_slots(&address)?;
        Ok(Self { calls, link: Mutex::new(link), number: AtomicU64::new(0) })
    }

    /// Returns the number of keys that the filter is made for; 0 for a set, which has no capacity.
    pub fn capacity(&self) -> u64 {
        self.calls.parameters().capacity().unwrap_or(0)
    }

    /// Returns the error rate that the filter is made for. It has this rate when it is full.
    pub fn full_error_rate(&self) -> f64 {
        self.calls.parameters().field("filter.error_rate").unwrap_or(0.0)
    }

    fn link(&self) -> MutexGuard<'_, Link> {
        // A panic of another thread does no harm: a connection that was interrupted during a call
        // is never used again (`Link::ask`).
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_part(&self, link: &mut Link, keys: &[Fingerprint]) -> Result<Vec<bool>, Error> {
        let add = self.calls.add(0, self.number.fetch_add(1, Relaxed), keys);
        for _ in 0..DEFINED {
            let reply = link.call(&add)?;
            if let Some(is_new) = self.calls.added(keys.len(), reply)? {
                return Ok(is_new);
            }
            self.calls.defined(link.call(&self.calls.define())?)?;
        }
        Err(self.calls.unsteady())
    }
}

impl Filter for RedisFilter {
    fn add_all(&self, keys: &[Fingerprint]) -> Result<Vec<bool>, Error> {
        let (firsts, is_first) = self.calls.firsts(keys)?;
        let mut is_new = Vec::with_capacity(firsts.len());
        let mut link = self.link();
        for part in firsts.chunks(self.calls.filter.most_judged()) {
            is_new.extend(self.add_part(&mut link, part)?);
        }
        let mut is_new = is_new.into_iter();
        Ok(is_first.into_iter().map(|is_first| is_first && is_new.next() == Some(true)).collect())
    }

    fn test_all(&self, keys: &[Fingerprint]) -> Result<Vec<bool>, Error> {
        let mut seen = Vec::with_capacity(keys.len());
        let mut link = self.link();
        for (pipeline, counts) in self.calls.ask(keys)? {
            let ask = |pipeline: &Pipeline, connection: &mut Connection| {
                let replies: Vec<RedisResult<Value>> = pipeline.query(connection)?;
                self.calls.asked(&counts, &replies)
            };
            let asked = link.ask(|to| ask(&pipeline, to))?;
            seen.extend(asked?);
        }
        Ok(seen)
    }

    fn keys(&self) -> Vec<String> {
        self.calls.filter.all().collect()
    }

    fn bits(&self) -> u64 {
        self.calls.outlook().bits
    }

    fn hashes(&self) -> u32 {
        self.calls.outlook().hashes
    }

    fn delete(&self) -> Result<(), Error> {
        self.link().call(&self.calls.delete()).map(drop)
    }
}

/// Formats the filter without its address, because the address may contain a password.
impl fmt::Debug for RedisFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisFilter").field("calls", &self.calls).finish_non_exhaustive()
    }
}
