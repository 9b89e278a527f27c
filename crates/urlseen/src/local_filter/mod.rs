//! A filter in this process's memory.

#[cfg(feature = "storage")]
mod kept;

#[cfg(feature = "storage")]
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(feature = "storage")]
use crate::Fingerprints;
use crate::{Error, ErrorKind, Filter};
#[cfg(feature = "storage")]
use kept::{Kept, Snapshot};
use urlseen_core::filter::native::KeyHash;
use urlseen_core::filter::{
    BuildError, Capacity, ErrorRate, FilterKind, KeyHasher, Parameters, Seed, Sizing, Verdict, id,
};
use urlseen_core::fingerprint::Fingerprint;

/// A filter in this process's memory: urlseen's own kind, whose keys take one or two cache lines
/// each. With [`LocalFilter::open`] it is kept in a storage folder.
///
/// ```
/// use urlseen::{Filter, Fingerprinter, LocalFilter, Request};
///
/// let links = ["https://example.com/?b=2&a=1", "https://EXAMPLE.com/?a=1&b=2#top"];
///
/// let seen = LocalFilter::new(10_000_000, 1e-6)?;
/// let mut scrapy = Fingerprinter::default();
/// for link in links {
///     if seen.add(scrapy.fingerprint(&Request::get(link))?)? {
///         println!("{link}");
///     }
/// }
/// # assert_eq!(seen.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LocalFilter {
    sizing: Sizing,
    inner: Arc<Mutex<Inner>>,
}

/// What threads take turns with.
#[derive(Debug)]
struct Inner {
    hasher: KeyHasher,
    filter: Box<dyn FilterKind>,
    #[cfg(feature = "storage")]
    kept: Option<Kept>,
}

impl LocalFilter {
    /// An empty filter for so many keys, 1 to 1e12, at this error rate, 1e-12 to 0.1: the share of
    /// unseen keys that is taken for seen once so many are in it. It goes on beyond that, at a
    /// growing error rate ([`LocalFilter::error_rate`]). Its hash is seeded at random.
    ///
    /// # Errors
    /// There is no such filter, or no memory for it: nothing is taken then.
    pub fn new(capacity: u64, error_rate: f64) -> Result<Self, Error> {
        let sizing = sizing(capacity, error_rate)?;
        // Half of a random number is one.
        #[allow(clippy::cast_possible_truncation)]
        let seed = Seed::new(id::random() as u32);
        let inner = Inner::new(&Parameters::native(&sizing, Some(seed)))?;
        Ok(Self { sizing, inner: Arc::new(Mutex::new(inner)) })
    }

    /// The filter that is kept in the folder `dir`, which is made where there is none, for the
    /// fingerprints of Scrapy. What is added is written down before [`Filter::extend`] answers, so
    /// it outlives the process, however that ends; it outlives a crash of the machine if it was
    /// added a second before, or after [`LocalFilter::sync`].
    ///
    /// It is a storage folder as the `urlseen` command has it: `urlseen filter --storage`, `urlseen
    /// check --storage` and a daemon can work with it in turns. One process has it at a time.
    ///
    /// # Errors
    /// Somebody has it open, its filter was made for something else, it cannot be read, or there is
    /// no memory for it. Nothing is changed then.
    #[cfg(feature = "storage")]
    pub fn open(dir: impl AsRef<Path>, capacity: u64, error_rate: f64) -> Result<Self, Error> {
        Self::open_for(dir, capacity, error_rate, Fingerprints::default())
    }

    /// The same for other fingerprints.
    ///
    /// # Errors
    /// As [`LocalFilter::open`].
    #[cfg(feature = "storage")]
    pub fn open_for(
        dir: impl AsRef<Path>,
        capacity: u64,
        error_rate: f64,
        fingerprints: Fingerprints,
    ) -> Result<Self, Error> {
        let sizing = sizing(capacity, error_rate)?;
        let inner = Kept::open(dir.as_ref(), &sizing, fingerprints)?;
        Ok(Self { sizing, inner: Arc::new(Mutex::new(inner)) })
    }

    /// Has all that was added on the disk when it returns; nothing where the filter is not kept.
    ///
    /// # Errors
    /// The disk fails. A snapshot that failed meanwhile is named here, too.
    #[cfg(feature = "storage")]
    pub fn sync(&self) -> Result<(), Error> {
        self.lock().kept.as_mut().map_or(Ok(()), Kept::sync)
    }

    /// How many keys were new when they were added.
    pub fn len(&self) -> u64 {
        self.lock().filter.gauge().fill().counted
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys it is made for.
    pub fn capacity(&self) -> u64 {
        self.sizing.capacity().get()
    }

    /// The share of unseen keys that it takes for seen by now, computed from how full it is.
    pub fn error_rate(&self) -> f64 {
        self.lock().filter.gauge().error_rate()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Whatever panicked has set all of a key or nothing.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Filter for LocalFilter {
    fn extend<K: Into<Fingerprint>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<bool>, Error> {
        let keys: Vec<Fingerprint> = keys.into_iter().map(Into::into).collect();
        let mut inner = self.lock();
        let is_new = inner.extend(&keys)?;
        #[cfg(feature = "storage")]
        Snapshot::begin_if_due(&mut inner, &self.inner);
        Ok(is_new)
    }

    fn contains_all<K: Into<Fingerprint>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<bool>, Error> {
        let keys: Vec<Fingerprint> = keys.into_iter().map(Into::into).collect();
        let inner = self.lock();
        Ok(inner.test(&inner.key_hashes(&keys)))
    }

    /// None: the filter is in memory.
    fn keys(&self) -> Vec<String> {
        Vec::new()
    }

    fn bits(&self) -> u64 {
        self.sizing.geometry().bits()
    }

    fn hashes(&self) -> u32 {
        self.sizing.geometry().k()
    }

    fn delete(&self) -> Result<(), Error> {
        #[cfg(feature = "storage")]
        self.end_snapshot();
        let mut inner = self.lock();
        #[cfg(feature = "storage")]
        inner.kept.as_mut().map_or(Ok(()), Kept::empty)?;
        inner.filter.clear();
        Ok(())
    }
}

#[cfg(feature = "storage")]
impl LocalFilter {
    /// Waits for the snapshot under way to end, soon. The lock must be free for that.
    fn end_snapshot(&self) {
        let snapshot = self.lock().kept.as_mut().and_then(Kept::take_snapshot);
        drop(snapshot);
    }
}

#[cfg(feature = "storage")]
impl Drop for LocalFilter {
    fn drop(&mut self) {
        self.end_snapshot();
        if let Some(kept) = self.lock().kept.as_mut() {
            kept.close();
        }
    }
}

impl Inner {
    /// An empty filter that nothing is kept of.
    fn new(parameters: &Parameters) -> Result<Self, Error> {
        let unbuildable = |error: BuildError| Error::new(ErrorKind::Memory, error);
        parameters.check_memory().map_err(unbuildable)?;
        Ok(Self {
            hasher: parameters.hasher(),
            filter: parameters.build(0, 1).map_err(unbuildable)?,
            #[cfg(feature = "storage")]
            kept: None,
        })
    }

    fn key_hashes(&self, keys: &[Fingerprint]) -> Vec<KeyHash> {
        keys.iter().map(|key| self.hasher.key_hash(key)).collect()
    }

    fn test(&self, key_hashes: &[KeyHash]) -> Vec<bool> {
        let mut verdicts = Vec::new();
        self.filter.test(key_hashes, &mut verdicts);
        let seen = verdicts.into_iter().map(|verdict| verdict == Verdict::Seen);
        #[cfg(feature = "storage")]
        if let Some(kept) = &self.kept {
            return seen
                .zip(key_hashes)
                .map(|(seen, key_hash)| seen && !kept.forgot(*key_hash))
                .collect();
        }
        seen.collect()
    }

    fn extend(&mut self, keys: &[Fingerprint]) -> Result<Vec<bool>, Error> {
        let key_hashes = self.key_hashes(keys);
        let mut is_new: Vec<bool> = self.test(&key_hashes).into_iter().map(|seen| !seen).collect();
        let mut added = std::collections::HashSet::new();
        for (is_new, key_hash) in is_new.iter_mut().zip(&key_hashes) {
            *is_new = *is_new && added.insert(key_hash.id());
        }
        #[cfg(feature = "storage")]
        if let Some(kept) = &mut self.kept {
            let unseen = keys.iter().zip(&is_new).filter(|(_, is_new)| **is_new);
            kept.append(&unseen.map(|(key, _)| key.clone()).collect::<Vec<_>>())?;
            for &id in &added {
                kept.remember(id);
            }
        }
        let unseen = key_hashes.into_iter().zip(&is_new).filter(|(_, is_new)| **is_new);
        let unseen: Vec<KeyHash> = unseen.map(|(key_hash, _)| key_hash).collect();
        self.filter.insert(&unseen).map_err(|full| Error::new(ErrorKind::Memory, full))?;
        Ok(is_new)
    }
}

fn sizing(capacity: u64, error_rate: f64) -> Result<Sizing, Error> {
    let unbuildable =
        |error: Box<dyn std::error::Error + Send + Sync>| Error::new(ErrorKind::Spec, error);
    Ok(Sizing::new(
        Capacity::new(capacity).map_err(|error| unbuildable(error.into()))?,
        ErrorRate::new(error_rate).map_err(|error| unbuildable(error.into()))?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_new_once_wherever_it_stands() {
        let filter = LocalFilter::new(1000, 1e-12).unwrap();
        assert_eq!(filter.extend(["a", "b", "a"]).unwrap(), [true, true, false]);
        assert_eq!(filter.extend(["c", "b"]).unwrap(), [true, false]);
        assert_eq!(filter.contains_all(["a", "d"]).unwrap(), [true, false]);
        assert_eq!(filter.len(), 3);
        filter.delete().unwrap();
        assert!(filter.is_empty() && filter.add("a").unwrap());
    }

    #[test]
    fn of_those_who_add_a_key_at_once_one_is_told_that_it_is_new() {
        let filter = LocalFilter::new(100_000, 1e-12).unwrap();
        let add = || {
            let keys = (0..10_000).map(|number: u32| number.to_string());
            keys.filter(|key| filter.add(key.as_str()).unwrap()).count()
        };
        let new: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(add)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!((new, filter.len()), (10_000, 10_000));
    }

    #[test]
    fn it_says_how_wrong_it_is_by_now() {
        let filter = LocalFilter::new(10_000, 1e-3).unwrap();
        assert!(filter.error_rate() < 1e-12);
        filter.extend((0..20_000).map(|number: u32| number.to_string())).unwrap();
        let unseen = (0..200_000).map(|number: u32| format!("unseen {number}"));
        let wrong = filter.contains_all(unseen).unwrap().into_iter().filter(|seen| *seen).count();
        let (measured, said) = (wrong as f64 / 200_000.0, filter.error_rate());
        assert!(said > 2e-3 && (measured / said - 1.0).abs() < 0.15, "{measured} for {said}");
    }

    #[test]
    fn what_no_filter_can_be_is_refused() {
        for (capacity, error_rate, kind) in [
            (0, 1e-6, ErrorKind::Spec),
            (1000, 0.0, ErrorKind::Spec),
            (1_000_000_000_000, 1e-12, ErrorKind::Memory),
        ] {
            let error = LocalFilter::new(capacity, error_rate).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
        }
    }
}
