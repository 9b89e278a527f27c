//! Exact filter that replaces a real filter in tests.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Error, ErrorKind, Filter};
use urlseen_fingerprint::Fingerprint;

/// Filter for tests. It stores every key, so its answers are never wrong. A test can make calls to
/// the filter fail.
///
/// ```
/// use urlseen::{ErrorKind, ExactFilter, FilterExt};
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
    /// Creates an empty filter.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the next `calls` calls fail with [`ErrorKind::Redis`]. These calls change nothing.
    pub fn fail_next(&self, calls: u32) {
        self.failing.store(calls, Ordering::SeqCst);
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns true if the filter has no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Fingerprint>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the keys, or an error if the test has requested one with `fail_next`.
    fn called(&self) -> Result<MutexGuard<'_, HashSet<Fingerprint>>, Error> {
        let fail = |left: u32| left.checked_sub(1);
        match self.failing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fail) {
            Ok(_) => Err(Error::new(
                ErrorKind::Redis,
                "this call of the ExactFilter fails, because the test called fail_next",
            )),
            Err(_) => Ok(self.lock()),
        }
    }
}

impl Filter for ExactFilter {
    fn add_all(&self, keys: &[Fingerprint]) -> Result<Vec<bool>, Error> {
        let mut seen = self.called()?;
        Ok(keys.iter().map(|key| seen.insert(key.clone())).collect())
    }

    fn test_all(&self, keys: &[Fingerprint]) -> Result<Vec<bool>, Error> {
        let seen = self.called()?;
        Ok(keys.iter().map(|key| seen.contains(key)).collect())
    }

    fn delete(&self) -> Result<(), Error> {
        self.called()?.clear();
        Ok(())
    }
}
