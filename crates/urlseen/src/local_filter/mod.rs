//! Filter in this process's memory.

#[cfg(feature = "storage")]
mod kept;
mod shared;

#[cfg(feature = "storage")]
use std::path::Path;
#[cfg(feature = "storage")]
use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(feature = "storage")]
use crate::Fingerprints;
use crate::{Error, ErrorKind, Filter};
#[cfg(feature = "storage")]
use kept::Kept;
use shared::{Judged, SharedFilter};
#[cfg(feature = "storage")]
use urlseen_core::filter::FilterSpec;
use urlseen_core::filter::{Capacity, ErrorRate, Parameters, Seed, Sizing};
use urlseen_core::fingerprint::Fingerprint;
#[cfg(feature = "storage")]
use urlseen_core::storage::StoragePolicy;

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
    filter: SharedFilter,
    /// The storage, which is locked before the filter is.
    #[cfg(feature = "storage")]
    kept: Option<Mutex<Kept>>,
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
        let filter = SharedFilter::new(&Parameters::native(&sizing, Some(Seed::random())))?;
        Ok(Self {
            sizing,
            filter,
            #[cfg(feature = "storage")]
            kept: None,
        })
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
        Self::open_by(dir, capacity, error_rate, fingerprints, StoragePolicy::default())
    }

    #[cfg(feature = "storage")]
    fn open_by(
        dir: impl AsRef<Path>,
        capacity: u64,
        error_rate: f64,
        fingerprints: Fingerprints,
        policy: StoragePolicy,
    ) -> Result<Self, Error> {
        let sizing = sizing(capacity, error_rate)?;
        let Fingerprints { algorithm, keep_fragments } = fingerprints;
        let parameters = Parameters::native(&sizing, None);
        let spec = FilterSpec { parameters, algorithm, keep_fragments };
        let kept = Kept::open(dir.as_ref(), spec, policy)?;
        Ok(Self { sizing, filter: kept.filter.clone(), kept: Some(Mutex::new(kept)) })
    }

    /// Has all that was added on the disk when it returns; nothing where the filter is not kept.
    ///
    /// # Errors
    /// The disk fails. A snapshot that failed meanwhile is named here, too.
    #[cfg(feature = "storage")]
    pub fn sync(&self) -> Result<(), Error> {
        self.kept().map_or(Ok(()), |mut kept| kept.sync())
    }

    /// How many keys were new when they were added.
    pub fn len(&self) -> u64 {
        self.filter.gauge().fill().counted
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
        self.filter.gauge().error_rate()
    }

    #[cfg(feature = "storage")]
    fn kept(&self) -> Option<MutexGuard<'_, Kept>> {
        // The log refuses to go on after a write that failed half way.
        Some(self.kept.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Filter for LocalFilter {
    fn extend<K: Into<Fingerprint>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<bool>, Error> {
        let keys: Vec<Fingerprint> = keys.into_iter().map(Into::into).collect();
        #[cfg(feature = "storage")]
        if let Some(mut kept) = self.kept() {
            return kept.extend(&keys);
        }
        let key_hashes = self.filter.key_hashes(&keys);
        let mut state = self.filter.lock();
        let Judged { is_new, new } = state.judge(&key_hashes)?;
        state.insert(&new)?;
        Ok(is_new)
    }

    fn contains_all<K: Into<Fingerprint>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<bool>, Error> {
        let keys: Vec<Fingerprint> = keys.into_iter().map(Into::into).collect();
        Ok(self.filter.test(&keys))
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
        if let Some(mut kept) = self.kept() {
            return kept.empty();
        }
        self.filter.lock().filter.clear();
        Ok(())
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
