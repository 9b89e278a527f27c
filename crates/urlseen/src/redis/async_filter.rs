//! Filter in Redis, for tasks.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use redis::{RedisResult, Value};

use super::RedisOptions;
use super::address::Address;
use super::async_link::AsyncLink;
use super::calls::{Calls, Wanted, firsts};
use super::filter::DEFINED;
use crate::{AsyncFilter, Error, FilterFuture, FilterSpec};
use urlseen_core::fingerprint::Fingerprint;

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
        let wanted = Wanted::new(key, spec)?;
        let address = Address::parse(url)?;
        let link = AsyncLink::new(address.for_key(key), options);
        let calls = wanted.defined(link.query(&wanted.define()).await?)?;
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
            self.calls.defined(self.link.query(&self.calls.define()).await?)?;
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
        self.calls.filter().all().collect()
    }

    fn bits(&self) -> u64 {
        self.calls.outlook().bits
    }

    fn hashes(&self) -> u32 {
        self.calls.outlook().hashes
    }

    fn delete(&self) -> FilterFuture<'_, ()> {
        Box::pin(async { self.link.query(&self.calls.delete()).await })
    }
}

/// Formats the filter without its address, because the address may contain a password.
impl fmt::Debug for AsyncRedisFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncRedisFilter").field("calls", &self.calls).finish_non_exhaustive()
    }
}
