//! Scripts of a crawl in Redis, each beside the calls that build its commands and read its replies.
//!
//! Each script is the text of `common.lua` and its own text, whose first lines have its keys, its
//! arguments, its answers, and what it never does. Only a commit also has functions of the kind of
//! filter, which stand between both. Redis executes a script completely, and does not roll it back:
//! so all checks come before the first write.
//!
//! | file | scripts |
//! |---|---|
//! | `lease.rs` | `own`, `begin`, `renew` |
//! | `claim.rs` | `claim`, `trim`, `give_back`, also of the list of items to forget |
//! | `commit.rs` | `commit` |
//! | `held.rs` | `pop`, `finish`, `beat`, `count`, `held_length`, `requeue` |
//! | `rejects.rs` | `rejects_aside`, `rejects_sort`, `rejects_drop` |
//! | `table.rs` | `table` |
//!
//! **Held requests** are requests that a consumer has popped and not acknowledged yet. A pop moves
//! a request from the sink to the held requests of its consumer, in one step. The consumer
//! acknowledges the request after its page was processed and the links of the page were pushed. If
//! a consumer stops, the daemon, an idle consumer or `urlseen held requeue` requeues the requests
//! that it holds. docs/reference/held.md has the keys, the scripts and the time-outs.

#[cfg(feature = "link")]
mod claim;
#[cfg(feature = "link")]
mod commit;
#[cfg(feature = "link")]
mod crawl;
mod held;
mod keys;
#[cfg(feature = "link")]
mod lease;
mod reclaimer;
mod record;
#[cfg(feature = "link")]
mod rejects;
#[cfg(feature = "link")]
mod reply;
mod script;
mod table;

pub use held::{HeldCalls, HeldCount, HeldRequest, Popped, Requeued, push_once};
pub use keys::HeldKeys;
pub use reclaimer::{Reclaimer, Stopped};
pub use record::{HeldRecord, PROBE, RecordError};
pub use script::{Call, Script};
pub use table::PartitionTable;

#[cfg(feature = "link")]
pub use self::{
    claim::{Cursor, Places, Source},
    commit::{Commit, Order, Sink, SinkKind},
    crawl::Protocol,
    keys::Keys,
    lease::{LEASE, LeaseHolder, Leased, MARGIN, RENEWAL, Token},
    rejects::{Fate, RejectsList, Sorted},
    reply::{Committed, CrawlState, GivenBack, ProtocolError, ScriptError, value},
};
