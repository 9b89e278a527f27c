//! Errors of the engine, at its start and at work.

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
    /// One of its threads panicked. That thread's part of the filter may be wrong.
    #[error(
        "a filter thread panicked (its message stands above); what was not committed waits in \
         Redis. Start again, and please report the message"
    )]
    Panicked,
    /// The filter has no room for the unseen keys of a batch. Nothing of the batch is committed.
    #[error("{0}; what was not committed waits where it was")]
    Full(Full),
}
