//! Errors of a folder that does not match the position of Redis.

use std::io;
use std::path::PathBuf;

use crate::engine::EngineError;
use urlseen_core::filter::id::RandomId;
use urlseen_core::storage::{Head, OpenError, RecoveryError, descriptors};

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
