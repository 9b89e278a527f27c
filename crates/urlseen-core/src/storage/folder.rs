//! The storage folder, held by the one process that writes it.
//!
//! ```text
//! lock        locked by whoever has the folder open; says who that is
//! lease       which runs may hold the crawl's lease in Redis
//! header      what the folder was made for
//! snapshot-*  the filter as it was
//! log-*       what was added since
//! archive     empty: what goes from the log is archived
//! archive-*   fingerprints let through before that
//! imports     how far imports came
//! ages        how old snapshots are
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

/// A storage folder, locked: nobody else writes to it while this lives, nor while a [`Journal`] or
/// a [`SnapshotWriter`] that came from it does.
#[derive(Debug)]
pub struct Folder {
    pub(super) dir: Dir,
    shared: Arc<Shared>,
    header: Option<Header>,
    /// Where the log ends, and in which file, as long as no journal was made to go on from there.
    stand: Option<Stand>,
}

/// What lies in a storage folder.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Snapshots.
    pub snapshots: u64,
    /// Bytes of log.
    pub log_bytes: u64,
    /// Bytes of the archive.
    pub archive_bytes: u64,
}

impl Folder {
    /// Opens a folder to write to; makes it (readable by this user alone) where there is none, and
    /// then removes it at the end unless it was begun. Takes its lock without waiting for it, and
    /// removes what was left half written.
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

    /// Where it is.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns what the disk has not answered yet.
    pub fn requests(&self) -> &Requests {
        self.dir.requests()
    }

    /// What it was made for; `None` as long as it was not begun. The seed and the geometry that
    /// the filter must be started with are in here.
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Makes a new folder the memory of an empty filter at `at`, under the id `filter`. A seed that
    /// `spec` leaves open is drawn. Everything is on the disk when this returns; before that, the
    /// folder counts as new.
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

    /// Whether a filter of RedisBloom may be imported: the folder is new, or an import into it was
    /// broken off.
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

    /// Makes a folder that [awaits](Folder::awaits_import) it the memory of a filter of RedisBloom.
    /// Everything is on the disk when this returns. Killed in between, the folder still awaits it.
    ///
    /// # Panics
    /// If it does not await it, or `spec` is of another filter.
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

    /// Forgets everything: the folder is as new. Killed in between, some of it is gone, and it
    /// must be done again. Journals and snapshot writers made before are of no use any more.
    pub fn erase(&mut self) -> io::Result<()> {
        self.shared.next_turn();
        self.stand = None;
        self.drop_history()?;
        for name in [archive::NAME, lease::NAME, imports::NAME, ages::NAME, header::NAME] {
            match self.dir.remove(name) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.header = None;
        self.dir.sync()
    }

    /// Removes snapshots, the log, and what was archived of it.
    fn drop_history(&self) -> io::Result<()> {
        archive::clear(&self.dir)?;
        for file in self.dir.list()? {
            if is_history(&file) {
                self.dir.remove(&file.name)?;
            }
        }
        // A header stays longer than what it is the header of.
        self.dir.sync()
    }

    /// Compares what it was made for with what is wanted of it. A new folder will do for anything.
    pub fn check(&self, spec: &StorageSpec) -> Result<(), Vec<Difference>> {
        let differences = self.header.as_ref().map(|header| header.differences(spec));
        differences.filter(|all| !all.is_empty()).map_or(Ok(()), Err)
    }

    /// The ids of the runs that may hold the crawl's lease, newest first; none where this is a
    /// copy of the folder that they were recorded in.
    pub fn runs(&self) -> Vec<u64> {
        let read = lease::read(&self.dir, self.shared.hold.inode());
        // What cannot be read proves nothing.
        read.unwrap_or_default()
    }

    /// Records the ids of runs, newest first; no more than 64 are kept. On the disk when this
    /// returns.
    pub fn record_runs(&mut self, runs: &[u64]) -> io::Result<()> {
        lease::write(&self.dir, self.shared.hold.inode(), runs)
    }

    /// How far imports into this filter came, as far as that is known.
    pub fn checkpoints(&self) -> Vec<Checkpoint> {
        let filter = self.header.as_ref().map(Header::filter);
        filter.map(|filter| imports::read(&self.dir, filter)).unwrap_or_default()
    }

    /// Records how far imports came, in place of what was known of these sources. On the disk when
    /// this returns; the log must have been synced up to there before.
    ///
    /// # Panics
    /// If the folder was not begun.
    pub fn record_checkpoints(&mut self, new: &[Checkpoint]) -> io::Result<()> {
        imports::record(&self.dir, self.begun().filter(), new)
    }

    /// Forgets how far imports came: the filter may lack some of what they added.
    pub fn drop_checkpoints(&mut self) -> io::Result<()> {
        imports::clear(&self.dir)
    }

    /// Brings the filter to `target`, from the newest snapshot that leads there and the log, and
    /// drops what lies beyond it, so that the log can go on from there. What lies beyond is gone
    /// for good when this returns. Where it fails the folder still leads to all that it led to,
    /// unless it failed in dropping; `filter` may have been given some of it then. Journals and
    /// snapshot writers made before are of no use any more.
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

    /// Makes the filter as the caller has it the only thing remembered, at `at`: what it holds is
    /// written through the writer returned, every shard once, and then all older files go. Killed
    /// in between, the folder is as it was, or recovers to `at`. Journals and snapshot writers made
    /// before are of no use any more.
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

    /// Has what is pruned from the log archived from now on, or not. What was pruned before is in
    /// no archive.
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

    /// What lies in it now.
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

    /// The lock and the turn, for what is written without holding either.
    fn shared(&self) -> (Arc<Shared>, Turn) {
        (Arc::clone(&self.shared), *self.shared.turn())
    }

    /// What the folder is the memory of, which there is.
    fn begun(&self) -> &Header {
        self.header.as_ref().expect("the folder was begun")
    }

    /// The log, to go on from `position`: where [`Folder::begin`] began, or what
    /// [`Recovered::position`] or [`Rebase::finish`] said. Once for each.
    ///
    /// # Errors
    /// Where the disk fails, and where the log does not end at `position`.
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

    /// Begins a snapshot. Roll the journal before the first shard is written: the log can then be
    /// dropped up to there.
    ///
    /// # Errors
    /// Where the disk fails, and where another snapshot is still being written.
    ///
    /// # Panics
    /// If the folder was not begun.
    pub fn snapshot_writer(&self) -> io::Result<SnapshotWriter> {
        SnapshotWriter::new(&self.dir, self.begun(), self.shared())
    }
}
