//! Traits for asynchronous tasks: the trait that all filters implement, and a trait with methods
//! for keys of any type.

use std::future::{Future, ready};
use std::pin::Pin;

use super::filter::fingerprints;
use super::{Error, ExactFilter, Filter, LocalFilter};
use urlseen_fingerprint::Fingerprint;

/// Future of a call to an [`AsyncFilter`].
pub type FilterFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Filter for asynchronous tasks, which must not block a thread. Each call returns a future.
///
/// The methods are those of [`Filter`]. [`AsyncFilterExt`] has methods for keys of any type. Tasks
/// share a filter as `Arc<dyn AsyncFilter>`, and many calls may be under way at the same time.
///
/// The future of a [`LocalFilter`] is ready at once. If the filter has a folder, the call itself
/// first writes to the log of the folder. Tests can use an [`ExactFilter`].
///
/// If a program drops a future before it is ready, the keys of the call may have been added.
///
/// ```
/// use urlseen::{AsyncFilter, AsyncFilterExt, Error, ExactFilter};
///
/// async fn discovered(seen: &dyn AsyncFilter, link: &str) -> Result<(), Error> {
///     if seen.add(link).await? {
///         // Fetch it.
///     }
///     Ok(())
/// }
/// # tokio::runtime::Builder::new_current_thread().build().unwrap()
/// #     .block_on(discovered(&ExactFilter::new(), "https://example.com/"))?;
/// # Ok::<(), Error>(())
/// ```
pub trait AsyncFilter: Send + Sync {
    /// Adds keys. Returns one value for each key, in the order of `keys`: true if the key is new.
    /// [`Filter::add_all`] describes the details.
    ///
    /// # Errors
    /// The same errors as [`Filter::add_all`].
    fn add_all<'a>(&'a self, keys: &'a [Fingerprint]) -> FilterFuture<'a, Vec<bool>>;

    /// Tests keys without adding them. Returns one value for each key, in the order of `keys`: true
    /// if the key is seen.
    ///
    /// # Errors
    /// The same errors as [`Filter::test_all`].
    fn test_all<'a>(&'a self, keys: &'a [Fingerprint]) -> FilterFuture<'a, Vec<bool>>;

    /// Returns the names of all Redis keys of the filter: see [`Filter::keys`].
    fn keys(&self) -> Vec<String>;

    /// Returns the number of bits of the filter. For a kind that stores keys, the number is 0.
    fn bits(&self) -> u64;

    /// Returns the number of bits that a key sets. For a kind that stores keys, the number is 0.
    fn hashes(&self) -> u32;

    /// Deletes all keys permanently. The empty filter can still be used.
    ///
    /// # Errors
    /// The same errors as [`Filter::delete`].
    fn delete(&self) -> FilterFuture<'_, ()>;
}

/// Methods that each [`AsyncFilter`] has for keys of any type, such as texts and fingerprints. The
/// methods are those of [`FilterExt`](crate::FilterExt).
///
/// ```
/// use urlseen::{AsyncFilterExt, Error, FilterSpec, LocalFilter};
///
/// # async fn example() -> Result<(), Error> {
/// let filter = LocalFilter::new(&FilterSpec::native(1_000_000, 1e-6))?;
/// assert_eq!(filter.extend(["a", "b", "a"]).await?, [true, true, false]);
/// assert!(filter.contains("b").await?);
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example())?;
/// # Ok::<(), Error>(())
/// ```
pub trait AsyncFilterExt: AsyncFilter {
    /// Adds keys of any type. Returns one value for each key, in the order of `keys`: true if the
    /// key is new. [`Filter::add_all`] describes the details.
    ///
    /// # Errors
    /// The same errors as [`Filter::add_all`].
    fn extend<K: Into<Fingerprint>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> impl Future<Output = Result<Vec<bool>, Error>> + Send {
        let keys = fingerprints(keys);
        async move { self.add_all(&keys).await }
    }

    /// Tests keys of any type without adding them. Returns one value for each key, in the order of
    /// `keys`: true if the key is seen.
    ///
    /// # Errors
    /// The same errors as [`Filter::test_all`].
    fn contains_all<K: Into<Fingerprint>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> impl Future<Output = Result<Vec<bool>, Error>> + Send {
        let keys = fingerprints(keys);
        async move { self.test_all(&keys).await }
    }

    /// Adds one key of any type. Returns true if the key is new.
    ///
    /// # Errors
    /// The same errors as [`Filter::add_all`].
    fn add(&self, key: impl Into<Fingerprint>) -> impl Future<Output = Result<bool, Error>> + Send {
        let added = self.extend([key]);
        async { Ok(added.await? == [true]) }
    }

    /// Tests one key of any type without adding it. Returns true if the key is seen.
    ///
    /// # Errors
    /// The same errors as [`Filter::test_all`].
    fn contains(
        &self,
        key: impl Into<Fingerprint>,
    ) -> impl Future<Output = Result<bool, Error>> + Send {
        let tested = self.contains_all([key]);
        async { Ok(tested.await? == [true]) }
    }
}

impl<F: AsyncFilter + ?Sized> AsyncFilterExt for F {}

/// Implements [`AsyncFilter`] for filters whose futures are ready at once.
macro_rules! ready_at_once {
    ($($Filter:ident),+) => { $(
        impl AsyncFilter for $Filter {
            fn add_all<'a>(&'a self, keys: &'a [Fingerprint]) -> FilterFuture<'a, Vec<bool>> {
                Box::pin(ready(Filter::add_all(self, keys)))
            }

            fn test_all<'a>(&'a self, keys: &'a [Fingerprint]) -> FilterFuture<'a, Vec<bool>> {
                Box::pin(ready(Filter::test_all(self, keys)))
            }

            fn keys(&self) -> Vec<String> {
                Filter::keys(self)
            }

            fn bits(&self) -> u64 {
                Filter::bits(self)
            }

            fn hashes(&self) -> u32 {
                Filter::hashes(self)
            }

            fn delete(&self) -> FilterFuture<'_, ()> {
                Box::pin(ready(Filter::delete(self)))
            }
        }
    )+ };
}

ready_at_once!(ExactFilter, LocalFilter);
