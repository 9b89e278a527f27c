//! Checks that a filter can continue a crawl, which change nothing, and the errors of a folder that
//! does not match the position of Redis.

use std::io;
use std::path::{Path, PathBuf};

use crate::engine::EngineError;
use urlseen_filter::descriptors;
use urlseen_filter::id::RandomId;
use urlseen_storage::{AtRest, Head, Header, Look, OpenError, RecoveryError, Target, look};

/// Position of a crawl in Redis.
#[derive(Debug, Clone, Copy)]
pub struct CrawlPosition {
    /// Head of the crawl; `None` if Redis has no state of the crawl.
    pub head: Option<Head>,
    /// Id of the filter that Redis names.
    pub filter: Option<RandomId>,
}

impl CrawlPosition {
    /// Returns the head of a crawl that has committed batches. Before batch 1 there is no state
    /// that could be lost.
    fn committed(self) -> Option<Head> {
        self.head.filter(|head| head.seq > 0)
    }

    /// Checks that the filter of a folder can belong to the crawl. `header` is the header of the
    /// folder `dir`; `None` if the folder is new or missing. With `emit_again`, the filter may lack
    /// batches that Redis has.
    ///
    /// # Errors
    /// Redis has batches of the crawl that the filter lacks, or names another filter.
    pub fn check_header(
        self,
        dir: &Path,
        header: Option<&Header>,
        emit_again: bool,
    ) -> Result<(), MismatchError> {
        let Some(theirs) = self.committed() else { return Ok(()) };
        match (header, self.filter) {
            (None, _) if !emit_again => Err(MismatchError::New { dir: dir.to_owned(), theirs }),
            (Some(header), Some(theirs)) if header.filter != theirs => {
                let (dir, ours) = (dir.to_owned(), header.filter);
                Err(MismatchError::OtherFilter { dir, ours, theirs })
            }
            _ => Ok(()),
        }
    }

    /// Checks that the filter `ours` in Redis can belong to the crawl.
    ///
    /// # Errors
    /// The crawl has committed batches with another filter.
    pub fn check_redis_filter(self, ours: RandomId) -> Result<(), MismatchError> {
        let theirs = self.filter.filter(|&theirs| self.committed().is_some() && theirs != ours);
        theirs.map_or(Ok(()), |theirs| Err(MismatchError::OtherFilterInRedis { ours, theirs }))
    }

    /// Checks that the filter in `folder`, at the path `dir`, can be recovered to the position of
    /// the crawl. With `emit_again`, the filter may lack batches that Redis has.
    ///
    /// # Errors
    /// The errors of [`Store::recover_to`](super::Store::recover_to), except for those of a disk
    /// that cannot be written.
    pub fn check_folder(
        self,
        dir: &Path,
        folder: &AtRest,
        emit_again: bool,
    ) -> Result<(), MismatchError> {
        self.check_header(dir, folder.header(), emit_again)?;
        if folder.header().is_none() {
            return Ok(());
        }
        let target = match self.head {
            Some(head) => head,
            None => start(dir, &look(dir)?, emit_again)?,
        };
        let Err(error) = folder.reaches(Target::At(target)) else { return Ok(()) };
        let unfit = MismatchError::Recovery(dir.to_owned(), Box::new(error));
        if emit_again && unfit.lack().is_some() { Ok(()) } else { Err(unfit) }
    }
}

/// Returns the start position, which is the target of a recovery if Redis has no state of the
/// crawl. `look` is the content of the folder `dir`. Fails if the folder may have batches and the
/// configuration does not permit that URLs are emitted again.
pub(super) fn start(dir: &Path, look: &Look, emit_again: bool) -> Result<Head, MismatchError> {
    let snapshots = look.snapshots.iter().map(|snapshot| snapshot.last);
    let last = look.last.into_iter().chain(snapshots).map(|position| position.head);
    let ours = last.max_by_key(|head| head.seq).unwrap_or(Head::START);
    // A damaged file may have contained batches.
    let is_new = ours.seq == 0 && look.damages.is_empty();
    if !is_new && !emit_again {
        return Err(MismatchError::NoState { dir: dir.to_owned(), ours });
    }
    Ok(Head::START)
}

/// Reason why the filter cannot be recovered to the position of Redis.
#[derive(Debug, thiserror::Error)]
pub enum MismatchError {
    /// The folder is new, but Redis already has batches of the crawl.
    #[error(
        "Redis stands at {theirs}, and the storage folder {dir} is new: it holds no fingerprints. \
         If the crawl has another folder, set storage.dir to that folder. If the folder is lost, \
         run urlseen storage adopt to continue with an empty filter (URLs that were seen are \
         emitted again)",
        dir = dir.display()
    )]
    New {
        /// Path of the storage folder.
        dir: PathBuf,
        /// Position of the crawl in Redis.
        theirs: Head,
    },
    /// Redis has no state of the crawl, but the folder has.
    #[error(
        "Redis knows nothing of this crawl, and the storage folder {dir} stands at {ours}: Redis \
         lost its data, or this is another server or source than before. To keep the filter, \
         run urlseen storage adopt: URLs that were seen are not emitted again, and lists that \
         Redis lost stay lost. To empty the filter, run urlseen storage reset: all URLs are \
         emitted again",
        dir = dir.display()
    )]
    NoState {
        /// Path of the storage folder.
        dir: PathBuf,
        /// Position of the folder.
        ours: Head,
    },
    /// The crawl in Redis does not belong to the filter in the folder.
    #[error(
        "the crawl in Redis belongs to the filter {theirs}, and the storage folder {dir} holds the \
         filter {ours}: this is the folder of another crawl, or the folder was reset. Set \
         storage.dir to the folder of this crawl, or run urlseen storage adopt to continue with \
         this filter",
        dir = dir.display()
    )]
    OtherFilter {
        /// Path of the storage folder.
        dir: PathBuf,
        /// Filter of the storage folder.
        ours: RandomId,
        /// Filter that Redis names.
        theirs: RandomId,
    },
    /// The crawl in Redis does not belong to the Redis filter that the configuration names.
    #[error(
        "the crawl in Redis belongs to the filter {theirs}, and filter.key names the filter \
         {ours}: the filter was dropped and created again, or the crawl had another filter before. \
         Set filter.key (or filter.place) to the earlier value, or run urlseen storage adopt to \
         continue with this filter"
    )]
    OtherFilterInRedis {
        /// Filter that the configuration names.
        ours: RandomId,
        /// Filter that the crawl belongs to.
        theirs: RandomId,
    },
    /// The folder does not contain the position of Redis.
    #[error("{1} (storage folder {dir})", dir = .0.display())]
    Recovery(PathBuf, Box<RecoveryError>),
    /// The folder cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The file system failed.
    #[error("the storage folder cannot be written: {0}")]
    Io(#[from] io::Error),
    /// A filter thread panicked.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl MismatchError {
    /// Returns true if the folder could not be read or written because there were no free file
    /// descriptors. This error is temporary.
    pub fn is_for_want_of_descriptors(&self) -> bool {
        let error = match self {
            Self::Io(error) | Self::Open(OpenError::Io { reason: error, .. }) => error,
            Self::Recovery(_, error) => match &**error {
                RecoveryError::Io(error) => error,
                _ => return false,
            },
            _ => return false,
        };
        descriptors::are_exhausted(error)
    }
}
