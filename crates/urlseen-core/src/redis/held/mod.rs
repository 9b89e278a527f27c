//! Held requests: requests that a consumer has popped and not acknowledged yet.
//!
//! A pop moves a request from the sink to the held requests of its consumer, in one step. The
//! consumer acknowledges the request after its page was processed and the links of the page were
//! pushed. If a consumer stops, the daemon, an idle consumer or `urlseen held requeue` requeues the
//! requests that it holds. docs/reference/held.md has the keys, the scripts and the time-outs.

mod calls;
mod reclaimer;
mod record;
mod table;

pub use calls::{Calls, Counted, HeldRequest, Popped, Requeued};
pub use reclaimer::{Reclaimer, Stopped};
pub use record::{HeldRecord, PROBE, RecordError};
pub use table::PartitionTable;

use super::hash_tag::tagged;

/// Keys of a crawl that its producers and consumers share. The crawl record names further keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldKeys {
    /// Hash: the crawl record.
    pub record: String,
    /// List: items that the daemon or a router has claimed and not committed yet.
    pub processing: String,
    /// Hash: heartbeat of each consumer.
    pub consumers: String,
    /// Hash: number of deliveries and earlier consumers of each requeued request.
    pub requeues: String,
    /// Start of the keys of held requests; the name of the consumer follows.
    held: String,
}

impl HeldKeys {
    /// Names the keys of the crawl that reads `source`. The keys share the hash slot of `source`.
    pub fn of_source(source: &str) -> Self {
        let tagged = tagged(source);
        Self {
            record: format!("urlseen:{tagged}:crawl"),
            processing: format!("urlseen:{tagged}:processing"),
            consumers: format!("urlseen:{tagged}:consumers"),
            requeues: format!("urlseen:{tagged}:requeues"),
            held: format!("urlseen:{tagged}:held"),
        }
    }

    /// Names the hash of the requests that a consumer holds.
    pub fn held(&self, consumer: &str) -> String {
        format!("{}:{consumer}", self.held)
    }
}
