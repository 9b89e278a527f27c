//! Errors at the start and during the work of the engine.

use urlseen_core::filter::{BuildError, Full};

/// Reason why an engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The filter cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A thread could not be started.
    #[error("no thread could be started: {0}; is the limit on processes (ulimit -u) too low?")]
    Thread(std::io::Error),
}

/// Reason why an engine cannot continue.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EngineError {
    /// A reader or the judge panicked. The filter may be wrong.
    #[error(
        "a filter thread panicked (see its message above). Items that were not committed stay \
         where they are. Start again, and please report the message"
    )]
    Panicked,
    /// The thread of the storage folder panicked.
    #[error(
        "the thread of the storage folder panicked (see its message above). Start again, and \
         please report the message"
    )]
    StoragePanicked,
    /// The filter has no room for the unseen keys of a batch. Nothing of the batch is committed.
    #[error("{0}; items that were not committed stay where they are")]
    Full(Full),
}
