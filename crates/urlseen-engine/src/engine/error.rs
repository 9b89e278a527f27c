//! Why an engine did not start, or cannot go on.

use urlseen_core::filter::{BuildError, Full};

/// Why an engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The filter cannot be had.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A thread could not be had.
    #[error("no thread could be started: {0}; is the limit on processes (ulimit -u) too low?")]
    Thread(std::io::Error),
}

/// The engine cannot go on.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EngineError {
    /// A thread of it panicked. Its part of the filter is not to be trusted any more.
    #[error(
        "a filter thread panicked (its message stands above); what was not committed waits in \
         Redis. Start again, and please report the message"
    )]
    Panicked,
    /// What was found unseen has no room in the filter any more. Nothing of it is committed.
    #[error("{0}; what was not committed waits where it was")]
    Full(Full),
}
