//! Finds the item of a commit that breaks each connection on which it is sent.
//!
//! A server closes the connection if a request is larger than its limit. Usually the limits are
//! known ([`Limits`]). They are unknown if the server does not report them, if they have just been
//! lowered, or if a proxy breaks the connection. Then the same commit would be sent forever. So a
//! commit is not sent again after it has broken several connections in a row, each of which had
//! answered before. In a row means that no connection was lost without the commit in between:
//! otherwise connections break for another reason. To find that out, the commit waits for a while
//! on the next connections. Its items are then read and judged again, one by one. The item whose
//! commit still breaks connections is set aside: the item moves to the oversize list, and its
//! reject describes it.

use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

use super::queue::{Prepared, Queue};
use urlseen_core::redis::limits::Limits;
use urlseen_core::storage::Head;

/// Number of connections that a commit of several items may break. Then the items are judged one by
/// one.
const BREAKS_MAX: u32 = 3;

/// Number of connections that a commit of one item may break. Then the item is set aside. It is
/// higher, so that a good item is not blamed if connections break for another reason.
const BREAKS_MAX_ALONE: u32 = 6;

/// Number of connections that a commit may break before new connections are observed first, and for
/// how long.
const BREAKS_BEFORE_CONTROL: u32 = 2;
const CONTROL: Duration = Duration::from_millis(250);

/// Evidence against the oldest commit.
#[derive(Debug, Default)]
pub(super) struct Suspicion {
    /// The commit that was under way when connections were lost, and their number.
    broke: Option<(Head, u32)>,
    /// Number of items that must still be judged and committed one by one.
    alone: u64,
    /// The last commit before the item that is set aside.
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
    /// broken the earlier connections, so they are no longer evidence.
    pub(super) fn lost_otherwise(&mut self) {
        self.broke = None;
    }

    /// Returns the time until which a new connection is observed before the oldest commit is sent
    /// on it. The connection may break by itself, too.
    pub(super) fn control(&self) -> Option<Instant> {
        let is_due = self.broke.is_some_and(|(_, times)| times >= BREAKS_BEFORE_CONTROL);
        is_due.then(|| Instant::now() + CONTROL)
    }

    /// Returns true if commits are sent one by one, so that only the oldest one can break the
    /// connection.
    pub(super) fn is_aroused(&self) -> bool {
        self.broke.is_some()
    }

    /// Notes that a batch of `items` items is committed.
    pub(super) fn committed(&mut self, items: usize) {
        let alone = self.alone.saturating_sub(items as u64);
        *self = Self { alone, ..Self::default() };
    }

    /// Counts the items after the queue that must be judged one by one.
    pub(super) fn alone(&self, queued: u64) -> u64 {
        self.alone.saturating_sub(queued)
    }

    /// Returns true if the item that follows the commit `head` is set aside.
    pub(super) fn condemns(&self, head: Head) -> bool {
        self.condemned == Some(head)
    }

    /// Decides whether the waiting batches are judged again, now that it is known which were
    /// committed. They are if one of them exceeds a limit of the server, or breaks connections.
    pub(super) fn judges_again(&mut self, queue: &Queue, limits: Limits) -> bool {
        let exceeds = |prepared: &Prepared| prepared.lengths().any(|length| length > limits.word);
        // A batch that was made for lower limits is known to fit them.
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
        // Every server accepts this size.
        if bytes <= Limits::LEAST {
            return false;
        }
        *self = Self { alone: items as u64, ..Self::default() };
        if items == 1 {
            warn!(
                "the commit of one item ({bytes} bytes) has broken {most} connections: the item \
                 is set aside, see urlseen rejects. If Redis takes less at once than by \
                 default, let this user run CONFIG GET"
            );
            self.condemned = Some(queue.head());
        } else {
            warn!(
                "the commit of {items} items ({bytes} bytes) has broken {most} connections: they \
                 are judged again, one by one"
            );
        }
        true
    }
}
