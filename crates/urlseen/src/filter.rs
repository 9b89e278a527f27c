//! Trait of all filters and the methods of filters, for programs with threads.

use super::Error;
use urlseen_fingerprint::Fingerprint;

/// Compact, approximate set of keys. A filter tells whether a key was added before.
///
/// A key is a [`Fingerprint`]. Any text can be a key, too; 32, 40 or 64 hex digits stand for the
/// bytes of a digest. [`FilterExt`] has methods for keys of any type.
///
/// A filter reports a small share of the unseen keys as seen. This share is the error rate of the
/// filter. A key that the filter reports as unseen was never added, or was forgotten.
///
/// All methods take `&self`, and threads share a filter as `Arc<dyn Filter>`. If several threads
/// add the same key at the same time, the filter reports it as new to exactly one of them.
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
    /// Adds keys. Returns one value for each key, in the order of `keys`: true if the key is new.
    ///
    /// A key is new if the filter has not seen the key before, and no earlier element of `keys`
    /// equals the key. One call for many keys is much faster than one call for each key.
    ///
    /// # Errors
    /// The filter is full, its storage failed, or Redis failed. Some of the new keys may have been
    /// added. A second call would return false for the added keys. A
    /// [`RedisFilter`](crate::RedisFilter) repeats a failed call itself, before it returns an
    /// error. If an earlier try has added the keys, the repeated call still returns true for them.
    fn add_all(&self, keys: &[Fingerprint]) -> Result<Vec<bool>, Error>;

    /// Tests keys without adding them. Returns one value for each key, in the order of `keys`: true
    /// if the key is seen.
    ///
    /// # Errors
    /// Redis failed, or the filter's kind has no bit positions for a key.
    fn test_all(&self, keys: &[Fingerprint]) -> Result<Vec<bool>, Error>;

    /// Returns the names of all Redis keys of the filter, including keys that the filter uses only
    /// after it has grown. The result is empty if the filter is not in Redis.
    fn keys(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the number of bits of the filter. For a kind that stores keys, the number is 0.
    fn bits(&self) -> u64 {
        0
    }

    /// Returns the number of bits that a key sets. For a kind that stores keys, the number is 0.
    fn hashes(&self) -> u32 {
        0
    }

    /// Deletes all keys permanently. The empty filter can still be used.
    ///
    /// # Errors
    /// The storage or Redis failed. Some keys may have been deleted.
    fn delete(&self) -> Result<(), Error>;
}

/// Methods that each [`Filter`] has for keys of any type, such as texts and fingerprints.
///
/// The methods have the names that pyreBloom and luw2007's `bloomfilter` use.
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
    /// Adds keys of any type. Returns one value for each key, in the order of `keys`: true if the
    /// key is new. [`Filter::add_all`] describes the details.
    ///
    /// # Errors
    /// The same errors as [`Filter::add_all`].
    fn extend<K: Into<Fingerprint>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<bool>, Error> {
        self.add_all(&fingerprints(keys))
    }

    /// Tests keys of any type without adding them. Returns one value for each key, in the order of
    /// `keys`: true if the key is seen.
    ///
    /// # Errors
    /// The same errors as [`Filter::test_all`].
    fn contains_all<K: Into<Fingerprint>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<bool>, Error> {
        self.test_all(&fingerprints(keys))
    }

    /// Adds one key of any type. Returns true if the key is new.
    ///
    /// # Errors
    /// The same errors as [`Filter::add_all`].
    fn add(&self, key: impl Into<Fingerprint>) -> Result<bool, Error> {
        Ok(self.extend([key])? == [true])
    }

    /// Tests one key of any type without adding it. Returns true if the key is seen.
    ///
    /// # Errors
    /// The same errors as [`Filter::test_all`].
    fn contains(&self, key: impl Into<Fingerprint>) -> Result<bool, Error> {
        Ok(self.contains_all([key])? == [true])
    }
}

impl<F: Filter + ?Sized> FilterExt for F {}

/// Converts keys of any type to fingerprints.
pub(crate) fn fingerprints<K: Into<Fingerprint>>(
    keys: impl IntoIterator<Item = K>,
) -> Vec<Fingerprint> {
    keys.into_iter().map(Into::into).collect()
}
