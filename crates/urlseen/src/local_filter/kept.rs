//! Filter in memory that is stored in a folder.

use std::io;
use std::path::Path;

use super::shared::{SharedFilter, no_room};
use crate::{Error, ErrorKind};
use urlseen_filter::{FilterSpec, Lifetimes, Parameters, Seed, Verdict};
use urlseen_fingerprint::Fingerprint;
use urlseen_storage::{
    Change, FilterStorage, Folder, Journal, Position, Reach, StoragePolicy, StorageSpec, Target,
};

/// Crawl name in a new folder. It is the default of `crawl.name`, so that a daemon with the default
/// configuration accepts the folder.
const CRAWL: &str = "demo";

/// Filter that is stored in a folder, with its storage.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) storage: FilterStorage<SharedFilter>,
    pub(super) filter: SharedFilter,
    /// Error of the last failed snapshot, until `sync` returns the error.
    trouble: Option<io::Error>,
}

impl Kept {
    /// Opens the folder `dir`, and recovers its filter. If the folder is new, begins the filter
    /// `filter`. With `keeps_size`, an existing filter keeps the kind and size that it has.
    pub(super) fn open(
        dir: &Path,
        mut filter: FilterSpec,
        policy: StoragePolicy,
        keeps_size: bool,
    ) -> Result<Self, Error> {
        let folder = Folder::open(dir).map_err(|error| Error::new(ErrorKind::Storage, error))?;
        if let Some(header) = folder.header().filter(|_| keeps_size) {
            filter.parameters = header.spec.filter.parameters.clone();
        }
        let crawl = folder.header().map_or(CRAWL, |header| &header.spec.crawl).to_owned();
        let spec = StorageSpec { crawl, filter };
        if let Err(differences) = spec.check(folder.header()) {
            let all: Vec<_> = differences.iter().map(ToString::to_string).collect();
            let (dir, all) = (folder.dir().display(), all.join("; "));
            let text = format!("the folder {dir} has a filter with another spec: {all}");
            return Err(Error::new(ErrorKind::Mismatch, text));
        }
        let parameters = match folder.header() {
            Some(header) => reopened(&header.spec.filter.parameters, &spec.filter.parameters),
            None => spec.filter.parameters.seeded(Seed::random),
        };
        let filter = SharedFilter::new(parameters.clone())?;
        let mut storage = FilterStorage::new(filter.clone(), folder, policy);
        let filter_spec = FilterSpec { parameters, ..spec.filter };
        let recovered = storage.recover(&StorageSpec { filter: filter_spec, ..spec }, Target::Last);
        recovered.map_err(|error| Error::new(ErrorKind::Storage, error))?;
        filter.lock().full.take().map_or(Ok(()), |full| Err(no_room(full)))?;
        Ok(Self { storage, filter, trouble: None })
    }

    /// Adds or forgets keys: see [`SharedFilter::change`]. Writes the keys that change to the log
    /// before the filter changes.
    pub(super) fn change(
        &mut self,
        wanted: Verdict,
        keys: &[Fingerprint],
    ) -> Result<Vec<bool>, Error> {
        let filter = self.filter.clone();
        let changed = filter.change(wanted, keys, |state, is_chosen| {
            let chosen = keys.iter().zip(is_chosen).filter(|(_, is_chosen)| **is_chosen);
            state.at = self.log(wanted, &chosen.map(|(key, _)| key.clone()).collect::<Vec<_>>())?;
            Ok(())
        })?;
        self.tend();
        Ok(changed)
    }

    /// Writes a change of keys to the log. Returns the end of the log.
    fn log(&mut self, wanted: Verdict, keys: &[Fingerprint]) -> Result<Position, Error> {
        let change = match wanted {
            Verdict::Unseen => Change::Add,
            Verdict::Seen => Change::Forget,
        };
        let appended = self.storage.journal().and_then(|journal| {
            let mut group = journal.group();
            group.change(change, keys, &Lifetimes::default())?;
            let at = group.logged().at;
            group.finish().map(|_| at)
        });
        appended.map_err(|error| self.failed("written to", &error))
    }

    /// Takes a snapshot if one is due. Keeps its error for `sync`.
    fn tend(&mut self) {
        if let Some(Err(error)) = self.storage.ended_snapshot(false) {
            self.trouble = Some(error);
        } else if self.storage.wants_snapshot() {
            let begun = self.storage.begin_snapshot(Reach::Alone);
            self.trouble = begun.err().or(self.trouble.take());
        }
    }

    /// Syncs the log to the disk, with all added keys.
    pub(super) fn sync(&mut self) -> Result<(), Error> {
        let synced = self.storage.journal().and_then(Journal::sync);
        synced.map_err(|error| self.failed("synced", &error))?;
        self.tend();
        match self.trouble.take() {
            Some(error) => {
                let text = format!("no snapshot could be taken ({error}); the log keeps growing");
                Err(Error::new(ErrorKind::Storage, text))
            }
            None => Ok(()),
        }
    }

    /// Removes all keys from the filter and from the folder.
    pub(super) fn empty(&mut self) -> Result<(), Error> {
        let head = self.storage.journal().map(|journal| journal.position().head);
        let emptied = head.and_then(|head| self.storage.rebase(head, true));
        emptied.map(drop).map_err(|error| self.failed("emptied", &error))
    }

    fn failed(&self, what: &str, error: &io::Error) -> Error {
        let dir = self.storage.folder.dir().display();
        let text = format!("the storage folder {dir} cannot be {what}: {error}");
        Error::new(ErrorKind::Storage, text)
    }
}

/// Returns the parameters with which a folder's filter is opened. If its kind permits another
/// capacity than the recorded one, the filter gets the wanted capacity.
fn reopened(recorded: &Parameters, wanted: &Parameters) -> Parameters {
    // An imported filter has no recorded capacity.
    match recorded.capacity() {
        Some(capacity) if wanted.capacity() != Some(capacity) => wanted.continuing(recorded),
        _ => recorded.clone(),
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // All keys are already in the log. No caller could receive an error of this last sync.
        let _ = self.storage.close(None);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::local_filter::tests::{growing, numbers, specs};
    use crate::{Algorithm, Filter, FilterExt, FilterSpec, LocalFilter};

    /// Number of flipped bits for each kind.
    const FLIPS: usize = 900;

    /// Copies the folder of an open filter. A killed process leaves the same files behind.
    fn killed(dir: &TempDir) -> TempDir {
        let copy = TempDir::new().unwrap();
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
        copy
    }

    /// Takes a snapshot of the filter.
    fn take_snapshot(filter: &LocalFilter) {
        let storage = &mut filter.kept().unwrap().storage;
        storage.begin_snapshot(Reach::Alone).unwrap();
        storage.ended_snapshot(true).unwrap().unwrap();
    }

    /// Returns the number of the last log record whose keys are in the newest snapshot.
    fn covered(dir: &TempDir) -> u64 {
        let look = urlseen_storage::look(dir.path()).unwrap();
        look.snapshots.iter().map(|snapshot| snapshot.last.number).max().unwrap()
    }

    #[test]
    fn snapshots_are_taken_while_keys_are_added() {
        let dir = TempDir::new().unwrap();
        let keys = |from: u32| (from..from + 1000).map(|number| number.to_string());
        let spec = FilterSpec::native(10_000, 1e-12);
        let policy = StoragePolicy { snapshot_bytes: 0, ..StoragePolicy::default() };
        let filter = LocalFilter::open_by(dir.path(), &spec, policy, false).unwrap();
        for round in 0..20 {
            assert!(filter.extend(keys(round * 1000)).unwrap().iter().all(|is_new| *is_new));
        }
        // If the filter is dropped while a snapshot is under way, no snapshot remains.
        filter.kept().unwrap().storage.ended_snapshot(true);
        filter.sync().unwrap();
        assert!(covered(&dir) > 0, "no snapshot was taken");
        drop(filter);

        let again = LocalFilter::open(&dir, &spec).unwrap();
        assert_eq!(again.len(), 20_000);
        assert!(again.extend(keys(0).chain(keys(19_000))).unwrap().iter().all(|is_new| !is_new));
        assert!(again.add("another").unwrap());
    }

    #[test]
    fn a_reopened_filter_of_any_kind_has_all_keys_except_deleted_ones() {
        for spec in specs() {
            let dir = TempDir::new().unwrap();
            let filter = LocalFilter::open(&dir, &spec).unwrap();
            assert!(filter.add("a").unwrap(), "{spec:?}");
            filter.delete().unwrap();
            assert!(!filter.contains("a").unwrap() && filter.add("b").unwrap(), "{spec:?}");
            drop(filter);
            let again = LocalFilter::open(&dir, &spec).unwrap();
            assert_eq!(again.contains_all(["a", "b"]).unwrap(), [false, true], "{spec:?}");
        }
    }

    #[test]
    fn a_reopened_filter_of_any_kind_has_forgotten_the_same_keys() {
        for (spec, has_snapshot) in specs().flat_map(|spec| [(spec.clone(), true), (spec, false)]) {
            let dir = TempDir::new().unwrap();
            let filter = LocalFilter::open(&dir, &spec).unwrap();
            filter.extend(["a", "b", "c"]).unwrap();
            let forgotten = filter.forget_all(["a", "b", "d"]).unwrap();
            assert_eq!(forgotten, [true, true, false], "{spec:?}");
            if has_snapshot {
                take_snapshot(&filter);
                assert_eq!(covered(&dir), 2, "{spec:?}");
            }
            assert!(filter.add("b").unwrap() && filter.forget("c").unwrap(), "{spec:?}");
            let copy = killed(&dir);
            drop(filter);
            for dir in [dir, copy] {
                let again = LocalFilter::open(&dir, &spec).unwrap();
                let seen = again.contains_all(["a", "b", "c"]).unwrap();
                assert_eq!(seen, [false, true, false], "{spec:?}");
                assert!(again.add("a").unwrap(), "{spec:?}");
            }
        }
    }

    /// Step 11 of the proof in ARCHITECTURE.md, for the real kinds: a folder in which one bit was
    /// flipped gives the right verdicts, or it is refused by file and byte.
    #[test]
    fn a_flipped_bit_in_a_folder_of_any_kind_gives_no_wrong_verdict() {
        for (seed, spec) in (0..).zip(specs()) {
            let dir = TempDir::new().unwrap();
            let filter = LocalFilter::open(&dir, &spec).unwrap();
            filter.extend(numbers(0..40)).unwrap();
            filter.forget_all(numbers(0..10)).unwrap();
            take_snapshot(&filter);
            filter.extend(numbers(40..60)).unwrap();
            filter.forget_all(numbers(50..60)).unwrap();
            filter.sync().unwrap();
            let whole = killed(&dir);
            let files: Vec<_> =
                fs::read_dir(&whole).unwrap().map(|it| it.unwrap().path()).collect();
            let mut random = fastrand::Rng::with_seed(seed);
            let mut loaded = 0;
            for _ in 0..FLIPS {
                let file = &files[random.usize(..files.len())];
                let name = file.file_name().unwrap();
                let mut bytes = fs::read(file).unwrap();
                let Some(last) = (8 * bytes.len()).checked_sub(1) else { continue };
                let bit = random.usize(..=last);
                bytes[bit / 8] ^= 1 << (bit % 8);
                let flipped = killed(&whole);
                fs::write(flipped.path().join(name), bytes).unwrap();
                match LocalFilter::open(&flipped, &spec) {
                    Ok(filter) => {
                        loaded += 1;
                        let seen = filter.contains_all(numbers(0..60)).unwrap();
                        let expected = (0..60).map(|number| (10..50).contains(&number));
                        assert!(seen.into_iter().eq(expected), "{spec:?}: {name:?}, bit {bit}");
                    }
                    Err(error) => {
                        let error = error.to_string();
                        let name = name.to_str().unwrap();
                        let is_told = error.contains(name) && error.contains("byte");
                        assert!(
                            is_told || name == "header",
                            "{spec:?}: {name}, bit {bit}: {error}"
                        );
                    }
                }
            }
            assert!(loaded > 0 && loaded < FLIPS, "{spec:?}");
        }
    }

    #[test]
    fn a_grown_filter_is_reopened_with_another_capacity_and_all_keys() {
        let (dir, spec) = (TempDir::new().unwrap(), growing(1e-9));
        let filter = LocalFilter::open(&dir, &spec).unwrap();
        for from in (0..100_000).step_by(1000) {
            filter.extend(numbers(from..from + 1000)).unwrap();
        }
        filter.forget_all(numbers(0..10_000)).unwrap();
        let (copy, capacity) = (killed(&dir), filter.capacity());
        assert!(capacity >= 90_000, "{capacity}");
        for capacity in [100_000, 1000, 10] {
            let again = LocalFilter::open(&copy, &spec.clone().capacity(capacity)).unwrap();
            assert_eq!(again.len(), 90_000);
            assert!(again.capacity() >= capacity.max(90_000), "{}", again.capacity());
            let is_seen = again.contains_all(numbers(0..100_000)).unwrap();
            let (forgotten, kept) = is_seen.split_at(10_000);
            assert!(kept.iter().all(|seen| *seen) && !forgotten.contains(&true));
            assert_eq!(again.key_hashes().unwrap().count(), 90_000);
        }
        let error = LocalFilter::open(&copy, &spec.clone().grow_to(200_000)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mismatch);
        assert!(error.to_string().contains("filter.grow_to"), "{error}");
        assert!(LocalFilter::open(&copy, &spec.seed(8)).is_err(), "another seed");
    }

    #[test]
    fn an_empty_filter_is_reopened_with_the_wanted_capacity() {
        let (dir, spec) = (TempDir::new().unwrap(), growing(1e-9));
        drop(LocalFilter::open(&dir, &spec).unwrap());
        let again = LocalFilter::open(&dir, &spec.capacity(50_000)).unwrap();
        assert!(again.capacity() >= 50_000, "{}", again.capacity());
    }

    #[test]
    fn a_folder_with_another_spec_or_in_use_is_refused_unchanged() {
        let (dir, spec) = (TempDir::new().unwrap(), FilterSpec::native(1000, 1e-6));
        LocalFilter::open(&dir, &spec).unwrap().add("a").unwrap();
        for (other, part) in [
            (spec.clone().capacity(2000), "filter.capacity"),
            (spec.clone().error_rate(1e-3), "filter.error_rate"),
            (spec.clone().fingerprint(Algorithm::ScrapyRedis), "algorithm"),
        ] {
            let error = LocalFilter::open(&dir, &other).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Mismatch);
            assert!(error.to_string().contains(part), "{error}");
        }
        let other = FilterSpec::native(5, 1e-3).fingerprint(Algorithm::ScrapyRedis);
        let error = LocalFilter::open_or_create(&dir, &other).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mismatch, "{error}");
        let held = LocalFilter::open(&dir, &spec).unwrap();
        let error = LocalFilter::open(&dir, &spec).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Storage);
        assert!(error.to_string().contains("in use"), "{error}");
        assert!(held.contains("a").unwrap());
    }
}
