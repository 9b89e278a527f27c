//! Why a session, or the whole run, ended early.

use crate::engine::Died;
use crate::protocol::Unwelcome;
use crate::redis::lease::{LEASE, MARGIN};
use crate::redis::preflight::PreflightProblem;
use crate::redis::trouble::{Retry, Trouble};
use crate::shared::OpenError;
use crate::store::Unfit;

/// Why work stopped. Whatever it is, items that were not committed wait in Redis.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Redis, or the way to it.
    #[error(transparent)]
    Redis(#[from] Unwelcome),
    /// What Redis must have and grant is not there, or not any more.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Preflight(Vec<PreflightProblem>),
    /// The lease could not be renewed in time.
    #[error(
        "the lease could not be renewed: Redis has not answered for {} s",
        LEASE.saturating_sub(MARGIN).as_secs()
    )]
    Lapsed,
    /// A filter thread panicked.
    #[error(transparent)]
    Died(#[from] Died),
    /// A thread could not be had.
    #[error("no thread could be started: {0}; is the limit on processes (ulimit -u) too low?")]
    Thread(std::io::Error),
    /// The filter cannot be brought to where Redis stands.
    #[error(transparent)]
    Unfit(Box<Unfit>),
    /// The filter in Redis is not what it was.
    #[error(transparent)]
    Shared(Box<OpenError>),
    /// The state folder cannot be written.
    #[error("the state folder cannot be written: {0}")]
    Folder(std::io::Error),
    /// The log cannot be written.
    #[error("the log cannot be written: {0}. Nothing more is committed; make room and start again")]
    Log(std::io::Error),
    /// Asked to stop while Redis was away.
    #[error(
        "stopped while Redis was away ({0}). Items that were claimed wait there for the next \
         start; the lease ends by itself within 15 s"
    )]
    Away(Box<Failure>),
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        Self::Redis(trouble.into())
    }
}

impl From<Unfit> for Failure {
    fn from(unfit: Unfit) -> Self {
        Self::Unfit(Box::new(unfit))
    }
}

impl Failure {
    /// Whether a connection broke.
    pub fn is_lost_connection(&self) -> bool {
        let Self::Redis(Unwelcome::Trouble(trouble)) = self else { return false };
        matches!(trouble, Trouble::LostConnection { .. })
    }

    /// Whether another session may go better.
    pub fn is_mendable(&self) -> bool {
        match self {
            Self::Redis(Unwelcome::Trouble(trouble)) => trouble.retry() == Retry::Later,
            Self::Redis(unwelcome) => matches!(unwelcome, Unwelcome::Refused(_)),
            Self::Preflight(problems) => problems.iter().all(|it| it.retry() == Retry::Later),
            Self::Lapsed => true,
            Self::Died(_)
            | Self::Thread(_)
            | Self::Unfit(_)
            | Self::Shared(_)
            | Self::Folder(_)
            | Self::Log(_)
            | Self::Away(_) => false,
        }
    }
}
