//! Filter in Redis, for tasks.

use std::fmt;
use std::sync::Arc;

use tokio::sync::Semaphore;

use super::RedisOptions;
use super::filter::RedisFilter;
use crate::{AsyncFilter, Error, ErrorKind, Filter, FilterFuture, FilterSpec};
use urlseen_fingerprint::Fingerprint;

/// Maximum number of calls of a filter that are under way.
const CALLS: usize = 32;

/// Filter in Redis for tasks on tokio. Many processes can share the filter.
///
/// The filter is the same as a [`RedisFilter`](crate::RedisFilter), but its calls return futures.
/// Each call runs on a thread for blocking calls, over a connection that no other call uses
/// meanwhile. At most 32 calls are under way, and later ones wait. If a program drops a future, its
/// call still runs to its end.
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
    filter: Arc<RedisFilter>,
    calls: Arc<Semaphore>,
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
        let (url, key, spec) = (url.to_owned(), key.to_owned(), spec.clone());
        let filter = blocking(move || RedisFilter::open_with(&url, &key, &spec, options)).await?;
        Ok(Self { filter: Arc::new(filter), calls: Arc::new(Semaphore::new(CALLS)) })
    }

    /// Makes a call of the filter, once fewer than the maximum number of calls are under way.
    fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&RedisFilter) -> Result<T, Error> + Send + 'static,
    ) -> FilterFuture<'_, T> {
        Box::pin(async move {
            let permit = Arc::clone(&self.calls).acquire_owned().await;
            let filter = Arc::clone(&self.filter);
            blocking(move || {
                let _permit = permit;
                call(&filter)
            })
            .await
        })
    }
}

impl AsyncFilter for AsyncRedisFilter {
    fn add_all<'a>(&'a self, keys: &'a [Fingerprint]) -> FilterFuture<'a, Vec<bool>> {
        let keys = keys.to_vec();
        self.call(move |filter| filter.add_all(&keys))
    }

    fn test_all<'a>(&'a self, keys: &'a [Fingerprint]) -> FilterFuture<'a, Vec<bool>> {
        let keys = keys.to_vec();
        self.call(move |filter| filter.test_all(&keys))
    }

    fn keys(&self) -> Vec<String> {
        self.filter.keys()
    }

    fn bits(&self) -> u64 {
        self.filter.bits()
    }

    fn hashes(&self) -> u32 {
        self.filter.hashes()
    }

    fn delete(&self) -> FilterFuture<'_, ()> {
        self.call(Filter::delete)
    }
}

impl fmt::Debug for AsyncRedisFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AsyncRedisFilter").field(&self.filter).finish()
    }
}

/// Makes a call on a thread for blocking calls.
async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let called = tokio::task::spawn_blocking(call).await;
    called.unwrap_or_else(|error| Err(Error::new(ErrorKind::Redis, error)))
}
