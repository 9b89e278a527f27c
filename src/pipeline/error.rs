//! Reasons why a session or the whole run ended early.

use std::io;
use std::time::Duration;

use tracing::{info, warn};

use super::disk::Hang;
use crate::report::Phase;
use urlseen_engine::engine::store::MismatchError;
use urlseen_engine::engine::{EngineError, WorksError};
use urlseen_filter::descriptors;
use urlseen_redis::backoff::Backoff;
use urlseen_redis::error::LinkError;
use urlseen_redis::filter::opening::RedisOpenError;
use urlseen_redis::limits::ItemBytesError;
use urlseen_redis::preflight::PreflightError;
use urlseen_redis::protocol::{LEASE, MARGIN, ProtocolError};
use urlseen_storage::OpenError;

/// Time between two attempts to take a lease that another process holds.
const STANDBY: Duration = Duration::from_secs(1);

/// Time between two attempts to take the lock of a folder.
const POLL: Duration = Duration::from_millis(200);

/// Error that ended a session or the run. Items that were not committed always wait in Redis.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// Redis or the connection to it failed.
    #[error(transparent)]
    Redis(#[from] ProtocolError),
    /// Redis lacks something that the run needs, such as a permission.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Preflight(Vec<PreflightError>),
    /// The server accepts no items of the configured size.
    #[error(transparent)]
    ItemBytes(#[from] ItemBytesError),
    /// The lease could not be renewed in time.
    #[error(
        "the lease could not be renewed: Redis has not answered for {} s",
        LEASE.saturating_sub(MARGIN).as_secs()
    )]
    Lapsed,
    /// Too few replicas have the lease.
    #[error(
        "{have} of {wanted} replicas (redis.wait_replicas) have acknowledged the lease, and until \
         all of them have it, nothing is committed; connect the replicas to this primary (INFO \
         replication shows them), or lower redis.wait_replicas"
    )]
    FewReplicas {
        /// Number of replicas that have the lease.
        have: u64,
        /// Number of replicas that must have it.
        wanted: u64,
    },
    /// The lease was not renewed in time, because the disk did not answer.
    #[error("the lease is lost: {0}. Nothing is committed until the disk answers")]
    Hanging(Hang),
    /// A filter thread or the storage thread panicked.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A task of the daemon, such as the admin endpoint, ended before the daemon.
    #[error("{0} ended, so the daemon ends too. See the messages above, and start again")]
    Ended(&'static str),
    /// The system could not start a thread.
    #[error("no thread could be started: {0}; is the limit on processes (ulimit -u) too low?")]
    Thread(io::Error),
    /// The filter cannot be recovered to the last batch that Redis records.
    #[error(transparent)]
    Mismatch(Box<MismatchError>),
    /// A standby daemon has a filter that does not belong to the crawl.
    #[error(
        "this daemon cannot stand by, because it could not take over from the active daemon: {0}. \
         A standby needs the storage folder of the active daemon, on a disk that both can reach"
    )]
    Standby(Box<MismatchError>),
    /// The filter in Redis is not the same as before, or cannot be opened.
    #[error(transparent)]
    Shared(Box<RedisOpenError>),
    /// The storage folder cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The storage folder cannot be written.
    #[error("the storage folder cannot be written: {0}")]
    Folder(io::Error),
    /// The log cannot be written.
    #[error("the log cannot be written: {0}. Nothing more is committed{then}", then = then(.0))]
    Log(io::Error),
    /// The run was asked to stop while Redis was unreachable.
    #[error(
        "stopped while Redis was away ({0}). Claimed items wait in Redis for the next start; the \
         lease ends by itself within 15 s"
    )]
    Away(Box<RunError>),
}

impl From<WorksError> for RunError {
    fn from(error: WorksError) -> Self {
        match error {
            WorksError::Engine(died) => died.into(),
            WorksError::Log(error) => Self::Log(error),
            WorksError::Mismatch(unfit) => Self::Mismatch(unfit),
        }
    }
}

impl From<LinkError> for RunError {
    fn from(trouble: LinkError) -> Self {
        Self::Redis(trouble.into())
    }
}

impl From<MismatchError> for RunError {
    fn from(unfit: MismatchError) -> Self {
        Self::Mismatch(Box::new(unfit))
    }
}

impl RunError {
    /// Returns true if a further session may succeed.
    fn is_mendable(&self) -> bool {
        match self {
            Self::Redis(ProtocolError::Link(trouble)) => trouble.is_passing(),
            Self::Redis(unwelcome) => matches!(unwelcome, ProtocolError::Refused(_)),
            Self::Preflight(problems) => problems.iter().all(PreflightError::is_passing),
            Self::Lapsed | Self::FewReplicas { .. } | Self::Hanging(_) => true,
            Self::Mismatch(_) | Self::Folder(_) | Self::Log(_) => self.is_for_want_of_descriptors(),
            Self::ItemBytes(_)
            | Self::Engine(_)
            | Self::Ended(_)
            | Self::Thread(_)
            | Self::Standby(_)
            | Self::Shared(_)
            | Self::Open(_)
            | Self::Away(_) => false,
        }
    }

    /// Logs this error of a session in the phase `now`. Returns the time until the next attempt,
    /// and the phase until then; `None` if no further session can succeed. With `standby`, the run
    /// waits for a lease or a folder that another process holds.
    pub(crate) fn retry(
        &self,
        now: &Phase,
        standby: bool,
        backoff: &mut Backoff,
        jitter: impl FnOnce() -> u64,
    ) -> Option<(Duration, Phase)> {
        match self {
            Self::Redis(ProtocolError::Held { holder, .. }) if standby => {
                let other = || "a program other than urlseen".to_owned();
                let holder = holder.as_ref().map_or_else(other, ToString::to_string);
                let phase = Phase::WaitingForLease { holder: holder.clone() };
                if *now != phase {
                    info!("standing by: waiting for the lease, which {holder} holds");
                }
                Some((STANDBY, phase))
            }
            Self::Open(OpenError::Locked { dir, holder }) if standby => {
                let other = || "another process".to_owned();
                let holder = holder.as_ref().map_or_else(other, ToString::to_string);
                let phase = Phase::WaitingForFolder { holder: holder.clone() };
                if *now != phase {
                    let dir = dir.display();
                    info!("standing by: waiting for the lock of {dir}, which {holder} holds");
                }
                Some((POLL, phase))
            }
            _ if self.is_mendable() => {
                let wait = backoff.next_wait(jitter());
                warn!("{self}. Trying again in {} ms", wait.as_millis());
                Some((wait, self.phase()))
            }
            _ => None,
        }
    }

    /// Returns the phase of a run that waits for its next attempt after this error.
    fn phase(&self) -> Phase {
        let trouble = self.to_string();
        match self {
            _ if self.is_for_want_of_descriptors() => Phase::Recovering,
            Self::Hanging(_) => Phase::DiskAway { trouble },
            Self::FewReplicas { .. } => Phase::ReplicasAway { trouble },
            _ => Phase::RedisAway { trouble },
        }
    }

    /// Returns true if the storage folder could not be read or written because no file descriptor
    /// was free. Then the folder must be read again, because the end of its log is unknown.
    pub(super) fn is_for_want_of_descriptors(&self) -> bool {
        match self {
            Self::Mismatch(unfit) => unfit.is_for_want_of_descriptors(),
            Self::Folder(error) | Self::Log(error) => descriptors::are_exhausted(error),
            _ => false,
        }
    }
}

/// Advice for a log that could not be written.
fn then(error: &io::Error) -> &'static str {
    match error.kind() {
        _ if descriptors::are_exhausted(error) => " until the log can be written",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; make room and start again",
        _ => "; fix the cause and start again",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use urlseen_storage::RecoveryError;

    /// Returns the error with this number, as the storage folder reports it.
    fn error(number: i32) -> io::Error {
        descriptors::explained("cannot make a file", &io::Error::from_raw_os_error(number))
    }

    #[test]
    fn a_lack_of_descriptors_is_retried_and_a_full_disk_is_not() {
        // ENFILE, EMFILE, ENOSPC, EIO
        for (number, is_mendable) in [(23, true), (24, true), (28, false), (5, false)] {
            let unreadable = Box::new(RecoveryError::Io(error(number)));
            for failure in [
                RunError::Log(error(number)),
                RunError::Folder(error(number)),
                MismatchError::Io(error(number)).into(),
                MismatchError::Recovery("storage".into(), unreadable).into(),
            ] {
                assert_eq!(failure.is_mendable(), is_mendable, "{failure}");
            }
            let said = RunError::Log(error(number)).to_string();
            assert_eq!(said.contains("make room"), number == 28, "{said}");
        }
    }
}
