//! Filter in Redis, for tasks.

use std::io;
use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use super::{RedisFilter, RedisOptions};
use crate::{AsyncFilter, Error, ErrorKind, Filter, FilterFuture, FilterSpec};
use urlseen_core::fingerprint::Fingerprint;

/// Filter in Redis for tasks on tokio. Many processes can share the filter.
///
/// The filter is the same as a [`RedisFilter`](crate::RedisFilter), but its calls return futures.
/// The calls of all tasks take turns on one connection, on a thread for blocking calls.
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
#[derive(Debug)]
pub struct AsyncRedisFilter {
    filter: Arc<RedisFilter>,
    /// Held during a call, so that waiting tasks take no threads.
    turn: Mutex<()>,
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
        Ok(Self { filter: Arc::new(filter), turn: Mutex::new(()) })
    }

    async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&RedisFilter) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let _turn = self.turn.lock().await;
        let filter = Arc::clone(&self.filter);
        blocking(move || call(&filter)).await
    }
}

/// Runs a call on a thread for blocking calls.
async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let failed = |error| Error::new(ErrorKind::Redis, io::Error::other(error));
    spawn_blocking(call).await.map_err(failed)?
}

impl AsyncFilter for AsyncRedisFilter {
    fn add_all<'a>(&'a self, keys: &'a [Fingerprint]) -> FilterFuture<'a, Vec<bool>> {
        let keys = keys.to_vec();
        Box::pin(self.call(move |filter| filter.add_all(&keys)))
    }

    fn test_all<'a>(&'a self, keys: &'a [Fingerprint]) -> FilterFuture<'a, Vec<bool>> {
        let keys = keys.to_vec();
        Box::pin(self.call(move |filter| filter.test_all(&keys)))
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
        Box::pin(self.call(Filter::delete))
    }
}
