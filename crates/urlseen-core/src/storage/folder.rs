//! The storage folder, opened by the one process that writes it.
//!
//! ```text
//! lock        locked by the process that has the folder open; names it
//! lease       the runs that may hold the crawl's lease in Redis
//! header      the spec of the filter
//! snapshot-*  the filter at an earlier head
//! log-*       the changes since then
//! archive     empty: the folder archives what it prunes from the log
//! archive-*   fingerprints let through before that
//! imports     checkpoints of imports
//! ages        moments by which snapshots existed
//! ```

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::ages;
use super::archive;
use super::cut::Stand;
use super::difference::Difference;
use super::dir::{ASIDE, Dir};
use super::disk::{Disk, RealDisk};
use super::error::{OpenError, RecoveryError};
use super::header::{self, Header, StorageSpec};
use super::imports::{self, Checkpoint};
use super::journal::Journal;
use super::lease;
use super::lock::{Hold, Shared, Turn};
use super::reader::{is_history, read_header};
use super::rebase::Rebase;
use super::recovery::{self, Recovered};
use super::requests::Requests;
use super::restore::Restore;
use super::scan::Target;
use super::segment;
use super::snapshot;
use super::snapshot_writer::SnapshotWriter;
use crate::filter::choice::Fsync;
use crate::filter::{Blob, Seed, ShardId};
use crate::storage::head::{Head, Position};

/// A storage folder, locked. No other process writes to it while this value, a [`Journal`] or a
/// [`SnapshotWriter`] from it lives.
#[derive(Debug)]
pub struct Folder {
    pub(super) dir: Dir,
    shared: Arc<Shared>,
    header: Option<Header>,
    /// End of the log, and its file, until a journal is made that continues there.
    stand: Option<Stand>,
}

/// Sizes of the files in a storage folder.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Number of snapshot files.
    pub snapshots: u64,
    /// Bytes of the log's files.
    pub log_bytes: u64,
    /// Bytes of the archive's files.
    pub archive_bytes: u64,
}

impl Folder {
    /// Opens a folder to write to. Makes it, readable by this user alone, if there is none; removes
    /// a new folder at the end unless it was begun. Takes the lock without waiting for it, and
    /// removes half-written files.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        Self::open_on(Arc::new(RealDisk), dir)
    }

    pub(super) fn open_on(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, OpenError> {
        let dir = Dir::new(disk, path);
        let failed = |reason| OpenError::Io { dir: path.to_owned(), reason };
        let hold = Hold::take(&dir).map_err(failed)?;
        let hold = hold.map_err(|holder| OpenError::Locked { dir: path.to_owned(), holder })?;
        let prepare = || {
            let mut files = dir.list()?;
            for file in files.extract_if(.., |file| file.name.ends_with(ASIDE)) {
                dir.remove(&file.name)?;
            }
            Ok(files)
        };
        let files = prepare().map_err(failed)?;
        let header = read_header(&dir, &files)?;
        Ok(Self { dir, shared: Arc::new(Shared::new(hold)), header, stand: None })
    }

    /// Returns the folder's path.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns what the disk has not answered yet.
    pub fn requests(&self) -> &Requests {
        self.dir.requests()
    }

    /// Returns the header, with the seed and the geometry that the filter must be started with;
    /// `None` if the folder was not begun.
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Begins a new folder with an empty filter at `at`, under the id `filter`. Draws a seed if
    /// `spec` leaves it open. Everything is on the disk when this returns; before that, the folder
    /// counts as new.
    ///
    /// # Panics
    /// If it was begun before: see [`Folder::erase`].
    pub fn begin(&mut self, spec: &StorageSpec, filter: u64, at: Head) -> io::Result<&Header> {
        assert!(self.header.is_none(), "a folder is begun once");
        let mut spec = spec.clone();
        spec.filter.parameters = spec.filter.parameters.seeded(Seed::random);
        let header = Header::new(filter, &spec);
        self.drop_history()?;
        let position = snapshot::empty(&self.dir, &header, at)?;
        self.dir.write_aside(header::NAME, &header.encode())?;
        self.dir.replace(header::NAME)?;
        self.dir.sync()?;
        self.stand = Some((position, None));
        Ok(self.header.insert(header))
    }

    /// Returns true if a filter of RedisBloom may be imported: the folder is new, or an import into
    /// it was interrupted.
    pub fn awaits_import(&self) -> io::Result<bool> {
        let Some(header) = &self.header else { return Ok(true) };
        if !header.spec().filter.parameters.is_imported() {
            return Ok(false);
        }
        let files = self.dir.list()?;
        let mut history = files.iter().filter(|file| is_history(file));
        Ok(history
            .all(|file| snapshot::seq(&file.name).is_some() && snapshot::EMPTY.contains(&file.len)))
    }

    /// Imports a filter of RedisBloom into a folder that [awaits](Folder::awaits_import) it.
    /// Everything is on the disk when this returns. If the process is killed meanwhile, the folder
    /// still awaits the import.
    ///
    /// # Panics
    /// If the folder does not await an import, or `spec` is of another filter.
    pub fn import(&mut self, spec: &StorageSpec, id: u64, filter: &dyn Blob) -> io::Result<()> {
        assert!(
            spec.filter.parameters.is_imported() && self.awaits_import()?,
            "not to be imported"
        );
        if self.header.is_none() {
            self.begin(spec, id, Head::START)?;
        }
        let mut rebase = self.rebase(Head::START)?;
        rebase.write(ShardId::WHOLE, filter)?;
        rebase.finish().map(drop)
    }

    /// Deletes everything; the folder is new then. If the process is killed meanwhile, some files
    /// are gone, and the caller must erase the folder again. Earlier journals and snapshot writers
    /// fail from now on.
    pub fn erase(&mut self) -> io::Result<()> {
        self.shared.next_turn();
        self.stand = None;
        self.drop_history()?;
        for name in [archive::NAME, lease::NAME, imports::NAME, ages::NAME, header::NAME] {
            self.dir.remove_if_there(name)?;
        }
        self.header = None;
        self.dir.sync()
    }

    /// Removes the snapshots, the log and its archive.
    fn drop_history(&self) -> io::Result<()> {
        archive::clear(&self.dir)?;
        for file in self.dir.list()? {
            if is_history(&file) {
                self.dir.remove(&file.name)?;
            }
        }
        // The header is removed after this sync: no history is ever without its header.
        self.dir.sync()
    }

    /// Compares the folder's spec with the wanted one. A new folder fits every spec.
    pub fn check(&self, spec: &StorageSpec) -> Result<(), Vec<Difference>> {
        let differences = self.header.as_ref().map(|header| header.differences(spec));
        differences.filter(|all| !all.is_empty()).map_or(Ok(()), Err)
    }

    /// Returns the ids of the runs that may hold the crawl's lease, newest first. In a copy of the
    /// folder there are none.
    pub fn runs(&self) -> Vec<u64> {
        lease::read(&self.dir, self.shared.hold.inode())
    }

    /// Records the ids of runs, newest first, but at most 64. They are on the disk when this
    /// returns.
    pub fn record_runs(&mut self, runs: &[u64]) -> io::Result<()> {
        lease::write(&self.dir, self.shared.hold.inode(), runs)
    }

    /// Returns the known checkpoints of imports into this filter.
    pub fn checkpoints(&self) -> Vec<Checkpoint> {
        let filter = self.header.as_ref().map(Header::filter);
        filter.map(|filter| imports::read(&self.dir, filter)).unwrap_or_default()
    }

    /// Records checkpoints, and replaces the earlier ones of the same sources. They are on the disk
    /// when this returns. The caller has synced the log up to there before.
    ///
    /// # Panics
    /// If the folder was not begun.
    pub fn record_checkpoints(&mut self, new: &[Checkpoint]) -> io::Result<()> {
        imports::record(&self.dir, self.begun().filter(), new)
    }

    /// Deletes the checkpoints of imports: the filter may lack some of what the imports added.
    pub fn drop_checkpoints(&mut self) -> io::Result<()> {
        imports::clear(&self.dir)
    }

    /// Recovers the filter to `target`, from the newest snapshot that leads there and from the log.
    /// Then drops everything after the target, for good, so that the log can continue there.
    ///
    /// If this fails, the folder still leads to all heads that it led to, unless the failure came
    /// while it dropped files. The filter may have received a part of its content then. Earlier
    /// journals and snapshot writers fail from now on.
    pub fn recover(
        &mut self,
        target: Target,
        filter: &mut dyn Restore,
    ) -> Result<Recovered, RecoveryError> {
        self.shared.next_turn();
        self.stand = None;
        let header = self.header.as_ref().ok_or(RecoveryError::Fresh)?;
        let (recovered, tail) = recovery::recover(&self.dir, header, target, filter)?;
        self.stand = Some((recovered.position, tail));
        Ok(recovered)
    }

    /// Replaces everything in the folder with the caller's filter, at `at`. The caller writes every
    /// shard once through the returned writer, which then removes all older files. If the process
    /// is killed meanwhile, the folder is unchanged, or recovers to `at`. Earlier journals and
    /// snapshot writers fail from now on.
    ///
    /// # Panics
    /// If the folder was not begun.
    pub fn rebase(&mut self, at: Head) -> io::Result<Rebase<'_>> {
        self.shared.next_turn();
        self.stand = None;
        let shared = self.shared();
        let header = self.header.as_ref().expect("the folder was begun");
        Rebase::begin(&self.dir, header, shared, &mut self.stand, at)
    }

    /// Starts or stops archiving the files that are pruned from the log. Files that were pruned
    /// before are in no archive.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn keep_archive(&mut self, keep: bool) -> io::Result<()> {
        archive::turn(&self.dir, keep)
    }

    /// Returns the extent of the archive, from the ends of its files.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn archive(&self) -> io::Result<archive::Standing> {
        archive::standing(&self.dir, self.begun())
    }

    /// Returns the present sizes of the folder's files.
    pub fn usage(&self) -> io::Result<Usage> {
        let mut usage = Usage::default();
        for file in self.dir.list()? {
            usage.snapshots += u64::from(snapshot::seq(&file.name).is_some());
            if segment::follows(&file.name).is_some() {
                usage.log_bytes += file.len;
            }
            if archive::is_part(&file) {
                usage.archive_bytes += file.len;
            }
        }
        Ok(usage)
    }

    /// Returns the lock and the current turn, for writers that hold neither.
    fn shared(&self) -> (Arc<Shared>, Turn) {
        (Arc::clone(&self.shared), *self.shared.turn())
    }

    /// Returns the header of a folder that was begun.
    fn begun(&self) -> &Header {
        self.header.as_ref().expect("the folder was begun")
    }

    /// Opens the log to continue at `position`, once for each position. [`Folder::begin`],
    /// [`Recovered::position`] and [`Rebase::finish`] give such positions.
    ///
    /// # Errors
    /// If the disk fails, or the log does not end at `position`.
    pub fn journal(&mut self, position: Position, fsync: Fsync) -> io::Result<Journal> {
        let header = self.begun();
        match &self.stand {
            Some((at, tail)) if *at == position => {
                let (filter, tail, shared) = (header.filter(), tail.as_ref(), self.shared());
                let journal = Journal::open(&self.dir, filter, position, tail, fsync, shared)?;
                self.stand = None;
                Ok(journal)
            }
            _ => Err(io::Error::other(format!("the log was not brought to {position}"))),
        }
    }

    /// Begins a snapshot. Roll the journal before the first shard is written: then the log before
    /// it can be dropped.
    ///
    /// # Errors
    /// If the disk fails, or another snapshot is still being written.
    ///
    /// # Panics
    /// If the folder was not begun.
    pub fn snapshot_writer(&self) -> io::Result<SnapshotWriter> {
        SnapshotWriter::new(&self.dir, self.begun(), self.shared())
    }
}
