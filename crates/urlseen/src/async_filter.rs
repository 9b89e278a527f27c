//! A filter for tasks, by its verbs.

use std::future::{Future, ready};

use super::{Error, ExactFilter, Filter, LocalFilter};
use urlseen_core::fingerprint::Fingerprint;

/// [`Filter`] for tasks that must not wait in it: what asks Redis is a future. Tasks share a filter
/// as `Arc<impl AsyncFilter>`, and many questions may be under way at once. A [`LocalFilter`]
/// answers at once (one that is kept writes to its log first); for tests there is [`ExactFilter`].
///
/// A future that is dropped half way may have added its keys or not.
///
/// ```
/// use urlseen::{AsyncFilter, Error, ExactFilter};
///
/// async fn discovered(seen: &impl AsyncFilter, link: &str) -> Result<(), Error> {
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
    /// As [`Filter::extend`].
    ///
    /// # Errors
    /// As there.
    fn extend<K: Into<Fingerprint>>(
        &self,
        keys: impl IntoIterator<Item = K> + Send,
    ) -> impl Future<Output = Result<Vec<bool>, Error>> + Send;

    /// As [`Filter::contains_all`].
    ///
    /// # Errors
    /// As there.
    fn contains_all<K: Into<Fingerprint>>(
        &self,
        keys: impl IntoIterator<Item = K> + Send,
    ) -> impl Future<Output = Result<Vec<bool>, Error>> + Send;

    /// As [`Filter::add`].
    ///
    /// # Errors
    /// As there.
    fn add(
        &self,
        key: impl Into<Fingerprint> + Send,
    ) -> impl Future<Output = Result<bool, Error>> + Send {
        let added = self.extend([key.into()]);
        async { Ok(added.await? == [true]) }
    }

    /// As [`Filter::contains`].
    ///
    /// # Errors
    /// As there.
    fn contains(
        &self,
        key: impl Into<Fingerprint> + Send,
    ) -> impl Future<Output = Result<bool, Error>> + Send {
        let asked = self.contains_all([key.into()]);
        async { Ok(asked.await? == [true]) }
    }

    /// As [`Filter::keys`].
    fn keys(&self) -> Vec<String>;

    /// As [`Filter::bits`].
    fn bits(&self) -> u64;

    /// As [`Filter::hashes`].
    fn hashes(&self) -> u32;

    /// As [`Filter::delete`].
    ///
    /// # Errors
    /// As there.
    fn delete(&self) -> impl Future<Output = Result<(), Error>> + Send;
}

/// Those that never wait are futures that are ready.
macro_rules! ready_at_once {
    ($($Filter:ident),+) => { $(
        impl AsyncFilter for $Filter {
            fn extend<K: Into<Fingerprint>>(
                &self,
                keys: impl IntoIterator<Item = K> + Send,
            ) -> impl Future<Output = Result<Vec<bool>, Error>> + Send {
                ready(Filter::extend(self, keys))
            }

            fn contains_all<K: Into<Fingerprint>>(
                &self,
                keys: impl IntoIterator<Item = K> + Send,
            ) -> impl Future<Output = Result<Vec<bool>, Error>> + Send {
                ready(Filter::contains_all(self, keys))
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

            fn delete(&self) -> impl Future<Output = Result<(), Error>> + Send {
                ready(Filter::delete(self))
            }
        }
    )+ };
}

ready_at_once!(ExactFilter, LocalFilter);
