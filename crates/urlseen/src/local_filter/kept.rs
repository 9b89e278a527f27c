//! A filter in memory that is kept in a storage folder.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::Inner;
use crate::{Error, ErrorKind, Fingerprints};
use urlseen_core::filter::choice::Fsync;
use urlseen_core::filter::native::KeyHash;
use urlseen_core::filter::{FilterSpec, Full, Parameters, Removal, Saved, ShardId, Sizing, id};
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::storage::{
    Finished, Folder, Head, Header, Journal, LogHandle, Moment, Position, Restore, Retention,
    Section, SnapshotWriter, StorageSpec, Target,
};

/// The crawl of a new folder: the default of `crawl.name`, so that the daemon takes it as it is.
const CRAWL: &str = "demo";

/// By how many bytes the log grows before a snapshot is taken, or an eighth of the filter's size if
/// that is more; how many bytes all files may have for the sake of going back further. Both as
/// configured by default.
const SNAPSHOT_BYTES: u64 = 64 << 20;
const HORIZON_BYTES: u64 = 16 << 30;

/// The folder, and what of the filter is not in its bits.
#[derive(Debug)]
pub(super) struct Kept {
    snapshot: Option<Snapshot>,
    /// Why the last snapshot failed.
    trouble: Option<io::Error>,
    folder: Folder,
    /// `None` once writing it failed in a way that cannot be mended.
    journal: Option<Journal>,
    /// What is set and is to pass once more, by the 128 bits that the layout makes of it.
    tombstones: HashMap<u128, ShardId>,
    /// By how many bytes the log grows before a snapshot.
    every: u64,
    /// How long the log is when the next one is due.
    snapshot_at: u64,
}

impl Kept {
    /// The filter that `dir` keeps.
    pub(super) fn open(
        dir: &Path,
        sizing: &Sizing,
        Fingerprints { algorithm, keep_fragments }: Fingerprints,
    ) -> Result<Inner, Error> {
        let failed = |error: io::Error| Error::new(ErrorKind::Storage, error);
        let mut folder =
            Folder::open(dir).map_err(|error| Error::new(ErrorKind::Storage, error))?;
        let crawl = folder.header().map_or(CRAWL, |header| &header.spec().crawl).to_owned();
        let parameters = Parameters::native(sizing, None);
        let filter = FilterSpec { parameters, algorithm, keep_fragments };
        let spec = StorageSpec { crawl, filter };
        if let Err(differences) = folder.check(&spec) {
            let all: Vec<_> = differences.iter().map(ToString::to_string).collect();
            let text =
                format!("the filter in {} is another one: {}", dir.display(), all.join("; "));
            return Err(Error::new(ErrorKind::Mismatch, text));
        }
        if folder.header().is_none() {
            folder.begin(&spec, id::random(), Head::START).map_err(failed)?;
        }
        let recorded = folder.header().map_or(&spec, Header::spec);
        let mut inner = Inner::new(&recorded.filter.parameters)?;
        let mut tombstones = HashMap::new();
        let mut filling = Filling { inner: &mut inner, tombstones: &mut tombstones, full: None };
        let recovered = folder.recover(Target::Last, &mut filling);
        let recovered = recovered.map_err(|error| Error::new(ErrorKind::Storage, error))?;
        if let Some(full) = filling.full {
            return Err(Error::new(ErrorKind::Memory, full));
        }
        let journal = folder.journal(recovered.position, Fsync::Interval).map_err(failed)?;
        let every = SNAPSHOT_BYTES.max(sizing.geometry().bytes() / 8);
        let kept = Self {
            snapshot: None,
            trouble: None,
            folder,
            journal: Some(journal),
            tombstones,
            every,
            // What was replayed is to be covered by a snapshot soon: 21 bytes a fingerprint.
            snapshot_at: every.saturating_sub(21 * recovered.fingerprints),
        };
        inner.kept = Some(kept);
        Ok(inner)
    }

    /// Whether a key is to pass once more.
    pub(super) fn forgot(&self, key_hash: KeyHash) -> bool {
        !self.tombstones.is_empty() && self.tombstones.contains_key(&key_hash.id())
    }

    /// A key was added: it does not pass again.
    pub(super) fn remember(&mut self, id: u128) {
        if !self.tombstones.is_empty() {
            self.tombstones.remove(&id);
        }
    }

    /// Writes keys down that are new.
    pub(super) fn append(&mut self, keys: &[Fingerprint]) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let appended = self.journal().and_then(|journal| journal.append_adds(keys));
        appended.map(drop).map_err(|error| self.failed("written to", &error))
    }

    /// Has all of it on the disk.
    pub(super) fn sync(&mut self) -> Result<(), Error> {
        let synced = self.journal().and_then(Journal::sync);
        synced.map_err(|error| self.failed("synced", &error))?;
        self.note_snapshot();
        match self.trouble.take() {
            Some(error) => {
                let text = format!("no snapshot could be taken ({error}); the log grows on");
                Err(Error::new(ErrorKind::Storage, text))
            }
            None => Ok(()),
        }
    }

    /// The filter is empty now: so is the folder.
    pub(super) fn empty(&mut self) -> Result<(), Error> {
        self.tombstones.clear();
        let emptied = self.rebase_empty();
        emptied.map_err(|error| self.failed("emptied", &error))
    }

    fn rebase_empty(&mut self) -> io::Result<()> {
        let head = self.journal()?.position().head;
        self.journal = None;
        let mut rebase = self.folder.rebase(head)?;
        for shard in rebase.shards() {
            rebase.write(shard, &Saved::default())?;
        }
        let position = rebase.finish()?;
        self.journal = Some(self.folder.journal(position, Fsync::Interval)?);
        self.snapshot_at = self.every;
        Ok(())
    }

    /// Leaves the folder with all of it on the disk.
    pub(super) fn close(&mut self) {
        if let Some(journal) = self.journal.take() {
            let head = journal.position().head;
            // What cannot be synced is written all the same, and there is nobody to tell.
            let _ = journal.close(head);
        }
    }

    /// What is under way; it ends when it is dropped.
    pub(super) fn take_snapshot(&mut self) -> Option<Snapshot> {
        self.snapshot.take()
    }

    /// Takes note of a snapshot that has come to its end.
    fn note_snapshot(&mut self) {
        if let Some(snapshot) = self.snapshot.take_if(|snapshot| snapshot.is_finished()) {
            self.trouble = snapshot.join().err();
        }
    }

    fn journal(&mut self) -> io::Result<&mut Journal> {
        let gone = || io::Error::other("the log could not be opened again");
        self.journal.as_mut().ok_or_else(gone)
    }

    fn failed(&self, what: &str, error: &io::Error) -> Error {
        let dir = self.folder.dir().display();
        Error::new(
            ErrorKind::Storage,
            format!("the storage folder {dir} cannot be {what}: {error}"),
        )
    }
}

/// A snapshot being taken on a thread of its own, shard by shard, while the filter is used.
/// Dropped, it ends soon and leaves nothing.
#[derive(Debug)]
pub(super) struct Snapshot {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Option<Finished>>>>,
}

impl Snapshot {
    /// Begins one where the log has grown long and none is under way. Where it cannot begin, the
    /// next one is tried when the log has grown as much again.
    pub(super) fn begin_if_due(inner: &mut Inner, shared: &Arc<Mutex<Inner>>) {
        let Some(kept) = &mut inner.kept else { return };
        kept.note_snapshot();
        let bytes = kept.journal.as_ref().map_or(0, Journal::bytes);
        if kept.snapshot.is_some() || bytes < kept.snapshot_at {
            return;
        }
        kept.snapshot_at = bytes + kept.every;
        match Self::begin(kept, shared) {
            Ok(snapshot) => kept.snapshot = Some(snapshot),
            Err(error) => kept.trouble = Some(error),
        }
    }

    fn begin(kept: &mut Kept, shared: &Arc<Mutex<Inner>>) -> io::Result<Self> {
        let journal = kept.journal()?;
        journal.roll()?;
        let (log, head) = (journal.handle(), journal.position().head);
        let writer = kept.folder.snapshot_writer()?;
        // A folder with batches of a crawl goes on reaching back as far as it does.
        let horizon = (head == Head::START).then(Moment::now);
        let retention = Retention { horizon, horizon_bytes: HORIZON_BYTES };
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, stopped) = (Arc::clone(shared), Arc::clone(&stop));
        let life = move || write(&shared, writer, &log, &retention, &stopped);
        let thread = std::thread::Builder::new().name("snapshot".to_owned()).spawn(life)?;
        Ok(Self { stop, thread: Some(thread) })
    }

    fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn join(mut self) -> io::Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let panicked = |_| Err(io::Error::other("the thread panicked"));
        thread.join().unwrap_or_else(panicked).map(drop)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Nobody waits for the result any more.
            let _ = thread.join();
        }
    }
}

fn write(
    shared: &Mutex<Inner>,
    mut writer: SnapshotWriter,
    log: &LogHandle,
    retention: &Retention,
    stop: &AtomicBool,
) -> io::Result<Option<Finished>> {
    let mut buffer = Vec::new();
    for shard in writer.shards() {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let (blob, at, tombstones) = {
            let mut inner: MutexGuard<'_, Inner> =
                shared.lock().unwrap_or_else(PoisonError::into_inner);
            let Inner { filter, kept, .. } = &mut *inner;
            let Some(kept) = kept else { return Ok(None) };
            let ids = kept.tombstones.iter().filter(|(_, of)| **of == shard);
            let ids: Vec<u128> = ids.map(|(&id, _)| id).collect();
            (filter.save(shard, buffer), kept.journal()?.position(), ids)
        };
        writer.write(shard, at, &*blob, &mut || Ok(()))?;
        writer.tombstones(shard, &tombstones);
        buffer = blob.into_buffer();
    }
    writer.finish(log, retention).map(Some)
}

/// A filter that is brought back.
struct Filling<'a> {
    inner: &'a mut Inner,
    tombstones: &'a mut HashMap<u128, ShardId>,
    /// Why something had no room.
    full: Option<Full>,
}

impl Restore for Filling<'_> {
    fn clear(&mut self) {
        self.inner.filter.clear();
        self.tombstones.clear();
    }

    fn load(&mut self, section: Section, body: &mut dyn Read) -> io::Result<()> {
        let Section { shard, keys, len, .. } = section;
        self.inner.filter.load(shard, keys, len, body)
    }

    fn load_tombstone(&mut self, shard: ShardId, id: u128) {
        if self.inner.filter.remove(KeyHash::named(shard, id)) == Removal::Unsupported {
            self.tombstones.insert(id, shard);
        }
    }

    fn add(&mut self, fingerprints: Vec<Fingerprint>, _: Position) {
        let key_hashes = self.inner.key_hashes(&fingerprints);
        for key_hash in &key_hashes {
            self.tombstones.remove(&key_hash.id());
        }
        let full = self.inner.filter.insert(&key_hashes).err();
        self.full = self.full.take().or(full);
    }

    fn forget(&mut self, fingerprints: Vec<Fingerprint>, _: Position) {
        for key_hash in self.inner.key_hashes(&fingerprints) {
            self.load_tombstone(key_hash.shard(), key_hash.id());
        }
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::{Filter, LocalFilter};

    /// How many records the newest snapshot covers.
    fn covered(dir: &TempDir) -> u64 {
        let look = urlseen_core::storage::look(dir.path()).unwrap();
        look.snapshots.iter().map(|snapshot| snapshot.last.number).max().unwrap()
    }

    #[test]
    fn snapshots_are_taken_while_keys_are_added() {
        let dir = TempDir::new().unwrap();
        let keys = |from: u32| (from..from + 1000).map(|number| number.to_string());
        let filter = LocalFilter::open(&dir, 100_000, 1e-12).unwrap();
        for round in 0..20 {
            // Each call finds the next one due.
            filter.with_kept(|kept| kept.snapshot_at = 0);
            assert!(filter.extend(keys(round * 1000)).unwrap().iter().all(|is_new| *is_new));
        }
        // One that is under way when the filter goes leaves nothing, so one more is waited for.
        while filter.with_kept(|kept| kept.snapshot.as_ref().is_some_and(|it| !it.is_finished())) {
            std::thread::yield_now();
        }
        filter.sync().unwrap();
        assert!(covered(&dir) > 0, "no snapshot was taken");
        drop(filter);

        let again = LocalFilter::open(&dir, 100_000, 1e-12).unwrap();
        assert_eq!(again.len(), 20_000);
        assert!(again.extend(keys(0).chain(keys(19_000))).unwrap().iter().all(|is_new| !is_new));
        assert!(again.add("another").unwrap());
    }

    #[test]
    fn what_is_deleted_stays_so() {
        let dir = TempDir::new().unwrap();
        let filter = LocalFilter::open(&dir, 1000, 1e-6).unwrap();
        assert!(filter.add("a").unwrap());
        filter.delete().unwrap();
        assert!(!filter.contains("a").unwrap() && filter.add("b").unwrap());
        drop(filter);
        let again = LocalFilter::open(&dir, 1000, 1e-6).unwrap();
        assert_eq!(again.contains_all(["a", "b"]).unwrap(), [false, true]);
    }

    #[test]
    fn another_filter_is_refused_and_left_alone() {
        let dir = TempDir::new().unwrap();
        LocalFilter::open(&dir, 1000, 1e-6).unwrap().add("a").unwrap();
        let other = Fingerprints { keep_fragments: true, ..Fingerprints::default() };
        for (refused, part) in [
            (LocalFilter::open(&dir, 2000, 1e-6), "filter.capacity"),
            (LocalFilter::open(&dir, 1000, 1e-3), "filter.error_rate"),
            (LocalFilter::open_for(&dir, 1000, 1e-6, other), "keep_fragments"),
        ] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Mismatch);
            assert!(error.to_string().contains(part), "{error}");
        }
        let held = LocalFilter::open(&dir, 1000, 1e-6).unwrap();
        let error = LocalFilter::open(&dir, 1000, 1e-6).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Storage);
        assert!(error.to_string().contains("in use"), "{error}");
        assert!(held.contains("a").unwrap());
    }

    impl LocalFilter {
        fn with_kept<T>(&self, look: impl FnOnce(&mut Kept) -> T) -> T {
            look(self.lock().kept.as_mut().expect("it is kept"))
        }
    }
}
