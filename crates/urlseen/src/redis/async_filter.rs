//! Filter in Redis, for tasks.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisResult, Value};

use super::RedisOptions;
use super::address::Address;
use super::blocking_search::PrimaryWatch;
use super::calls::Calls;
use super::filter::DEFINED;
use super::link::{Patience, is_unknown_script};
use crate::{AsyncFilter, Error, FilterFuture, FilterSpec};
use urlseen_fingerprint::Fingerprint;
use urlseen_redis::protocol::Call;

/// Filter in Redis for tasks on tokio. Many processes can share the filter.
///
/// The filter is the same as a [`RedisFilter`](crate::RedisFilter), but its calls return futures.
/// All tasks share one connection, on which any number of calls can be under way.
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
    link: AsyncLink,
    /// Number of calls so far that added keys.
    number: AtomicU64,
    slots: Slots,
}

impl AsyncRedisFilter {
    /// Opens the filter with the name `key` on the server at `url`: see
    /// [`RedisFilter::open`](crate::RedisFilter::open).
    ///
    /// # Errors
    /// The same errors as [`RedisFilter::open`](crate::RedisFilter::open).
    pub async fn open(url: &str, key: &str, spec: &FilterSpec) -> Result<Self, Error> {
        Self::open_with(url, key, spec, RedisOptions::default()).await
    }

    /// Opens a filter with the timeouts and retries of `options`: see [`AsyncRedisFilter::open`].
    ///
    /// # Errors
    /// The same errors as [`AsyncRedisFilter::open`].
    pub async fn open_with(
        url: &str,
        key: &str,
        spec: &FilterSpec,
        options: RedisOptions,
    ) -> Result<Self, Error> {
        let wanted = Calls::wanted(key, spec)?;
        let address = Address::parse(url)?;
        let link = AsyncLink::new(address.for_key(key), options);
        let calls = wanted.opened(spec, link.call(&wanted.define()).await?)?;
        calls.check_slots(&address)?;
        Ok(Self { calls, link, number: AtomicU64::new(0), slots: Slots::default() })
    }

    async fn add_part(&self, keys: &[Fingerprint]) -> Result<Vec<bool>, Error> {
        let slot = self.slots.take();
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let add = self.calls.add(slot.number, number, keys);
        for _ in 0..DEFINED {
            let reply = self.link.call(&add).await?;
            if let Some(is_new) = self.calls.added(keys.len(), reply)? {
                return Ok(is_new);
            }
            self.calls.defined(self.link.call(&self.calls.define()).await?)?;
        }
        Err(self.calls.unsteady())
    }
}

/// Pool of slots. Each slot is a Redis key for the answers of calls. One slot serves one call at a
/// time, so the number of slots is the highest number of concurrent calls so far.
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
            let (firsts, is_first) = self.calls.firsts(keys)?;
            let mut is_new = Vec::with_capacity(firsts.len());
            for part in firsts.chunks(self.calls.filter.most_judged()) {
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
                let asked = self.link.ask(|mut connection| async move {
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
        self.calls.filter.all().collect()
    }

    fn bits(&self) -> u64 {
        self.calls.outlook().bits
    }

    fn hashes(&self) -> u32 {
        self.calls.outlook().hashes
    }

    fn delete(&self) -> FilterFuture<'_, ()> {
        Box::pin(async { self.link.call(&self.calls.delete()).await.map(drop) })
    }
}

/// Formats the filter without its address, because the address may contain a password.
impl fmt::Debug for AsyncRedisFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncRedisFilter").field("calls", &self.calls).finish_non_exhaustive()
    }
}

/// Address of Redis, and the connection that all tasks share.
struct AsyncLink {
    address: Address,
    options: RedisOptions,
    /// Number of connections that were opened so far, and the open connection, if one is open.
    connection: tokio::sync::Mutex<(u64, Option<Watched>)>,
}

/// Connection, with its watch if it is to a primary that Sentinels have named.
type Watched = (MultiplexedConnection, Option<PrimaryWatch>);

impl AsyncLink {
    /// Stores the address. Opens no connection yet.
    fn new(address: Address, options: RedisOptions) -> Self {
        Self { address, options, connection: tokio::sync::Mutex::new((0, None)) }
    }

    /// Makes a call that is safe to repeat.
    async fn call(&self, call: &Call) -> Result<Value, Error> {
        let ask = |mut connection| async move {
            match call.command(false).query_async(&mut connection).await {
                Err(error) if is_unknown_script(&error) => {
                    call.by_text().query_async(&mut connection).await
                }
                reply => reply,
            }
        };
        self.ask(ask).await
    }

    /// Makes a call. If the call fails, repeats the call on a new connection.
    async fn ask<T, Asked>(
        &self,
        ask: impl Fn(MultiplexedConnection) -> Asked + Send,
    ) -> Result<T, Error>
    where
        T: Send,
        Asked: Future<Output = RedisResult<T>> + Send,
    {
        let mut patience = Patience::new(self.options.retries, self.address.is_cluster());
        loop {
            let asked = match self.connected().await {
                Ok((which, connection)) => {
                    let answer = ask(connection).await;
                    if answer.is_err() {
                        self.disconnected(which).await;
                    }
                    answer
                }
                Err(error) => Err(error),
            };
            match asked {
                Ok(answer) => return Ok(answer),
                Err(error) => tokio::time::sleep(patience.after(&error)?).await,
            }
        }
    }

    /// Returns the open connection and its number. If no connection is open, opens one, while other
    /// tasks wait for it.
    async fn connected(&self) -> RedisResult<(u64, MultiplexedConnection)> {
        let mut shared = self.connection.lock().await;
        let (which, connection) = &mut *shared;
        if let Some((_, watch)) = connection
            && let Some(mut old) = watch.take_if(|watch| watch.is_due())
        {
            let options = self.options;
            let asked = blocking(move || (old.is_over(&options), old)).await?;
            let (is_over, old) = asked;
            *watch = Some(old);
            if is_over {
                *connection = None;
            }
        }
        let (connection, _) = match connection {
            Some(connection) => connection,
            none => {
                *which += 1;
                none.insert(self.connect().await?)
            }
        };
        Ok((*which, connection.clone()))
    }

    /// Drops a failed connection, unless another task has already replaced it.
    async fn disconnected(&self, which: u64) {
        let mut shared = self.connection.lock().await;
        if shared.0 == which {
            shared.1 = None;
        }
    }

    async fn connect(&self) -> RedisResult<Watched> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.options.connect_timeout))
            .set_response_timeout(Some(self.options.response_timeout));
        let (address, options) = (self.address.clone(), self.options);
        let (client, watch) = blocking(move || address.find(&options)).await??;
        Ok((client.get_multiplexed_async_connection_with_config(&config).await?, watch))
    }
}

/// Runs a search for a server on a thread for blocking calls.
async fn blocking<T: Send + 'static>(
    search: impl FnOnce() -> T + Send + 'static,
) -> RedisResult<T> {
    Ok(tokio::task::spawn_blocking(search).await.map_err(std::io::Error::other)?)
}
