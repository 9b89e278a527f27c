//! Filter in this process's memory.

#[cfg(feature = "storage")]
mod kept;
#[cfg(feature = "storage")]
mod restoring;
mod shared;

use std::iter::FusedIterator;
use std::vec;

use shared::SharedFilter;
use urlseen_filter::{Seed, ShardId, Verdict};
use urlseen_fingerprint::Fingerprint;

use crate::filter::fingerprints;
use crate::{Error, Filter, FilterSpec};

#[cfg(feature = "storage")]
use std::path::Path;
#[cfg(feature = "storage")]
use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(feature = "storage")]
use kept::Kept;
#[cfg(feature = "storage")]
use urlseen_storage::StoragePolicy;

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
        Self::open_by(dir.as_ref(), spec, StoragePolicy::default(), false)
    }

    /// Opens the filter in the storage folder `dir`, with the kind and size that it has. The spec
    /// of its fingerprints must be the same. If the folder does not exist, creates the folder with
    /// an empty filter with this spec. Otherwise, the function is the same as
    /// [`LocalFilter::open`].
    ///
    /// ```
    /// use urlseen::{FilterExt, FilterSpec, LocalFilter};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let dir = folder.path().join("seen");
    /// LocalFilter::open(&dir, &FilterSpec::native(1_000_000, 1e-6))?.add("https://example.com/")?;
    /// let same = LocalFilter::open_or_create(&dir, &FilterSpec::native(5_000, 1e-3))?;
    /// assert!(same.contains("https://example.com/")? && same.capacity() == 1_000_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`LocalFilter::open`], except for a filter of another kind or size.
    #[cfg(feature = "storage")]
    pub fn open_or_create(dir: impl AsRef<Path>, spec: &FilterSpec) -> Result<Self, Error> {
        Self::open_by(dir.as_ref(), spec, StoragePolicy::default(), true)
    }

    #[cfg(feature = "storage")]
    fn open_by(
        dir: &Path,
        spec: &FilterSpec,
        policy: StoragePolicy,
        keeps_size: bool,
    ) -> Result<Self, Error> {
        let kept = Kept::open(dir, spec.read()?, policy, keeps_size)?;
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

    /// Forgets one key of any type. From now on the key is unseen, until it is added again. Returns
    /// true if the key was seen.
    ///
    /// A kind that stores keys, such as [`Kind::TWO_CHOICE`](crate::Kind::TWO_CHOICE) and
    /// [`Kind::EXACT`](crate::Kind::EXACT), removes the key at once and reuses its memory. The
    /// other kinds cannot remove keys. For them, the filter keeps a tombstone in memory until the
    /// key is added again. Each tombstone takes 40 to 80 bytes, so these kinds suit only a few
    /// forgotten keys.
    ///
    /// A filter with a folder first writes the key to the log of the folder. So the key is still
    /// unseen when the folder is opened again.
    ///
    /// ```
    /// use urlseen::{FilterExt, FilterSpec, LocalFilter};
    ///
    /// let filter = LocalFilter::new(&FilterSpec::native(1000, 1e-6))?;
    /// filter.add("a")?;
    /// assert!(filter.forget("a")? && !filter.forget("a")?);
    /// assert!(filter.add("a")?);
    /// # Ok::<(), urlseen::Error>(())
    /// ```
    ///
    /// # Errors
    /// The storage failed. The filter in memory has forgotten no key then. The log may contain the
    /// call, or a part of its keys.
    pub fn forget(&self, key: impl Into<Fingerprint>) -> Result<bool, Error> {
        Ok(self.forget_all([key])? == [true])
    }

    /// Forgets keys of any type: see [`LocalFilter::forget`]. Returns one value for each key, in
    /// the order of `keys`: true if the key was seen, and no earlier element of `keys` equals the
    /// key.
    ///
    /// [`Kind::TWO_CHOICE`](crate::Kind::TWO_CHOICE) stores a few different keys as the same bits.
    /// If a program forgets one of these keys, all of them are unseen. For each forgotten key, the
    /// chance of this is about [`LocalFilter::error_rate`].
    ///
    /// # Errors
    /// The same errors as [`LocalFilter::forget`].
    pub fn forget_all<K: Into<Fingerprint>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<bool>, Error> {
        self.change(Verdict::Seen, &fingerprints(keys))
    }

    /// Iterates over the hashes of all stored keys, in no particular order. Returns `None` if the
    /// filter's kind does not store keys. [`Kind::TWO_CHOICE`](crate::Kind::TWO_CHOICE) and
    /// [`Kind::EXACT`](crate::Kind::EXACT) store keys.
    ///
    /// A key hash is not a URL, and the URL cannot be computed from it. With
    /// [`LocalFilter::key_hash`], a program computes the hash of a key that it knows. So it can
    /// find out which of its URLs are behind the stored hashes, and count the keys that two filters
    /// have in common. The hashes of two filters are comparable if the specs of the filters have
    /// the same kind, [seed](FilterSpec::seed) and algorithm. For
    /// [`Kind::TWO_CHOICE`](crate::Kind::TWO_CHOICE) the specs must also have the same error rate
    /// and the same [`FilterSpec::grow_to`].
    ///
    /// The iterator copies the hashes of one of 256 parts of the filter at a time, which takes up
    /// to 64 bytes for each key of the part. Between two parts, other calls may change the filter.
    /// The iterator returns a key once if the key is in the filter all the time. If the key is
    /// added or forgotten meanwhile, the iterator returns it at most once.
    ///
    /// ```
    /// use std::collections::HashSet;
    /// use urlseen::{FilterExt, FilterSpec, Kind, LocalFilter};
    ///
    /// let spec = FilterSpec::new(Kind::EXACT).seed(7);
    /// let (old, new) = (LocalFilter::new(&spec)?, LocalFilter::new(&spec)?);
    /// old.extend(["a", "b", "c"])?;
    /// new.extend(["b", "c", "d", "e"])?;
    ///
    /// let hashes: HashSet<u128> = old.key_hashes().into_iter().flatten().collect();
    /// let common = new.key_hashes().into_iter().flatten().filter(|hash| hashes.contains(hash));
    /// assert_eq!(common.count(), 2);
    /// assert!(hashes.contains(&old.key_hash("a")));
    ///
    /// let native = LocalFilter::new(&FilterSpec::native(1000, 1e-6))?;
    /// assert!(native.key_hashes().is_none());
    /// # Ok::<(), urlseen::Error>(())
    /// ```
    pub fn key_hashes(&self) -> Option<KeyHashes<'_>> {
        KeyHashes::new(&self.filter)
    }

    /// Returns the hash of a key in this filter, as [`LocalFilter::key_hashes`] returns it for a
    /// stored key. The filter need not contain the key.
    pub fn key_hash(&self, key: impl Into<Fingerprint>) -> u128 {
        self.filter.key_hash(&key.into()).id()
    }

    /// Returns the number of keys that were new when they were added. A kind that removes forgotten
    /// keys does not count these keys. A kind that keeps tombstones counts a forgotten key, and
    /// counts the key again if it is added again.
    pub fn len(&self) -> u64 {
        self.filter.gauge().fill().counted
    }

    /// Returns true if [`LocalFilter::len`] is 0.
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

    /// Returns the error rate that the filter is made for. It has this rate when it is full. An
    /// imported filter records no such rate: for it, the result is the current rate.
    pub fn full_error_rate(&self) -> f64 {
        let made_for = self.filter.parameters.field("filter.error_rate");
        made_for.unwrap_or_else(|| self.error_rate())
    }

    /// Returns the number of keys divided by the capacity.
    pub fn fill(&self) -> f64 {
        self.filter.gauge().fill().share()
    }

    /// Returns the memory of the filter, in bytes.
    pub fn memory(&self) -> u64 {
        self.filter.gauge().fill().bytes
    }

    /// Adds or forgets keys: see [`SharedFilter::change`].
    fn change(&self, wanted: Verdict, keys: &[Fingerprint]) -> Result<Vec<bool>, Error> {
        #[cfg(feature = "storage")]
        if let Some(mut kept) = self.kept() {
            return kept.change(wanted, keys);
        }
        self.filter.change(wanted, keys, |_, _| Ok(()))
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
        self.change(Verdict::Unseen, keys)
    }

    fn test_all(&self, keys: &[Fingerprint]) -> Result<Vec<bool>, Error> {
        Ok(self.filter.test(keys))
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
mod tests;

/// Iterator over the key hashes of a filter, from
/// [`LocalFilter::key_hashes`](crate::LocalFilter::key_hashes).
#[derive(Debug)]
pub struct KeyHashes<'a> {
    filter: &'a SharedFilter,
    /// Remaining key hashes of the current shard.
    current: vec::IntoIter<u128>,
    /// Shards after the current one.
    later: vec::IntoIter<ShardId>,
}

impl<'a> KeyHashes<'a> {
    /// Returns `None` if the kind of the filter does not store keys.
    fn new(filter: &'a SharedFilter) -> Option<Self> {
        let mut later = ShardId::all().collect::<Vec<_>>().into_iter();
        let current = filter.shard_ids(later.next()?)?.into_iter();
        Some(Self { filter, current, later })
    }
}

impl Iterator for KeyHashes<'_> {
    type Item = u128;

    fn next(&mut self) -> Option<u128> {
        loop {
            if let Some(key_hash) = self.current.next() {
                return Some(key_hash);
            }
            self.current = self.filter.shard_ids(self.later.next()?)?.into_iter();
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.current.len(), None)
    }
}

impl FusedIterator for KeyHashes<'_> {}
