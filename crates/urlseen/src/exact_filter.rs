//! A filter for tests.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Error, ErrorKind, Filter};
use urlseen_core::fingerprint::Fingerprint;

/// A double for tests: it keeps every key, is never wrong, needs nothing, and fails when it is told
/// to.
///
/// ```
/// use urlseen::{ErrorKind, ExactFilter, Filter};
///
/// let filter = ExactFilter::new();
/// assert_eq!(filter.extend(["a", "b", "a"])?, [true, true, false]);
///
/// filter.fail_next(1);
/// assert_eq!(filter.add("c").unwrap_err().kind(), ErrorKind::Redis);
/// assert!(filter.add("c")?);
/// # Ok::<(), urlseen::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct ExactFilter {
    keys: Mutex<HashSet<Fingerprint>>,
    failing: AtomicU32,
}

impl ExactFilter {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next so many questions fail as if Redis were away, and change nothing.
    pub fn fail_next(&self, questions: u32) {
        self.failing.store(questions, Ordering::SeqCst);
    }

    /// How many keys were added.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Fingerprint>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self) -> Result<MutexGuard<'_, HashSet<Fingerprint>>, Error> {
        let fail = |left: u32| left.checked_sub(1);
        match self.failing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fail) {
            Ok(_) => Err(Error::new(ErrorKind::Redis, "the double was told to fail")),
            Err(_) => Ok(self.lock()),
        }
    }
}

impl Filter for ExactFilter {
    fn extend<K: Into<Fingerprint>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<bool>, Error> {
        let keys: Vec<Fingerprint> = keys.into_iter().map(Into::into).collect();
        let mut seen = self.asked()?;
        Ok(keys.into_iter().map(|key| seen.insert(key)).collect())
    }

    fn contains_all<K: Into<Fingerprint>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<bool>, Error> {
        let keys: Vec<Fingerprint> = keys.into_iter().map(Into::into).collect();
        let seen = self.asked()?;
        Ok(keys.iter().map(|key| seen.contains(key)).collect())
    }

    fn keys(&self) -> Vec<String> {
        Vec::new()
    }

    fn bits(&self) -> u64 {
        0
    }

    fn hashes(&self) -> u32 {
        0
    }

    fn delete(&self) -> Result<(), Error> {
        self.asked()?.clear();
        Ok(())
    }
}
