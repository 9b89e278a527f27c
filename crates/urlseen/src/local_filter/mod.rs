//! Filter in this process's memory.

#[cfg(feature = "storage")]
mod kept;
mod shared;

#[cfg(feature = "storage")]
use std::path::Path;
#[cfg(feature = "storage")]
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Error, Filter, FilterSpec};
#[cfg(feature = "storage")]
use kept::Kept;
use shared::{Judged, SharedFilter};
use urlseen_core::filter::Seed;
use urlseen_core::fingerprint::Fingerprint;
#[cfg(feature = "storage")]
use urlseen_core::storage::StoragePolicy;

/// Filter in this process's memory. [`LocalFilter::open`] also stores the filter in a folder.
///
/// A `LocalFilter` can have any [`Kind`](crate::Kind) that the daemon can hold in memory. If the
/// kind has a seed, each new filter gets a random seed.
///
/// ```
/// use urlseen::{FilterExt, FilterSpec, Fingerprinter, LocalFilter, Request};
///
/// let links = ["https://example.com/?b=2&a=1", "https://EXAMPLE.com/?a=1&b=2#top"];
///
/// let seen = LocalFilter::new(&FilterSpec::native(10_000_000, 1e-6))?;
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
    filter: SharedFilter,
    /// Storage folder of the filter, if it has one. Code that needs both locks takes the lock of
    /// the storage first, then the lock of the filter.
    #[cfg(feature = "storage")]
    kept: Option<Mutex<Kept>>,
}

impl LocalFilter {
    /// Creates an empty filter. Its keys are lost when the process ends.
    ///
    /// # Errors
    /// The spec is not valid, its kind exists only in Redis, or there is not enough memory for the
    /// filter.
    pub fn new(spec: &FilterSpec) -> Result<Self, Error> {
        Ok(Self {
            filter: SharedFilter::new(spec.read()?.parameters.seeded(Seed::random))?,
            #[cfg(feature = "storage")]
            kept: None,
        })
    }

    /// Opens the filter in the storage folder `dir`. If the folder does not exist, creates the
    /// folder with an empty filter.
    ///
    /// [`Filter::add_all`] writes new keys to the log of the folder before it returns. So the keys
    /// survive the end of the process, even if the process is killed. About one second later, or
    /// after [`LocalFilter::sync`], the keys also survive a crash of the machine.
    ///
    /// The folder has the format of the `urlseen` command. `urlseen filter --storage`, `urlseen
    /// check --storage`, a daemon and this program can open the folder one after the other. Only
    /// one process can have the folder open at a time.
    ///
    /// ```
    /// use urlseen::{FilterExt, FilterSpec, LocalFilter};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let dir = folder.path().join("seen");
    /// let spec = FilterSpec::native(1_000_000, 1e-6);
    /// assert!(LocalFilter::open(&dir, &spec)?.add("https://example.com/")?);
    /// // The next run:
    /// assert!(!LocalFilter::open(&dir, &spec)?.add("https://example.com/")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The same errors as [`LocalFilter::new`]. Also, another process has the folder open, the
    /// folder has a filter with another spec, or the folder cannot be read. In these three cases,
    /// the folder is not changed.
    #[cfg(feature = "storage")]
    pub fn open(dir: impl AsRef<Path>, spec: &FilterSpec) -> Result<Self, Error> {
        Self::open_by(dir.as_ref(), spec, StoragePolicy::default())
    }

    #[cfg(feature = "storage")]
    fn open_by(dir: &Path, spec: &FilterSpec, policy: StoragePolicy) -> Result<Self, Error> {
        let kept = Kept::open(dir, spec.read()?, policy)?;
        Ok(Self { filter: kept.filter.clone(), kept: Some(Mutex::new(kept)) })
    }

    /// Syncs the log of the folder to the disk. After that, all added keys survive a crash of the
    /// machine. Does nothing if the filter has no folder.
    ///
    /// # Errors
    /// The disk failed, or the last snapshot of the filter failed.
    #[cfg(feature = "storage")]
    pub fn sync(&self) -> Result<(), Error> {
        self.kept().map_or(Ok(()), |mut kept| kept.sync())
    }

    /// Returns the number of keys that were new when they were added.
    pub fn len(&self) -> u64 {
        self.filter.gauge().fill().counted
    }

    /// Returns true if the filter has no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of keys that the filter is made for. The number increases whenever the
    /// filter grows.
    pub fn capacity(&self) -> u64 {
        self.filter.gauge().fill().capacity
    }

    /// Returns the current error rate: the share of unseen keys that the filter reports as seen.
    /// The rate is computed from the fill of the filter.
    pub fn error_rate(&self) -> f64 {
        self.filter.gauge().error_rate()
    }

    #[cfg(feature = "storage")]
    fn kept(&self) -> Option<MutexGuard<'_, Kept>> {
        // A panic of another thread does no harm: after a partial write, the log refuses further
        // writes.
        Some(self.kept.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Filter for LocalFilter {
    fn add_all(&self, keys: &[Fingerprint]) -> Result<Vec<bool>, Error> {
        #[cfg(feature = "storage")]
        if let Some(mut kept) = self.kept() {
            return kept.add_all(keys);
        }
        let key_hashes = self.filter.key_hashes(keys);
        let mut state = self.filter.lock();
        let Judged { is_new, new } = state.judge(&key_hashes)?;
        state.insert(&new)?;
        Ok(is_new)
    }

    fn test_all(&self, keys: &[Fingerprint]) -> Result<Vec<bool>, Error> {
        Ok(self.filter.test(keys))
    }

    fn keys(&self) -> Vec<String> {
        Vec::new()
    }

    fn bits(&self) -> u64 {
        self.filter.shape().0
    }

    fn hashes(&self) -> u32 {
        self.filter.shape().1
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, FilterExt, Kind};
    use urlseen_core::filter::choice::FilterPlace;
    use urlseen_core::filter::{Parameters, ShardId, redisbloom};

    /// Returns a small filter of every kind in memory.
    pub(super) fn specs() -> impl Iterator<Item = FilterSpec> {
        let set = |spec: FilterSpec, name: &&str| match *name {
            "filter.capacity" => spec.capacity(1000),
            "filter.error_rate" => spec.error_rate(1e-12),
            "filter.expansion" => spec.expansion(2),
            _ => spec,
        };
        let spec = move |kind: Kind| kind.keys().iter().fold(FilterSpec::new(kind), set);
        Kind::all_in(FilterPlace::Local).map(spec)
    }

    fn native(capacity: u64, error_rate: f64) -> LocalFilter {
        LocalFilter::new(&FilterSpec::native(capacity, error_rate)).unwrap()
    }

    #[test]
    fn filters_of_every_kind_add_test_and_delete_alike() {
        for spec in specs() {
            let filter = LocalFilter::new(&spec).unwrap();
            assert_eq!(filter.extend(["a", "b", "a"]).unwrap(), [true, true, false], "{spec:?}");
            assert_eq!(filter.extend(["c", "b"]).unwrap(), [true, false], "{spec:?}");
            assert_eq!(filter.contains_all(["a", "d"]).unwrap(), [true, false], "{spec:?}");
            assert_eq!(filter.len(), 3, "{spec:?}");
            filter.delete().unwrap();
            assert!(filter.is_empty() && filter.add("a").unwrap(), "{spec:?}");
        }
    }

    /// The bits and hashes of an imported filter are those of its layers, not of its parameters.
    #[test]
    fn an_imported_filter_has_the_bits_of_its_layers() {
        let mut imported = redisbloom::Filter::reserve(0.01, 100, 2, u64::MAX).unwrap();
        for key in 0..150_u32 {
            imported.add(&key.to_le_bytes()).unwrap();
        }
        let [first, last] = imported.layers() else { panic!("two layers") };
        let mut dump = Vec::new();
        redisbloom::dump::write(&imported, &mut dump).unwrap();
        let filter = LocalFilter {
            filter: SharedFilter::new(Parameters::imported()).unwrap(),
            #[cfg(feature = "storage")]
            kept: None,
        };
        let (keys, len) = (imported.size(), dump.len() as u64);
        filter.filter.lock().filter.load(ShardId::WHOLE, keys, len, &mut &dump[..]).unwrap();
        assert_eq!(filter.bits(), first.bits() + last.bits());
        assert_eq!(filter.hashes(), last.hashes());
    }

    #[test]
    fn a_key_that_several_threads_add_at_once_is_new_to_exactly_one() {
        let filter = native(100_000, 1e-12);
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
    fn the_reported_error_rate_equals_the_measured_one() {
        let filter = native(10_000, 1e-3);
        assert!(filter.error_rate() < 1e-12);
        filter.extend((0..20_000).map(|number: u32| number.to_string())).unwrap();
        let unseen = (0..200_000).map(|number: u32| format!("unseen {number}"));
        let wrong = filter.contains_all(unseen).unwrap().into_iter().filter(|seen| *seen).count();
        let (measured, said) = (wrong as f64 / 200_000.0, filter.error_rate());
        assert!(said > 2e-3 && (measured / said - 1.0).abs() < 0.15, "{measured} for {said}");
    }

    #[test]
    fn invalid_specs_are_refused() {
        for (spec, kind) in [
            (FilterSpec::native(0, 1e-6), ErrorKind::Spec),
            (FilterSpec::native(1000, 0.0), ErrorKind::Spec),
            (FilterSpec::native(1000, 1e-6).bit(30), ErrorKind::Spec),
            (FilterSpec::new(Kind::NATIVE).capacity(1000), ErrorKind::Spec),
            (FilterSpec::new(Kind::SCRAPY_REDIS), ErrorKind::Spec),
            (FilterSpec::native(1_000_000_000_000, 1e-12), ErrorKind::Memory),
        ] {
            let error = LocalFilter::new(&spec).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
        }
    }
}
