//! Admin endpoint of a running daemon, over HTTP, for people and Prometheus.
//!
//! | request | answer |
//! |---|---|
//! | `GET /` | the page for browsers, which asks for `/status` and `/samples` |
//! | `GET /healthz` | 200 while the daemon works; 503 with the reason after it has failed |
//! | `GET /readyz` | 200 while the filter is recovered and the lease is held; else 503 |
//! | `GET /status` | a [`Status`](crate::report::Status) as JSON, or several |
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
mod metrics;
mod page;
pub(crate) mod printable;
mod routes;
mod samples;
mod server;
mod socket;
pub(crate) mod telemetry;

use crate::report::Statuses;
pub use check::Checked;
pub(crate) use check::{CheckQuery, ItemText, Verdicts};
pub use client::{AdminClient, ClientError};
pub use routes::Limits;
pub use samples::Sample;
pub use server::{AdminServer, ListeningSocket, StartError};
pub use socket::SOCKET;

/// Access of the endpoint to the daemon.
pub trait View: Send + Sync + 'static {
    /// Returns the current status. The endpoint's only thread calls this method, so the method must
    /// not wait.
    fn status(&self) -> Statuses;

    /// Returns the sampled items with higher numbers than `after`, in the order of their numbers.
    fn samples(&self, after: u64) -> Vec<Sample>;

    /// Looks up items without adding them to the filter. Returns one verdict for each item, in
    /// order. This method may wait for the threads of the filter. The endpoint makes one call at a
    /// time. The error is the reason why no item can be checked now, as a sentence for people.
    fn check(&self, items: &[Vec<u8>]) -> Result<Vec<Checked>, String>;
}
