//! A filter in Redis, for threads that wait.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redis::{Cmd, Connection, Pipeline, RedisResult, Value};

use super::calls::{Calls, Said, Wanted, firsts};
use super::link::{Link, client, is_unknown_script};
use super::{FilterKind, RedisOptions};
use crate::{Error, Filter};
use urlseen_core::fingerprint::Fingerprint;

/// A filter in Redis, which many processes share: those of this crate, the `urlseen` daemon with
/// `filter.place = "redis"`, and the programs of the project whose [`FilterKind`] it has.
///
/// Keys are tested and set in one script, so of those who add the same key at once one is told that
/// it is new. Where the connection is lost, the same is asked again on a new one, a bounded number
/// of times ([`RedisOptions::retries`]); what was added the first time is still new then.
///
/// Needs Redis 6.2 or later, or Valkey.
///
/// ```no_run
/// use urlseen::{Filter, FilterKind, RedisFilter};
///
/// let kind = FilterKind::Native { capacity: 10_000_000, error_rate: 1e-6 };
/// let seen = RedisFilter::open("redis://127.0.0.1/", "demo:filter", kind)?;
/// assert_eq!(seen.extend(["a", "b", "a"])?, [true, true, false]);
/// # Ok::<(), urlseen::Error>(())
/// ```
pub struct RedisFilter {
    calls: Calls,
    asking: Mutex<Asking>,
}

/// How often a filter is defined again that somebody deletes at once.
pub(super) const DEFINED: usize = 5;

/// The connection, and how many calls were made.
struct Asking {
    link: Link,
    calls: u64,
}

impl RedisFilter {
    /// Opens the filter that is named after `key` at this address (`redis://`, `unix://`, and with
    /// the feature `tls` also `rediss://`). It is made where there is none.
    ///
    /// # Errors
    /// There is another one, or none can be what was asked for; Redis is not there.
    pub fn open(url: &str, key: &str, kind: FilterKind) -> Result<Self, Error> {
        Self::open_with(url, key, kind, RedisOptions::default())
    }

    /// The same with options.
    ///
    /// # Errors
    /// As [`RedisFilter::open`].
    pub fn open_with(
        url: &str,
        key: &str,
        kind: FilterKind,
        options: RedisOptions,
    ) -> Result<Self, Error> {
        let wanted = Wanted::new(key, kind, &options)?;
        let link = Link::new(client(url)?, options);
        let mut asking = Asking { link, calls: 0 };
        let define = wanted.define();
        let reply = asking.link.ask(|connection| define.query(connection))?;
        let calls = wanted.defined(reply)?;
        Ok(Self { calls, asking: Mutex::new(asking) })
    }

    fn asking(&self) -> MutexGuard<'_, Asking> {
        // A connection in the middle of something is not used again: see `Link::ask`.
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_part(&self, asking: &mut Asking, keys: &[Fingerprint]) -> Result<Vec<bool>, Error> {
        let Asking { link, calls } = asking;
        *calls += 1;
        let add = self.calls.add(0, *calls, keys);
        for _ in 0..DEFINED {
            let reply = link.ask(|connection| self.with_script(&add, connection))?;
            match self.calls.added(keys.len(), reply)? {
                Said::Answer(is_new) => return Ok(is_new),
                Said::Undefined => {
                    let define = self.calls.define();
                    let reply = link.ask(|to| define.query::<Value>(to))?;
                    self.calls.defined(reply)?;
                }
            }
        }
        Err(self.calls.unsteady())
    }

    /// Teaches the server the script where it does not know it.
    fn with_script(&self, call: &Cmd, connection: &mut Connection) -> RedisResult<Value> {
        match call.query(connection) {
            Err(error) if is_unknown_script(&error) => {
                self.calls.load().query::<()>(connection)?;
                call.query(connection)
            }
            reply => reply,
        }
    }
}

impl Filter for RedisFilter {
    fn extend<K: Into<Fingerprint>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<bool>, Error> {
        let (firsts, is_first) = firsts(keys.into_iter().map(Into::into).collect());
        self.calls.check(&firsts)?;
        let mut is_new = Vec::with_capacity(firsts.len());
        let mut asking = self.asking();
        for part in self.calls.parts(&firsts) {
            is_new.extend(self.add_part(&mut asking, part)?);
        }
        let mut is_new = is_new.into_iter();
        Ok(is_first.into_iter().map(|is_first| is_first && is_new.next() == Some(true)).collect())
    }

    fn contains_all<K: Into<Fingerprint>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<bool>, Error> {
        let keys: Vec<Fingerprint> = keys.into_iter().map(Into::into).collect();
        let mut seen = Vec::with_capacity(keys.len());
        let link = &mut self.asking().link;
        for (pipeline, counts) in self.calls.ask(&keys)? {
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
        self.calls.keys()
    }

    fn bits(&self) -> u64 {
        self.calls.bits()
    }

    fn hashes(&self) -> u32 {
        self.calls.hashes()
    }

    fn delete(&self) -> Result<(), Error> {
        let delete = self.calls.delete();
        self.asking().link.ask(|connection| delete.query(connection))
    }
}

/// Without the address, which may hold a password.
impl fmt::Debug for RedisFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisFilter").field("calls", &self.calls).finish_non_exhaustive()
    }
}
