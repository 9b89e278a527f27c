//! Held requests: requests that a consumer has popped and not acknowledged yet.
//!
//! A pop moves a request from the sink to the held requests of its consumer, in one step. The
//! consumer acknowledges the request after its page was processed and the links of the page were
//! pushed. If a consumer stops, the daemon, an idle consumer or `urlseen held requeue` requeues the
//! requests that it holds. docs/reference/held.md has the keys, the scripts and the time-outs.

mod calls;
mod keys;
mod reclaimer;
mod record;
mod request;
mod table;

pub use calls::{Calls, Counted, Popped, Requeued};
pub use keys::HeldKeys;
pub use reclaimer::{Reclaimer, Stopped};
pub use record::{HeldRecord, PROBE, RecordError};
pub use request::HeldRequest;
pub use table::PartitionTable;
