//! A filter, by its verbs.

use super::Error;
use urlseen_core::fingerprint::Fingerprint;

/// Remembers keys: has this one been seen before?
///
/// The verbs are those of pyreBloom and of luw2007's `bloomfilter`. A key is a
/// [`Fingerprint`]; text is one too (`filter.add("hello")`), where 32, 40 or 64 hex digits stand
/// for the bytes of a digest.
///
/// What a filter calls seen it may never have been given: that happens to the share of unseen keys
/// that it was made for, its error rate. What it calls unseen is unseen.
///
/// All methods take `&self`: threads share a filter as `Arc<impl Filter>`. Of those who add the
/// same key at once, one is told that it is new. For tests there is
/// [`ExactFilter`](crate::ExactFilter).
///
/// ```
/// use urlseen::{Error, Filter, LocalFilter};
///
/// /// Works with whatever filter there is.
/// fn first_of<'a>(filter: &impl Filter, words: &[&'a str]) -> Result<Vec<&'a str>, Error> {
///     let is_new = filter.extend(words.iter().copied())?;
///     Ok(words.iter().zip(is_new).filter(|(_, is_new)| *is_new).map(|(word, _)| *word).collect())
/// }
///
/// let filter = LocalFilter::new(1_000_000, 1e-6)?;
/// assert_eq!(first_of(&filter, &["a", "b", "a"])?, ["a", "b"]);
/// assert!(filter.contains("b")? && !filter.contains("c")?);
/// # Ok::<(), Error>(())
/// ```
pub trait Filter: Send + Sync {
    /// Adds keys, and answers in their order which of them were new: unseen before, and not
    /// further left among them. Many at once are much faster than one by one.
    ///
    /// # Errors
    /// What was unseen of them may have been added or not; to ask again is safe only where that is
    /// said ([`RedisFilter`](crate::RedisFilter) asks again by itself).
    fn extend<K: Into<Fingerprint>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<bool>, Error>;

    /// Which of the keys are seen, in their order.
    ///
    /// # Errors
    /// Nothing is known of any.
    fn contains_all<K: Into<Fingerprint>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<bool>, Error>;

    /// Adds a key, and answers whether it is new, as a `HashSet` does.
    ///
    /// # Errors
    /// As [`Filter::extend`].
    fn add(&self, key: impl Into<Fingerprint>) -> Result<bool, Error> {
        Ok(self.extend([key])? == [true])
    }

    /// Whether a key is seen.
    ///
    /// # Errors
    /// As [`Filter::contains_all`].
    fn contains(&self, key: impl Into<Fingerprint>) -> Result<bool, Error> {
        Ok(self.contains_all([key])? == [true])
    }

    /// The Redis keys that the filter has or may come to have; none where it is not in Redis.
    fn keys(&self) -> Vec<String>;

    /// How many bits it has; 0 where it is a set.
    fn bits(&self) -> u64;

    /// How many bits a key sets; 0 where it is a set.
    fn hashes(&self) -> u32;

    /// Forgets all keys, for good. The filter can be used on.
    ///
    /// # Errors
    /// Some may be forgotten already.
    fn delete(&self) -> Result<(), Error>;
}
