//! Disk of the storage folder, as far as the lease depends on it.
//!
//! A daemon that cannot log cannot commit. If it continued to renew the lease over its network, no
//! other daemon could take over. So the daemon renews the lease only while the disk answers.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tracing::{info, warn};

use urlseen_core::redis::lease::{LEASE, RENEWAL};
use urlseen_core::storage::{Request, Requests};
use urlseen_engine::engine::store::Storage;

/// Maximum time for one request of the disk before a renewal of the lease is withheld. It is one
/// interval between renewals. A lease lapses 13 s after the last renewal, so a disk may be silent
/// for 13 to 18 s, as Redis may.
const BOUND: Duration = RENEWAL;

/// Time between two checks of the watch.
const LOOK: Duration = Duration::from_millis(500);

/// The disk of a folder, and the requests that it has not answered.
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
pub struct Hang {
    dir: PathBuf,
    what: &'static str,
    waited: Duration,
}

impl Disk {
    /// Returns the disk that holds the folder of a filter.
    pub(super) fn of(storage: &Storage) -> Self {
        Self { dir: storage.dir().to_owned(), requests: storage.requests().clone() }
    }

    /// Returns the request that has waited for longer than the bound.
    pub(super) fn hang(&self) -> Option<Hang> {
        let request = self.requests.oldest()?;
        let waited = request.since.elapsed();
        self.hung(request, waited)
    }

    /// Returns a request that waited for longer than the bound, and was answered after `time`.
    pub(super) fn hang_until(&self, time: Instant) -> Option<Hang> {
        let (request, took) = self.requests.slow().filter(|(it, took)| it.since + *took >= time)?;
        self.hung(request, took)
    }

    fn hung(&self, request: Request, waited: Duration) -> Option<Hang> {
        (waited > BOUND).then(|| Hang { dir: self.dir.clone(), what: request.what, waited })
    }
}

/// Logs a message whenever the disk hangs.
pub(super) async fn watch(disk: Option<Disk>) -> Infallible {
    let Some(disk) = disk else { return std::future::pending().await };
    let mut told = false;
    loop {
        tokio::time::sleep(LOOK).await;
        let hang = disk.hang();
        match &hang {
            Some(hang) if !told => warn!(
                "{hang}. Until it answers, the lease is not renewed: it ends {} s after its last \
                 renewal, and another daemon may take over. Look at the disk, or at the network \
                 between",
                LEASE.as_secs()
            ),
            None if told => info!("the disk answers again"),
            _ => {}
        }
        told = hang.is_some();
    }
}
