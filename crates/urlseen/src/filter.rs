//! Filters by their verbs, for threads.

use super::Error;
use urlseen_core::fingerprint::Fingerprint;

/// A set of keys that is small and may be wrong: has this key been seen before?
///
/// A key is a [`Fingerprint`]. Text is one too, and 32, 40 or 64 hex digits stand for the bytes of
/// a digest. [`FilterExt`] has the verbs for keys of any type.
///
/// A filter takes a share of the unseen keys for seen, its error rate. A key that it calls unseen
/// was never added.
///
/// All methods take `&self`, and threads share a filter as `Arc<dyn Filter>`. If several threads
/// add the same key at once, exactly one of them hears that it is new.
///
/// A program that chooses its filter at run time holds a `Box<dyn Filter>`:
///
/// ```
/// use urlseen::{Error, ExactFilter, Filter, FilterExt, FilterSpec, LocalFilter};
///
/// fn open(is_exact: bool) -> Result<Box<dyn Filter>, Error> {
///     Ok(if is_exact {
///         Box::new(ExactFilter::new())
///     } else {
///         Box::new(LocalFilter::new(&FilterSpec::native(1_000_000, 1e-6))?)
///     })
/// }
///
/// for is_exact in [true, false] {
///     let seen = open(is_exact)?;
///     assert_eq!(seen.extend(["a", "b", "a"])?, [true, true, false]);
///     assert!(seen.contains("b")? && !seen.contains("c")?);
/// }
/// # Ok::<(), Error>(())
/// ```
pub trait Filter: Send + Sync {
    /// Adds keys. Returns true for each that is new: unseen before, and not equal to an earlier one
    /// of `keys`. One call for many keys is much faster than a call for each.
    ///
    /// # Errors
    /// Some of the unseen keys may have been added. A second call would then return false for
    /// them. [`RedisFilter`](crate::RedisFilter) repeats a call itself, and returns the first
    /// answer.
    fn add_all(&self, keys: &[Fingerprint]) -> Result<Vec<bool>, Error>;

    /// Tests keys, without adding any. Returns true for each that is seen.
    ///
    /// # Errors
    /// No key was tested.
    fn test_all(&self, keys: &[Fingerprint]) -> Result<Vec<bool>, Error>;

    /// Returns the Redis keys that the filter has or may grow to have; none outside of Redis.
    fn keys(&self) -> Vec<String>;

    /// Returns the number of bits of the filter; 0 for a set.
    fn bits(&self) -> u64;

    /// Returns the number of bits that a key sets; 0 for a set.
    fn hashes(&self) -> u32;

    /// Deletes all keys, for good. The filter can still be used.
    ///
    /// # Errors
    /// Some keys may be deleted.
    fn delete(&self) -> Result<(), Error>;
}

/// Verbs of every [`Filter`], also of a `dyn Filter`, for keys of any type.
///
/// They are those of pyreBloom and of luw2007's `bloomfilter`.
///
/// ```
/// use urlseen::{Error, Filter, FilterExt, FilterSpec, LocalFilter};
///
/// /// Returns the words that the filter has not seen.
/// fn unseen<'a>(filter: &dyn Filter, words: &[&'a str]) -> Result<Vec<&'a str>, Error> {
///     let is_new = filter.extend(words.iter().copied())?;
///     Ok(words.iter().zip(is_new).filter(|(_, is_new)| *is_new).map(|(word, _)| *word).collect())
/// }
///
/// let filter = LocalFilter::new(&FilterSpec::native(1_000_000, 1e-6))?;
/// assert_eq!(unseen(&filter, &["a", "b", "a"])?, ["a", "b"]);
/// assert!(!filter.add("a")?);
/// # Ok::<(), Error>(())
/// ```
pub trait FilterExt: Filter {
    /// Adds keys: see [`Filter::add_all`].
    ///
    /// # Errors
    /// As there.
    fn extend<K: Into<Fingerprint>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<bool>, Error> {
        self.add_all(&fingerprints(keys))
    }

    /// Tests keys: see [`Filter::test_all`].
    ///
    /// # Errors
    /// As there.
    fn contains_all<K: Into<Fingerprint>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<bool>, Error> {
        self.test_all(&fingerprints(keys))
    }

    /// Adds a key. Returns true if it is new, as a `HashSet` does.
    ///
    /// # Errors
    /// As [`Filter::add_all`].
    fn add(&self, key: impl Into<Fingerprint>) -> Result<bool, Error> {
        Ok(self.extend([key])? == [true])
    }

    /// Returns true if a key is seen.
    ///
    /// # Errors
    /// As [`Filter::test_all`].
    fn contains(&self, key: impl Into<Fingerprint>) -> Result<bool, Error> {
        Ok(self.contains_all([key])? == [true])
    }
}

impl<F: Filter + ?Sized> FilterExt for F {}

/// Makes fingerprints of keys of any type.
pub(crate) fn fingerprints<K: Into<Fingerprint>>(
    keys: impl IntoIterator<Item = K>,
) -> Vec<Fingerprint> {
    keys.into_iter().map(Into::into).collect()
}
