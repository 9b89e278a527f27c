//! Disk of the storage folder, as a condition for renewing the lease.
//!
//! A daemon that cannot log cannot commit. If a daemon without a working disk continued to renew
//! the lease, no other daemon could take over. So the daemon renews the lease only while the disk
//! answers.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{info, warn};

use urlseen_engine::engine::store::Storage;
use urlseen_redis::protocol::{LEASE, RENEWAL};
use urlseen_storage::{FolderRequest, Requests};

/// Maximum time for the answer to a request. If the disk takes longer, the lease is not renewed.
/// The bound is one interval between renewals (5 s). The last renewal comes at most 5 s after the
/// disk became silent, and the lease lapses 13 s later. So the daemon loses the lease after 13 to
/// 18 s of silence.
const BOUND: Duration = RENEWAL;

/// Time between two checks of the disk.
const LOOK: Duration = Duration::from_millis(500);

/// The disk of a folder, with the requests that wait for answers.
#[derive(Debug, Clone)]
pub(super) struct Disk {
    dir: PathBuf,
    requests: Requests,
}

/// A request that the disk did not answer within the bound.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "the disk of the storage folder {} left {what} unanswered for {} s",
    dir.display(),
    waited.as_secs()
)]
pub(crate) struct Hang {
    dir: PathBuf,
    what: &'static str,
    waited: Duration,
}

impl Disk {
    /// Returns the disk that holds the folder of a filter.
    pub(super) fn of(storage: &Storage) -> Self {
        Self { dir: storage.dir.clone(), requests: storage.requests.clone() }
    }

    /// Returns the oldest request to the disk, if it has waited for longer than the bound.
    pub(super) fn hang(&self) -> Option<Hang> {
        let request = self.requests.oldest()?;
        let waited = Instant::now().saturating_duration_since(request.since.into());
        self.hung(request, waited)
    }

    /// Returns the last slow request, if the disk took longer than the bound for it and answered it
    /// after `time`.
    pub(super) fn hang_until(&self, time: Instant) -> Option<Hang> {
        let (request, took) =
            self.requests.slow().filter(|(it, took)| Instant::from(it.since) + *took >= time)?;
        self.hung(request, took)
    }

    fn hung(&self, request: FolderRequest, waited: Duration) -> Option<Hang> {
        (waited > BOUND).then(|| Hang { dir: self.dir.clone(), what: request.what, waited })
    }
}

/// Logs when the disk hangs, and when the disk answers again.
pub(super) async fn watch(disk: Option<Disk>) -> Infallible {
    let Some(disk) = disk else { return std::future::pending().await };
    let mut told = false;
    loop {
        tokio::time::sleep(LOOK).await;
        let hang = disk.hang();
        match &hang {
            Some(hang) if !told => warn!(
                "{hang}. Until the disk answers, the lease is not renewed. The lease ends {} s \
                 after its last renewal, and another daemon may then take over. Check the disk, \
                 or the network to the disk",
                LEASE.as_secs()
            ),
            None if told => info!("the disk answers again"),
            _ => {}
        }
        told = hang.is_some();
    }
}
