//! The admin endpoint: what people and Prometheus ask a running daemon, over HTTP.
//!
//! | request | answer |
//! |---|---|
//! | `GET /` | this list |
//! | `GET /healthz` | 200 while the process works; 503 with the reason once it has failed |
//! | `GET /readyz` | 200 while it is recovered, connected and holds the lease; else 503 |
//! | `GET /status` | a [`Status`] as JSON |
//! | `GET /metrics` | the same as metrics, as Prometheus reads them |
//! | `POST /check` | a [`CheckQuery`] as JSON; answers a [`Verdicts`] |
//!
//! It listens on a Unix socket in the storage folder that only its owner can use, and at
//! `admin.listen` where that is set, to requests for known hosts alone (`hosts.rs`). All it knows
//! of the daemon is a [`View`]; nothing it answers changes anything. It has a thread and a runtime
//! of its own, so that it answers while the pipeline is busy or waits.

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

/// What the endpoint can see of a daemon.
pub trait View: Send + Sync + 'static {
    /// What the daemon is doing now. Called on the endpoint's only thread: it must not wait.
    fn status(&self) -> Status;

    /// Tells for each item, in order, whether it has been seen, and sets nothing. It may wait for
    /// the threads that own the filter; one call is made at a time.
    fn check(&self, items: &[Vec<u8>]) -> Result<Vec<Checked>, CheckError>;
}
