//! Filter in Redis, for tasks.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, RedisResult, Value};

use super::RedisOptions;
use super::calls::{Calls, Wanted, firsts};
use super::filter::DEFINED;
use super::link::{client, is_unknown_script};
use super::patience::Patience;
use crate::{AsyncFilter, Error, FilterFuture, FilterSpec};
use urlseen_core::fingerprint::Fingerprint;

/// [`RedisFilter`](crate::RedisFilter) for tasks on tokio. All tasks share one connection, on which
/// any number of calls can be under way.
///
/// ```no_run
/// use urlseen::{AsyncFilterExt, AsyncRedisFilter, FilterSpec, Kind};
///
/// # async fn example() -> Result<(), urlseen::Error> {
/// let spec = FilterSpec::new(Kind::PYREBLOOM).capacity(10_000_000).error_rate(1e-6);
/// let seen = AsyncRedisFilter::open("redis://127.0.0.1/", "bf:crawl", &spec).await?;
/// assert!(seen.add("hello").await?);
/// # Ok(())
/// # }
/// ```
pub struct AsyncRedisFilter {
    calls: Calls,
    client: Client,
    options: RedisOptions,
    /// The connection, if there is one, and its number.
    connection: tokio::sync::Mutex<(u64, Option<MultiplexedConnection>)>,
    /// Number of calls so far.
    number: AtomicU64,
    slots: Slots,
}

impl AsyncRedisFilter {
    /// Opens the filter named `key` at an address: see
    /// [`RedisFilter::open`](crate::RedisFilter::open).
    ///
    /// # Errors
    /// The same errors as [`RedisFilter::open`](crate::RedisFilter::open).
    pub async fn open(url: &str, key: &str, spec: &FilterSpec) -> Result<Self, Error> {
        Self::open_with(url, key, spec, RedisOptions::default()).await
    }

    /// Opens a filter with other timeouts or retries.
    ///
    /// # Errors
    /// The same errors as [`AsyncRedisFilter::open`].
    pub async fn open_with(
        url: &str,
        key: &str,
        spec: &FilterSpec,
        options: RedisOptions,
    ) -> Result<Self, Error> {
        let wanted = Wanted::new(key, spec)?;
        let client = client(url)?;
        let define = wanted.define();
        let mut patience = Patience::new(options.retries);
        let (connection, reply) = loop {
            let asked = async {
                let mut connection = connect(&client, &options).await?;
                let reply: Value = define.query_async(&mut connection).await?;
                RedisResult::Ok((connection, reply))
            };
            match asked.await {
                Ok(asked) => break asked,
                Err(error) => tokio::time::sleep(patience.after(&error)?).await,
            }
        };
        Ok(Self {
            calls: wanted.defined(reply)?,
            client,
            options,
            connection: tokio::sync::Mutex::new((0, Some(connection))),
            number: AtomicU64::new(0),
            slots: Slots::default(),
        })
    }

    /// Makes a call, and repeats it on a new connection if it fails.
    async fn ask<T, Asked>(
        &self,
        ask: impl Fn(MultiplexedConnection) -> Asked + Send,
    ) -> Result<T, Error>
    where
        T: Send,
        Asked: Future<Output = RedisResult<T>> + Send,
    {
        let mut patience = Patience::new(self.options.retries);
        loop {
            let asked = match self.connected().await {
                Ok((which, connection)) => match ask(connection).await {
                    Err(error) => {
                        self.disconnected(which).await;
                        Err(error)
                    }
                    answer => answer,
                },
                Err(error) => Err(error),
            };
            match asked {
                Ok(answer) => return Ok(answer),
                Err(error) => tokio::time::sleep(patience.after(&error)?).await,
            }
        }
    }

    /// Returns the connection, and opens it if there is none. Only one task at a time opens it.
    async fn connected(&self) -> RedisResult<(u64, MultiplexedConnection)> {
        let mut shared = self.connection.lock().await;
        let (which, connection) = &mut *shared;
        let connection = match connection {
            Some(connection) => connection,
            none => {
                *which += 1;
                none.insert(connect(&self.client, &self.options).await?)
            }
        };
        Ok((*which, connection.clone()))
    }

    /// Drops a connection that failed, unless another task has replaced it.
    async fn disconnected(&self, which: u64) {
        let mut shared = self.connection.lock().await;
        if shared.0 == which {
            shared.1 = None;
        }
    }

    async fn add_part(&self, keys: &[Fingerprint]) -> Result<Vec<bool>, Error> {
        let slot = self.slots.take();
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let add = self.calls.add(slot.number, number, keys);
        for _ in 0..DEFINED {
            let reply = self.ask(|connection| self.with_script(&add, connection)).await?;
            if let Some(is_new) = self.calls.added(keys.len(), reply)? {
                return Ok(is_new);
            }
            let define = &self.calls.define();
            let reply = self.ask(|mut connection| async move {
                define.query_async::<Value>(&mut connection).await
            });
            self.calls.defined(reply.await?)?;
        }
        Err(self.calls.unsteady())
    }

    /// Sends a call. If the server does not know the script, loads the script first.
    async fn with_script(
        &self,
        call: &Cmd,
        mut connection: MultiplexedConnection,
    ) -> RedisResult<Value> {
        match call.query_async(&mut connection).await {
            Err(error) if is_unknown_script(&error) => {
                self.calls.load().query_async::<()>(&mut connection).await?;
                call.query_async(&mut connection).await
            }
            reply => reply,
        }
    }
}

async fn connect(client: &Client, options: &RedisOptions) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(options.connect_timeout))
        .set_response_timeout(Some(options.response_timeout));
    client.get_multiplexed_async_connection_with_config(&config).await
}

/// Slots: Redis keys for the answers of calls. One slot serves one call at a time, so the number of
/// slots is the highest number of concurrent calls so far.
#[derive(Debug, Default)]
struct Slots(Mutex<(usize, Vec<usize>)>);

#[derive(Debug)]
struct Slot<'a> {
    slots: &'a Slots,
    number: usize,
}

impl Slots {
    fn take(&self) -> Slot<'_> {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, free) = &mut *slots;
        let number = free.pop().unwrap_or_else(|| {
            *count += 1;
            *count - 1
        });
        Slot { slots: self, number }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut slots = self.slots.0.lock().unwrap_or_else(PoisonError::into_inner);
        slots.1.push(self.number);
    }
}

impl AsyncFilter for AsyncRedisFilter {
    fn add_all<'a>(&'a self, keys: &'a [Fingerprint]) -> FilterFuture<'a, Vec<bool>> {
        Box::pin(async move {
            let (firsts, is_first) = firsts(keys);
            self.calls.check(&firsts)?;
            let mut is_new = Vec::with_capacity(firsts.len());
            for part in self.calls.parts(&firsts) {
                is_new.extend(self.add_part(part).await?);
            }
            let mut is_new = is_new.into_iter();
            let of = |is_first| is_first && is_new.next() == Some(true);
            Ok(is_first.into_iter().map(of).collect())
        })
    }

    fn test_all<'a>(&'a self, keys: &'a [Fingerprint]) -> FilterFuture<'a, Vec<bool>> {
        Box::pin(async move {
            let mut seen = Vec::with_capacity(keys.len());
            for (pipeline, counts) in self.calls.ask(keys)? {
                let (pipeline, counts) = (&pipeline, &counts);
                let asked = self.ask(|mut connection| async move {
                    let replies: Vec<RedisResult<Value>> =
                        pipeline.query_async(&mut connection).await?;
                    self.calls.asked(counts, &replies)
                });
                seen.extend(asked.await??);
            }
            Ok(seen)
        })
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

    fn delete(&self) -> FilterFuture<'_, ()> {
        Box::pin(async {
            let delete = &self.calls.delete();
            self.ask(|mut connection| async move { delete.query_async(&mut connection).await })
                .await
        })
    }
}

/// Omits the address, which may contain a password.
impl fmt::Debug for AsyncRedisFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncRedisFilter").field("calls", &self.calls).finish_non_exhaustive()
    }
}
