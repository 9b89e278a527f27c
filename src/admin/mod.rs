//! Admin endpoint of a running daemon, over HTTP, for people and Prometheus.
//!
//! | request | answer |
//! |---|---|
//! | `GET /` | this list |
//! | `GET /healthz` | 200 while the process works; 503 with the reason once it has failed |
//! | `GET /readyz` | 200 while it is recovered, connected and holds the lease; else 503 |
//! | `GET /status` | a [`Status`] as JSON |
//! | `GET /metrics` | the same as metrics, as Prometheus reads them |
//! | `POST /check` | a `CheckQuery` as JSON; answers a `Verdicts` |
//!
//! It listens on a Unix socket in the storage folder that only its owner can use. If `admin.listen`
//! is set, it also listens there, and answers only requests for known hosts (`hosts.rs`). It sees
//! the daemon only through a [`View`], and no answer changes anything. It has its own thread and
//! runtime, so that it answers while the pipeline is busy or waits.

mod check;
mod client;
mod hosts;
mod limits;
mod listener;
mod metrics;
mod places;
pub(crate) mod printable;
mod routes;
mod server;
mod socket;
pub(crate) mod telemetry;

pub use crate::pipeline::phase::{Backpressure, Phase};
pub use crate::pipeline::{
    Archive, Asked, Counts, FilterStatus, Head, Lists, Passed, Status, Storage,
};
pub use check::{CheckError, Checked};
pub(crate) use check::{CheckQuery, ItemText, Verdicts};
pub use client::{AdminClient, ClientError};
pub use limits::Limits;
pub use server::{AdminServer, StartError};
pub use socket::SOCKET;

/// View of a daemon, as the endpoint sees it.
pub trait View: Send + Sync + 'static {
    /// Returns the current status. The endpoint's only thread calls this, so it must not wait.
    fn status(&self) -> Status;

    /// Returns for each item, in order, whether it has been seen, and sets nothing. It may wait for
    /// the threads that own the filter. The endpoint makes one call at a time.
    fn check(&self, items: &[Vec<u8>]) -> Result<Vec<Checked>, CheckError>;
}
