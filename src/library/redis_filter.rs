//! A filter in Redis, for threads that wait.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redis::{Client, Cmd, Connection, ConnectionLike as _, ErrorKind as Kind, RedisResult, Value};
use redis::{Pipeline, ServerErrorKind};

use super::calls::{Calls, Said, Wanted, firsts};
use super::patience::Patience;
use super::{Error, ErrorKind, Filter, Layout, RedisOptions};
use crate::fingerprint::Fingerprint;

/// A filter in Redis, which many processes share: those of this crate, the `urlseen` daemon with
/// `filter.store = "redis"`, and the programs of the project whose [`Layout`] it has.
///
/// Keys are tested and set in one script, so of those who add the same key at once one is told that
/// it is new. Where the connection is lost, the same is asked again on a new one, a bounded number
/// of times ([`RedisOptions::retries`]); what was added the first time is still new then.
///
/// Needs Redis 6.2 or later, or Valkey.
///
/// ```no_run
/// use urlseen::{Filter, Layout, RedisFilter};
///
/// let layout = Layout::Native { capacity: 10_000_000, error_rate: 1e-6 };
/// let seen = RedisFilter::open("redis://127.0.0.1/", "demo:filter", layout)?;
/// assert_eq!(seen.extend(["a", "b", "a"])?, [true, true, false]);
/// # Ok::<(), urlseen::Error>(())
/// ```
pub struct RedisFilter {
    calls: Calls,
    client: Client,
    options: RedisOptions,
    link: Mutex<Link>,
}

/// How often a filter is defined again that somebody deletes at once.
pub(super) const DEFINED: usize = 5;

/// The connection, while there is one.
#[derive(Default)]
struct Link {
    connection: Option<Connection>,
    /// How many calls were made.
    calls: u64,
}

impl RedisFilter {
    /// Opens the filter that is named after `key` at this address (`redis://`, `unix://`, and with
    /// the feature `tls` also `rediss://`). It is made where there is none.
    ///
    /// # Errors
    /// There is another one, or none can be what was asked for; Redis is not there.
    pub fn open(url: &str, key: &str, layout: Layout) -> Result<Self, Error> {
        Self::open_with(url, key, layout, RedisOptions::default())
    }

    /// The same with options.
    ///
    /// # Errors
    /// As [`RedisFilter::open`].
    pub fn open_with(
        url: &str,
        key: &str,
        layout: Layout,
        options: RedisOptions,
    ) -> Result<Self, Error> {
        let wanted = Wanted::new(key, layout, &options)?;
        let client = client(url)?;
        let mut link = Link::default();
        let define = wanted.define();
        let reply = link.ask(&client, &options, |connection| define.query(connection))?;
        let calls = wanted.defined(reply)?;
        Ok(Self { calls, client, options, link: Mutex::new(link) })
    }

    fn link(&self) -> MutexGuard<'_, Link> {
        // A connection in the middle of something is not used again: see `Link::ask`.
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_part(&self, link: &mut Link, keys: &[Fingerprint]) -> Result<Vec<bool>, Error> {
        link.calls += 1;
        let add = self.calls.add(0, link.calls, keys);
        for _ in 0..DEFINED {
            let reply = link.ask(&self.client, &self.options, |connection| {
                self.with_script(&add, connection)
            })?;
            match self.calls.added(keys.len(), reply)? {
                Said::Answer(is_new) => return Ok(is_new),
                Said::Undefined => {
                    let define = self.calls.define();
                    let reply =
                        link.ask(&self.client, &self.options, |to| define.query::<Value>(to))?;
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

impl Link {
    /// Asks, on a new connection where there is none or it fails.
    fn ask<T>(
        &mut self,
        client: &Client,
        options: &RedisOptions,
        ask: impl Fn(&mut Connection) -> RedisResult<T>,
    ) -> Result<T, Error> {
        let mut patience = Patience::new(options.retries);
        loop {
            // Taken out while it is used: one that panics or fails is not used again.
            let asked = match self.connection.take() {
                Some(connection) => Ok(connection),
                None => connect(client, options),
            };
            let asked = asked.and_then(|mut connection| {
                let answer = ask(&mut connection)?;
                Ok((connection, answer))
            });
            match asked {
                Ok((connection, answer)) => {
                    self.connection = Some(connection).filter(Connection::is_open);
                    return Ok(answer);
                }
                Err(error) => std::thread::sleep(patience.after(&error)?),
            }
        }
    }
}

fn connect(client: &Client, options: &RedisOptions) -> RedisResult<Connection> {
    let connection = client.get_connection_with_timeout(options.connect_timeout)?;
    connection.set_read_timeout(Some(options.response_timeout))?;
    connection.set_write_timeout(Some(options.response_timeout))?;
    Ok(connection)
}

/// A client for an address, which is not named in the error: it may hold a password.
pub(super) fn client(url: &str) -> Result<Client, Error> {
    Client::open(url).map_err(|error| {
        let text = format!("the address of Redis is none: {error}");
        Error::new(ErrorKind::Unbuildable, text)
    })
}

/// Whether a server does not know the script that was called.
pub(super) fn is_unknown_script(error: &redis::RedisError) -> bool {
    error.kind() == Kind::Server(ServerErrorKind::NoScript)
}

impl Filter for RedisFilter {
    fn extend<K: Into<Fingerprint>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<bool>, Error> {
        let (firsts, is_first) = firsts(keys.into_iter().map(Into::into).collect());
        self.calls.check(&firsts)?;
        let mut is_new = Vec::with_capacity(firsts.len());
        let mut link = self.link();
        for part in self.calls.parts(&firsts) {
            is_new.extend(self.add_part(&mut link, part)?);
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
        let mut link = self.link();
        for (pipeline, counts) in self.calls.ask(&keys)? {
            let ask = |pipeline: &Pipeline, connection: &mut Connection| {
                let replies: Vec<RedisResult<Value>> = pipeline.query(connection)?;
                self.calls.asked(&counts, &replies)
            };
            let asked = link.ask(&self.client, &self.options, |to| ask(&pipeline, to))?;
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
        self.link().ask(&self.client, &self.options, |connection| delete.query(connection))
    }
}

/// Without the address, which may hold a password.
impl fmt::Debug for RedisFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisFilter").field("calls", &self.calls).finish_non_exhaustive()
    }
}
