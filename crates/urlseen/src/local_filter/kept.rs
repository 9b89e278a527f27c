//! Filter in memory that is stored in a folder.

use std::io::{self, Read};
use std::path::Path;

use super::shared::{Judged, SharedFilter, no_room};
use crate::{Error, ErrorKind};
use urlseen_core::filter::native::KeyHash;
use urlseen_core::filter::{FilterSpec, Seed, ShardId};
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::storage::{
    Change, Copied, FilterStorage, Folder, Head, Journal, LiveFilter, Position, Restore, Section,
    StoragePolicy, StorageSpec, Target,
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
    /// Opens the folder `dir`, and recovers its filter.
    pub(super) fn open(
        dir: &Path,
        filter: FilterSpec,
        policy: StoragePolicy,
    ) -> Result<Self, Error> {
        let folder = Folder::open(dir).map_err(|error| Error::new(ErrorKind::Storage, error))?;
        let crawl = folder.header().map_or(CRAWL, |header| &header.spec().crawl).to_owned();
        let spec = StorageSpec { crawl, filter };
        if let Err(differences) = folder.check(&spec) {
            let all: Vec<_> = differences.iter().map(ToString::to_string).collect();
            let (dir, all) = (dir.display(), all.join("; "));
            let text = format!("the folder {dir} has a filter with another spec: {all}");
            return Err(Error::new(ErrorKind::Mismatch, text));
        }
        let parameters = match folder.header() {
            Some(header) => header.spec().filter.parameters.clone(),
            None => spec.filter.parameters.seeded(Seed::random),
        };
        let is_new = folder.header().is_none();
        let filter = SharedFilter::new(parameters.clone())?;
        let mut storage = FilterStorage::new(filter.clone(), folder, policy);
        let recovered = if is_new {
            let filter = FilterSpec { parameters, ..spec.filter };
            storage.begin(&StorageSpec { filter, ..spec }, Head::START)
        } else {
            storage.recover(Target::Last)
        };
        recovered.map_err(|error| Error::new(ErrorKind::Storage, error))?;
        filter.lock().full.take().map_or(Ok(()), |full| Err(no_room(full)))?;
        Ok(Self { storage, filter, trouble: None })
    }

    /// Adds keys, and returns true for each new key. Writes the new keys to the log before it sets
    /// them in the filter.
    pub(super) fn add_all(&mut self, keys: &[Fingerprint]) -> Result<Vec<bool>, Error> {
        let key_hashes = self.filter.key_hashes(keys);
        let filter = self.filter.clone();
        let mut state = filter.lock();
        let Judged { is_new, new } = state.judge(&key_hashes)?;
        if !new.is_empty() {
            let added = keys.iter().zip(&is_new).filter(|(_, is_new)| **is_new);
            let added: Vec<Fingerprint> = added.map(|(key, _)| key.clone()).collect();
            let appended = self.storage.journal().and_then(|journal| {
                let mut group = journal.group();
                group.change(Change::Add, &added)?;
                let at = group.position();
                group.finish().map(|_| at)
            });
            state.at = appended.map_err(|error| self.failed("written to", &error))?;
            state.insert(&new)?;
        }
        drop(state);
        self.trouble = self.storage.tend().or(self.trouble.take());
        Ok(is_new)
    }

    /// Syncs the log to the disk, with all added keys.
    pub(super) fn sync(&mut self) -> Result<(), Error> {
        let synced = self.storage.journal().and_then(Journal::sync);
        synced.map_err(|error| self.failed("synced", &error))?;
        match self.storage.tend().or(self.trouble.take()) {
            Some(error) => {
                let text = format!("no snapshot could be taken ({error}); the log keeps growing");
                Err(Error::new(ErrorKind::Storage, text))
            }
            None => Ok(()),
        }
    }

    /// Removes all keys from the filter and from the folder.
    pub(super) fn empty(&mut self) -> Result<(), Error> {
        self.storage.empty();
        let head = self.storage.journal().map(|journal| journal.position().head);
        let emptied = head.and_then(|head| self.storage.rebase(head));
        emptied.map(drop).map_err(|error| self.failed("emptied", &error))
    }

    fn failed(&self, what: &str, error: &io::Error) -> Error {
        let dir = self.storage.folder.dir().display();
        let text = format!("the storage folder {dir} cannot be {what}: {error}");
        Error::new(ErrorKind::Storage, text)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // All keys are already in the log. No caller could receive an error of this last sync.
        let _ = self.storage.close(None);
    }
}

impl Restore for SharedFilter {
    fn clear(&mut self) {
        self.lock().filter.clear();
    }

    fn load(&mut self, section: Section, body: &mut dyn Read) -> io::Result<()> {
        let Section { shard, keys, len, .. } = section;
        self.lock().filter.load(shard, keys, len, body)
    }

    fn load_tombstone(&mut self, shard: ShardId, id: u128) {
        self.lock().filter.forget(KeyHash::named(shard, id));
    }

    fn add(&mut self, fingerprints: Vec<Fingerprint>, _: Position) {
        let key_hashes = self.key_hashes(&fingerprints);
        let mut state = self.lock();
        let full = state.filter.insert(&key_hashes).err();
        state.full = state.full.take().or(full);
    }

    fn forget(&mut self, fingerprints: Vec<Fingerprint>, _: Position) {
        let mut state = self.lock();
        self.key_hashes(&fingerprints).into_iter().for_each(|it| state.filter.forget(it));
    }
}

impl LiveFilter for SharedFilter {
    fn copy(&self, shard: ShardId, buffer: Vec<u8>) -> Option<Copied> {
        let state = self.lock();
        let (blob, tombstones) = state.filter.save(shard, buffer);
        Some(Copied { blob, at: state.at, tombstones })
    }

    fn stand(&self, at: Position) {
        self.lock().at = at;
    }

    fn bytes(&self) -> u64 {
        self.gauge().fill().bytes
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::local_filter::tests::specs;
    use crate::{Filter, FilterExt, FilterSpec, LocalFilter};

    /// Returns the number of the last log record whose keys are in the newest snapshot.
    fn covered(dir: &TempDir) -> u64 {
        let look = urlseen_core::storage::look(dir.path()).unwrap();
        look.snapshots.iter().map(|snapshot| snapshot.summary.last.number).max().unwrap()
    }

    #[test]
    fn snapshots_are_taken_while_keys_are_added() {
        let dir = TempDir::new().unwrap();
        let keys = |from: u32| (from..from + 1000).map(|number| number.to_string());
        let spec = FilterSpec::native(10_000, 1e-12);
        let policy = StoragePolicy { snapshot_bytes: 0, ..StoragePolicy::default() };
        let filter = LocalFilter::open_by(dir.path(), &spec, policy).unwrap();
        for round in 0..20 {
            assert!(filter.extend(keys(round * 1000)).unwrap().iter().all(|is_new| *is_new));
        }
        // If the filter is dropped while a snapshot is under way, no snapshot remains.
        filter.kept().unwrap().storage.wait_for_snapshot();
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
    fn a_folder_with_another_spec_or_in_use_is_refused_unchanged() {
        let (dir, spec) = (TempDir::new().unwrap(), FilterSpec::native(1000, 1e-6));
        LocalFilter::open(&dir, &spec).unwrap().add("a").unwrap();
        for (other, part) in [
            (spec.clone().capacity(2000), "filter.capacity"),
            (spec.clone().error_rate(1e-3), "filter.error_rate"),
            (spec.clone().keep_fragments(true), "keep_fragments"),
        ] {
            let error = LocalFilter::open(&dir, &other).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Mismatch);
            assert!(error.to_string().contains(part), "{error}");
        }
        let held = LocalFilter::open(&dir, &spec).unwrap();
        let error = LocalFilter::open(&dir, &spec).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Storage);
        assert!(error.to_string().contains("in use"), "{error}");
        assert!(held.contains("a").unwrap());
    }
}
