//! Rotation: an empty filter takes the place of the filter in a folder, and the earlier filter goes
//! to a folder beside it.
//!
//! The new filter is begun in the folder beside. Then the two folders exchange their names, in one
//! step. So at each moment there is one complete filter at the path, and this process has its lock.
//! The header of the new filter names the earlier one. So a crawl that Redis still ties to the
//! earlier filter can go on with the new one.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::begun::Begun;
use super::disk::{self, RealDisk};
use super::error::OpenError;
use super::folder::Folder;
use super::header::StorageSpec;
use crate::filter::id::RandomId;
use crate::storage::head::Head;

/// Both folders after a rotation. This process has the locks of both.
#[derive(Debug)]
pub struct Rotated {
    /// The folder at its path, with an empty filter.
    pub folder: Folder,
    /// The folder beside it, with the earlier filter.
    pub earlier: Folder,
}

/// Rotation that failed before it changed the folder.
#[derive(Debug, thiserror::Error)]
#[error("the filter stays as it is: {reason}")]
pub struct NotRotated {
    /// The folder, with its earlier filter. It stays locked.
    pub folder: Folder,
    /// Reason of the failure.
    #[source]
    pub reason: OpenError,
}

impl Folder {
    /// Replaces the filter of the folder with an empty filter with the head `at`. The earlier
    /// filter goes to a folder beside this one, with the id of the filter after its name. The
    /// earlier filter must be closed. If the process is killed meanwhile, the folder has either
    /// filter, and the rotation can be repeated.
    ///
    /// # Errors
    /// The disk fails, or another folder already has the name.
    ///
    /// # Panics
    /// If the folder has no filter.
    pub fn rotate(mut self, spec: &StorageSpec, at: Head) -> Result<Rotated, Box<NotRotated>> {
        let rotated = self.check_closed().and_then(|()| self.begin_beside(spec, at));
        match rotated.and_then(|new| self.exchange(new)) {
            Ok(folder) => Ok(Rotated { folder, earlier: self }),
            Err(reason) => Err(Box::new(NotRotated { folder: self, reason })),
        }
    }

    /// Fails if the log or a snapshot is still open, because both know the path of the folder.
    fn check_closed(&mut self) -> Result<(), OpenError> {
        if Arc::get_mut(&mut self.tenure.hold).is_some() {
            return Ok(());
        }
        let (dir, reason) = (self.dir().to_owned(), io::Error::other("its log is still open"));
        Err(OpenError::Io { dir, reason })
    }

    /// Begins the new filter in a folder beside this one.
    fn begin_beside(&self, spec: &StorageSpec, at: Head) -> Result<Self, OpenError> {
        let earlier = self.header().expect("the folder was begun").filter();
        let dir = beside(self.dir(), RandomId::new(earlier));
        let failed = |reason| OpenError::Io { dir: dir.clone(), reason };
        let mut new = Self::open(&dir)?;
        match new.header() {
            None => {}
            // A rotation was killed before it exchanged the folders.
            Some(header) if header.earlier() == Some(earlier) => new.erase().map_err(failed)?,
            Some(_) => {
                let reason = "it holds a filter, and the earlier filter would get this name: \
                              rename or remove it";
                return Err(failed(io::Error::other(reason)));
            }
        }
        let begun = new.begin_after(Some(earlier), spec, RandomId::random().get(), at).map(drop);
        // A run that is killed after the exchange may still hold the lease.
        let begun = begun.and_then(|()| new.record_runs(&self.runs()));
        match begun {
            Ok(()) => Ok(new),
            Err(reason) => {
                // The next rotation replaces what remains.
                let _ = new.erase();
                Err(failed(reason))
            }
        }
    }

    /// Exchanges this folder with `new`, and returns `new`. This folder keeps the earlier filter.
    fn exchange(&mut self, mut new: Self) -> Result<Self, OpenError> {
        let (place, beside) = (self.dir().to_owned(), new.dir().to_owned());
        if let Err(reason) = disk::exchange(&place, &beside) {
            // The next rotation replaces what remains.
            let _ = new.erase();
            return Err(OpenError::Io { dir: place, reason });
        }
        if let Err(reason) = disk::sync_above(&place) {
            // If the folders cannot be exchanged back, the next look at the lock ends the run.
            let _ = disk::exchange(&place, &beside);
            return Err(OpenError::Io { dir: place, reason });
        }
        self.moved(&beside);
        new.moved(&place);
        Ok(new)
    }

    /// Notes that the directory was renamed.
    fn moved(&mut self, path: &Path) {
        self.dir = RealDisk::at(path);
        let begun = self.begun.take();
        self.begun = begun.map(|begun| Begun { dir: Arc::clone(&self.dir), ..begun });
        let hold = Arc::get_mut(&mut self.tenure.hold).expect("nothing else has the folder");
        hold.moved(Arc::clone(&self.dir));
    }

    /// Deletes the folder with its files.
    ///
    /// # Errors
    /// The disk fails.
    pub fn remove(self) -> io::Result<()> {
        disk::remove_all(self.dir())
    }
}

/// Returns the path of the folder beside `dir` for the filter with this id.
fn beside(dir: &Path, filter: RandomId) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push(format!(".{filter}"));
    PathBuf::from(name)
}
