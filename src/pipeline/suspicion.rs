//! Finds an item whose commit breaks every connection on which the daemon sends the commit.
//!
//! A server closes the connection if a request is larger than the server's limit. Usually the
//! limits are known ([`Limits`]). They are unknown in three cases: the server does not report them,
//! they have just been lowered, or a proxy closes the connection. Without this module, the daemon
//! would then send the same commit forever.
//!
//! A commit is suspected after it has broken several connections in a row. If a connection is lost
//! before the commit is sent, connections break for another reason. So the count starts again. To
//! notice such a loss, the daemon waits for a while on each new connection before it sends a
//! suspected commit. The items of the commit are finally read and tested again, one by one. If the
//! commit of one item still breaks connections, that item is set aside: it moves to the oversize
//! list, with a reject that describes it.

use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

use super::queue::{Prepared, Queue};
use urlseen_core::redis::limits::Limits;
use urlseen_core::storage::Head;

/// Maximum number of connections that a commit of several items may break. After that, the items
/// are tested one by one.
const BREAKS_MAX: u32 = 3;

/// Maximum number of connections that a commit of one item may break. After that, the item is set
/// aside. The number is higher, so that a good item is not set aside if connections break for
/// another reason.
const BREAKS_MAX_ALONE: u32 = 6;

/// Number of broken connections after which a new connection is observed before the commit is sent.
const BREAKS_BEFORE_CONTROL: u32 = 2;

/// Time for which a new connection is observed.
const CONTROL: Duration = Duration::from_millis(250);

/// Counts the connections that the oldest commit broke, and decides what happens to its items.
#[derive(Debug, Default)]
pub(super) struct Suspicion {
    /// Head of the commit that was under way when connections were lost, and the number of these
    /// connections.
    broke: Option<(Head, u32)>,
    /// Number of items that must still be tested and committed one by one.
    alone: u64,
    /// Head of the last commit before the item that is set aside.
    condemned: Option<Head>,
}

impl Suspicion {
    /// Notes that a connection was lost while the commit to `head` was under way.
    pub(super) fn lost(&mut self, head: Head) {
        let before = match self.broke {
            Some((other, times)) if other == head => times,
            _ => 0,
        };
        self.broke = Some((head, before + 1));
    }

    /// Notes that a connection was lost while no commit was under way. The same cause may have
    /// broken the earlier connections, so they no longer count.
    pub(super) fn lost_otherwise(&mut self) {
        self.broke = None;
    }

    /// Returns the time until which a new connection is observed before the oldest commit is sent.
    /// If the connection breaks in that time, the commit is not the cause.
    pub(super) fn control(&self) -> Option<Instant> {
        let is_due = self.broke.is_some_and(|(_, times)| times >= BREAKS_BEFORE_CONTROL);
        is_due.then(|| Instant::now() + CONTROL)
    }

    /// Returns true if commits must be sent one by one, so that only the oldest commit can break
    /// the connection.
    pub(super) fn is_aroused(&self) -> bool {
        self.broke.is_some()
    }

    /// Notes that a batch of `items` items is committed.
    pub(super) fn committed(&mut self, items: usize) {
        let alone = self.alone.saturating_sub(items as u64);
        *self = Self { alone, ..Self::default() };
    }

    /// Returns the number of items that must still be tested one by one. The first `queued` of them
    /// are already in the queue, and do not count.
    pub(super) fn alone(&self, queued: u64) -> u64 {
        self.alone.saturating_sub(queued)
    }

    /// Returns true if the item that follows the commit `head` must be set aside.
    pub(super) fn condemns(&self, head: Head) -> bool {
        self.condemned == Some(head)
    }

    /// Decides whether the queued batches must be tested again. This is necessary if one of them
    /// exceeds a limit of the server, or if the oldest one breaks connections. The caller must
    /// first remove the committed batches from the queue.
    pub(super) fn judges_again(&mut self, queue: &Queue, limits: Limits) -> bool {
        let exceeds = |prepared: &Prepared| prepared.lengths().any(|length| length > limits.word);
        // Only a batch that was made for higher limits can exceed the present limits.
        let outgrown = |it: &Prepared| it.batch.most() > limits.word && exceeds(it);
        self.doubts(queue) || queue.iter().any(outgrown)
    }

    fn doubts(&mut self, queue: &Queue) -> bool {
        let Some(oldest) = queue.get(0) else { return false };
        let head = oldest.batch.head();
        let items = oldest.batch.items().len();
        let most = if items == 1 { BREAKS_MAX_ALONE } else { BREAKS_MAX };
        if !self.broke.is_some_and(|(broke, times)| broke == head && times >= most) {
            return false;
        }
        let bytes: usize = oldest.lengths().sum();
        // Every server accepts a commit of this size.
        if bytes <= Limits::LEAST {
            return false;
        }
        *self = Self { alone: items as u64, ..Self::default() };
        if items == 1 {
            warn!(
                "the commit of one item ({bytes} bytes) has broken {most} connections: the item \
                 is set aside (to see it, run urlseen rejects list). If this Redis has lower \
                 limits than the defaults, allow urlseen's Redis user to run CONFIG GET, so that \
                 urlseen can read the limits"
            );
            self.condemned = Some(queue.head());
        } else {
            warn!(
                "the commit of {items} items ({bytes} bytes) has broken {most} connections: the \
                 items are tested again, one by one"
            );
        }
        true
    }
}
