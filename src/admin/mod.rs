//! Admin endpoint of a running daemon, over HTTP, for people and Prometheus.
//!
//! | request | answer |
//! |---|---|
//! | `GET /` | the page for browsers, which asks for `/status` and `/samples` |
//! | `GET /healthz` | 200 while the daemon works; 503 with the reason after it has failed |
//! | `GET /readyz` | 200 while the filter is recovered and the lease is held; else 503 |
//! | `GET /status` | a [`Status`] as JSON, or one for each partition |
//! | `GET /metrics` | the same values as metrics for Prometheus, in the format of `Accept` |
//! | `POST /check` | a `Verdicts` as JSON, for a body that is a `CheckQuery` |
//! | `GET /samples` | the newest items by fate and rule, as JSON |
//!
//! The endpoint listens on a Unix socket in the storage folder. Only the owner of the socket can
//! use it. If `admin.listen` is set, the endpoint also listens at that address, and answers only
//! requests for known hosts (`hosts.rs`). Beyond loopback, a request for anything but health and
//! metrics needs a token (`access.rs`). There the endpoint sees the daemon only through a [`View`],
//! and no request changes anything. The endpoint has its own thread and runtime, so that it answers
//! while the pipeline is busy or waits.

mod access;
mod check;
mod client;
mod hosts;
mod listener;
mod metrics;
mod page;
pub(crate) mod printable;
mod routes;
mod samples;
mod server;
mod socket;
pub(crate) mod telemetry;

pub(crate) use crate::pipeline::FATES;
pub use crate::pipeline::phase::{Backpressure, Phase};
pub use crate::pipeline::{
    Archive, Asked, ByReason, ByRule, ClientsStatus, Counts, FilterStatus, GenerationsStatus,
    GroupCount, Head, HeldStatus, Lists, RuleCount, Sampled, Status, Storage, Times,
};
use serde::Serialize;

pub use crate::route::{PartitionStatus, RouteStatus};
pub use check::{CheckError, Checked};
pub(crate) use check::{CheckQuery, ItemText, Verdicts};
pub use client::{AdminClient, ClientError};
pub use routes::Limits;
pub(crate) use samples::Sample;
pub use server::{AdminServer, ListeningSocket, StartError};
pub use socket::SOCKET;

/// Status of a daemon, or of each partition that it runs.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Statuses {
    /// Status of a crawl with one partition, or of one partition.
    One(Box<Status>),
    /// Statuses of the partitions of a crawl that has several.
    Partitions {
        /// Statuses in the order of the partitions.
        partitions: Vec<Status>,
    },
    /// Status of a process that routes a list.
    Route(Box<RouteStatus>),
}

impl Statuses {
    /// Returns the statuses of all partitions that the process runs.
    pub(crate) fn all(&self) -> &[Status] {
        match self {
            Self::One(status) => std::slice::from_ref(status),
            Self::Partitions { partitions } => partitions,
            Self::Route(_) => &[],
        }
    }

    /// Describes the first phase that is not good, with its partition; `None` if all are good.
    pub(crate) fn first_bad(&self, is_good: impl Fn(&Phase) -> bool) -> Option<String> {
        let (partition, phase) = self.phases().into_iter().find(|(_, phase)| !is_good(phase))?;
        let partition = partition.map(|number| format!("partition {number}: "));
        Some(format!("{}{phase}", partition.unwrap_or_default()))
    }

    /// Returns the phase of the process or of each partition, with the number of the partition.
    pub(crate) fn phases(&self) -> Vec<(Option<u16>, &Phase)> {
        match self {
            Self::Route(status) => vec![(None, &status.phase)],
            _ => self.all().iter().map(|it| (it.partition, &it.phase)).collect(),
        }
    }
}

/// Access of the endpoint to the daemon.
pub trait View: Send + Sync + 'static {
    /// Returns the current status. The endpoint's only thread calls this method, so the method must
    /// not wait.
    fn status(&self) -> Statuses;

    /// Returns the sampled items with higher numbers than `after`, in the order of their numbers.
    fn samples(&self, after: u64) -> Vec<Sampled>;

    /// Looks up items without adding them to the filter. Returns one verdict for each item, in
    /// order. This method may wait for the threads of the filter. The endpoint makes one call at a
    /// time.
    fn check(&self, items: &[Vec<u8>]) -> Result<Vec<Checked>, CheckError>;
}
