//! Storage folder that this process writes to.
//!
//! ```text
//! lock        locked by the process that has the folder open; names this process
//! header      the spec of the filter
//! snapshot-*  the filter at an earlier head
//! log-*       the changes after that head
//! archive     empty file: if it exists, pruned files of the log go to the archive
//! archive-*   pruned files of the log
//! notes       runs that may hold the lease, checkpoints of imports, what the clocks showed
//! ```

use std::io;
use std::path::Path;
use std::sync::Arc;

use urlseen_filter::Seed;
use urlseen_filter::choice::Fsync;
use urlseen_filter::id::RandomId;
use urlseen_fingerprint::FingerprintSpec;

use super::disk::{ASIDE, Dir, RealDisk};
use super::error::{Damage, Lost, OpenError, RecoveryError};
use super::header::{self, Begun, HEADER, Header, NOTES, Notes, StorageSpec};
use super::history::{Stand, Target, is_history, read_header};
use super::journal::Journal;
use super::lock::Hold;
use super::prune::{self, ArchiveState};
use super::recovery::{self, Recovered};
use super::requests::Requests;
use super::restore::Restore;
use super::snapshot_writer::{self, Rebase};
use crate::head::{Head, Position};

/// Storage folder that this process has locked. No other process writes to the folder while this
/// value, its [`Journal`] or a writer of its snapshots exists. While there is a journal or a
/// writer, all methods fail that recover or replace the filter.
#[derive(Debug)]
pub struct Folder {
    pub(super) dir: Dir,
    hold: Arc<Hold>,
    pub(super) begun: Option<Begun>,
    /// End of the log. `None` before a recovery, and again after a journal continues the log.
    pub(super) stand: Option<Stand>,
    /// Records beside the filter. A copy of the folder has no runs.
    pub notes: Notes,
    /// Damage of the notes, until a recovery reports it.
    damage: Option<Damage>,
}

impl Folder {
    /// Opens a folder to write to, and locks it without waiting. Makes a missing folder, readable
    /// by this user alone. Removes half-written files. Dropping the value removes a new folder in
    /// which no filter was begun.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        Self::open_on(RealDisk::at(dir))
    }

    pub(super) fn open_on(dir: Dir) -> Result<Self, OpenError> {
        let path = || dir.path().to_owned();
        let failed = |reason| OpenError::Io { dir: path(), reason };
        let hold = Hold::take(&dir).map_err(failed)?;
        let hold = hold.map_err(|holder| OpenError::Locked { dir: path(), holder })?;
        for file in dir.list().map_err(failed)? {
            if file.name.ends_with(ASIDE) {
                dir.remove(&file.name).map_err(failed)?;
            }
        }
        let begun = read_header(&dir)?;
        let (mut notes, damage) = match Notes::read(&dir) {
            Ok(notes) => (notes, None),
            Err(error) => (Notes::default(), Some(error.damage().map_err(failed)?)),
        };
        if notes.lock != hold.inode {
            notes.runs.clear();
        }
        // A copy of a folder may be restored in parts.
        if notes.filter != begun.as_ref().map(|it| it.header.filter) {
            notes.checkpoints.clear();
        }
        Ok(Self { dir, hold: Arc::new(hold), begun, stand: None, notes, damage })
    }

    /// Returns the folder's path.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the requests that the disk has not answered yet.
    pub fn requests(&self) -> &Requests {
        self.dir.requests()
    }

    /// Returns the header, which has the seed and the geometry of the filter. `None` if the folder
    /// has no filter yet.
    pub fn header(&self) -> Option<&Header> {
        self.begun.as_ref().map(|begun| &begun.header)
    }

    /// Begins a new folder with an empty filter, which has the head `at` and the id `filter`. Draws
    /// a seed if `spec` has none. All data is on the disk when the method returns. Until then, the
    /// folder counts as new.
    ///
    /// # Panics
    /// If the folder already has a filter: see [`Folder::erase`].
    pub fn begin(&mut self, spec: &StorageSpec, filter: RandomId, at: Head) -> io::Result<&Header> {
        assert!(self.begun.is_none(), "a folder is begun once");
        let mut spec = spec.clone();
        spec.filter.parameters = spec.filter.parameters.seeded(Seed::random);
        let header = Header::new(filter, &spec);
        let begun = Begun { dir: Dir::clone(&self.dir), header };
        self.drop_history()?;
        let position = snapshot_writer::empty(&begun, at)?;
        header::write(&self.dir, HEADER, &begun.header.encode())?;
        self.stand = Some((position, None));
        Ok(&self.begun.insert(begun).header)
    }

    /// Records that fingerprints are computed by another spec from now on. The fingerprints in the
    /// filter stay as they are.
    ///
    /// # Errors
    /// The header cannot be written. Then it has the earlier or the new spec.
    ///
    /// # Panics
    /// If the folder is new.
    pub fn compute_by(&mut self, fingerprint: FingerprintSpec) -> io::Result<()> {
        let begun = self.begun.as_mut().expect("the folder has a filter");
        let mut header = begun.header.clone();
        header.spec.filter.fingerprint = fingerprint;
        header::write(&self.dir, HEADER, &header.encode())?;
        begun.header = header;
        Ok(())
    }

    /// Deletes all files. After that, the folder counts as new. If the process is killed meanwhile,
    /// some files remain, and the caller must erase the folder again.
    pub fn erase(&mut self) -> io::Result<()> {
        self.renew()?;
        self.drop_history()?;
        self.notes = Notes::default();
        for name in [NOTES, prune::ARCHIVE, HEADER] {
            self.dir.remove_if_there(name)?;
        }
        self.begun = None;
        self.dir.sync()
    }

    /// Removes the snapshots, the log and its archive.
    fn drop_history(&self) -> io::Result<()> {
        prune::clear_archive(&self.dir)?;
        for file in self.dir.list()? {
            if is_history(&file) {
                self.dir.remove(&file.name)?;
            }
        }
        // The header is removed after this sync: no history is ever without its header.
        self.dir.sync()
    }

    /// Changes the notes. They are on the disk when the method returns. Before it records a
    /// checkpoint, the caller must sync the log up to that checkpoint.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn note(&mut self, change: impl FnOnce(&mut Notes)) -> io::Result<()> {
        change(&mut self.notes);
        self.notes.lock = self.hold.inode;
        self.notes.filter = self.header().map(|header| header.filter);
        header::write(&self.dir, NOTES, &self.notes)
    }

    /// Notes that `run` is about to take the lease, and returns the earlier runs. Each of them held
    /// the lock of the folder. This process holds the lock now, so they have ended.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn announce(&mut self, run: RandomId) -> io::Result<Vec<RandomId>> {
        let mut dead = self.notes.runs.clone();
        dead.retain(|&other| other != run);
        let all = std::iter::once(run).chain(dead.iter().copied());
        self.note(|notes| notes.runs = all.take(header::RUNS_MAX).collect())?;
        Ok(dead)
    }

    /// Recovers the filter to `target`: loads the newest snapshot from which `target` can be
    /// reached, and replays the log after it. Then deletes all records and snapshots after the
    /// target, so that the log can continue there.
    ///
    /// After a failure, the filter may have a part of its content. The folder can still be
    /// recovered to the same heads as before, unless the failure came during the deletion.
    pub fn recover(
        &mut self,
        target: Target,
        filter: &mut dyn Restore,
    ) -> Result<Recovered, RecoveryError> {
        self.renew()?;
        let begun = self.begun.as_ref().ok_or(RecoveryError::Fresh)?;
        let (mut recovered, tail) = recovery::recover(begun, target, filter)?;
        recovered.damaged.extend(self.damage.take());
        self.stand = Some((recovered.position, tail));
        Ok(recovered)
    }

    /// Returns the damage of the log that [`Folder::recover`] refuses, and what the damage makes
    /// unusable.
    ///
    /// # Errors
    /// If the disk fails, or the folder has no state that can be loaded.
    pub fn damage(&self) -> Result<Option<(Damage, Lost)>, RecoveryError> {
        self.begun.as_ref().map_or(Ok(None), recovery::damage)
    }

    /// Ends the log before its damage: the filter loses all later records. The damaged file of the
    /// log and the later files stay, under names that begin with `damaged-`.
    ///
    /// # Errors
    /// If the disk fails, or the folder has no state that can be loaded.
    pub fn cut_at_damage(&mut self) -> Result<(), RecoveryError> {
        self.renew()?;
        recovery::cut_at_damage(self.begun())
    }

    /// Replaces the content of the folder with the caller's filter, whose head becomes `at`. The
    /// caller writes every shard once through the returned writer. The writer then removes all
    /// older files. If the process is killed meanwhile, the folder is unchanged, or recovers to
    /// `at`.
    ///
    /// # Panics
    /// If the folder has no filter yet.
    pub fn rebase(&mut self, at: Head) -> io::Result<Rebase<'_>> {
        self.renew()?;
        let begun = self.begun.as_ref().expect("the folder was begun");
        Rebase::begin(begun, at, &mut self.stand)
    }

    /// Starts or stops archiving the files that are pruned from the log. Files that were pruned
    /// before are in no archive.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn keep_archive(&mut self, keep: bool) -> io::Result<()> {
        prune::turn_archive(&self.dir, keep)
    }

    /// Returns size and completeness of the archive, from the headers of its files.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn archive(&self) -> io::Result<ArchiveState> {
        prune::archive_state(self.begun())
    }

    /// Prepares to recover or replace the filter.
    fn renew(&mut self) -> io::Result<()> {
        if Arc::strong_count(&self.hold) > 1 {
            return Err(io::Error::other("the log of the storage folder is still open"));
        }
        self.stand = None;
        Ok(())
    }

    pub(super) fn begun(&self) -> &Begun {
        self.begun.as_ref().expect("the folder was begun")
    }

    /// Opens the log to continue at `position`. Each position can be used only once. `position`
    /// comes from [`Folder::begin`], [`Recovered::position`] or [`Rebase::finish`].
    ///
    /// # Errors
    /// If the disk fails, or the log does not end at `position`.
    pub fn journal(&mut self, position: Position, fsync: Fsync) -> io::Result<Journal> {
        match &self.stand {
            &Some((at, tail)) if at == position => {
                let journal = Journal::open(self.begun(), position, tail, fsync, &self.hold)?;
                self.stand = None;
                Ok(journal)
            }
            _ => Err(io::Error::other(format!("the log does not end at {position}"))),
        }
    }
}
