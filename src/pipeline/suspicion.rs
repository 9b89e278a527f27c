//! A commit that breaks each connection it is sent on, and how its item is found.
//!
//! A server closes the connection when it is sent more than it takes at once. Usually the limits
//! are known ([`Limits`]). They are not if the server does not tell them, if they have just become
//! lower, or if something between breaks the connection. Then the same commit would be sent for
//! ever. So a commit that has broken some connections in a row, each of which had answered before,
//! is not sent again. In a row means that no connection was lost without it in between: then
//! connections break for another reason. To see that, the commit waits for a while on the next
//! ones. Its items are read and judged once more, one by one. The one whose commit still breaks
//! connections is set aside, as a reject that is kept beside its item.

use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

use super::queue::{Prepared, Queue};
use urlseen_core::redis::limits::Limits;
use urlseen_core::storage::Head;

/// Connections that the commit of several items may break before they are judged one by one.
const BREAKS_MAX: u32 = 3;

/// Connections that the commit of one item may break before the item is set aside. They are more:
/// if connections break for another reason, a good item must not be blamed for it.
const BREAKS_MAX_ALONE: u32 = 6;

/// Connections that a commit may break before the next ones are watched first, and for how long.
const BREAKS_BEFORE_CONTROL: u32 = 2;
const CONTROL: Duration = Duration::from_millis(250);

/// Evidence against the oldest commit.
#[derive(Debug, Default)]
pub(super) struct Suspicion {
    /// The commit that was on its way when connections were lost, and how many were.
    broke: Option<(Head, u32)>,
    /// Items that are still to be judged and committed one by one.
    alone: u64,
    /// The last commit before the item that is set aside.
    condemned: Option<Head>,
}

impl Suspicion {
    /// A connection was lost while the commit to `head` was on its way.
    pub(super) fn lost(&mut self, head: Head) {
        let before = match self.broke {
            Some((other, times)) if other == head => times,
            _ => 0,
        };
        self.broke = Some((head, before + 1));
    }

    /// A connection was lost while no commit was on its way. What broke it may have broken the
    /// others, so they are no evidence any more.
    pub(super) fn lost_otherwise(&mut self) {
        self.broke = None;
    }

    /// Returns until when a new connection is watched before the oldest commit is sent on it: it
    /// may break by itself, too.
    pub(super) fn control(&self) -> Option<Instant> {
        let is_due = self.broke.is_some_and(|(_, times)| times >= BREAKS_BEFORE_CONTROL);
        is_due.then(|| Instant::now() + CONTROL)
    }

    /// Returns true if commits are sent one by one: the oldest one breaks the connection then.
    pub(super) fn is_aroused(&self) -> bool {
        self.broke.is_some()
    }

    /// A batch of so many items is committed.
    pub(super) fn committed(&mut self, items: usize) {
        let alone = self.alone.saturating_sub(items as u64);
        *self = Self { alone, ..Self::default() };
    }

    /// Counts the items, of those that follow the queue, that are to be judged one by one.
    pub(super) fn alone(&self, queued: u64) -> u64 {
        self.alone.saturating_sub(queued)
    }

    /// Returns true if the item that follows the commit `head` is set aside.
    pub(super) fn condemns(&self, head: Head) -> bool {
        self.condemned == Some(head)
    }

    /// Decides if the batches that wait are judged once more, now that it is known which were
    /// committed: one has more than the server takes, or breaks connections.
    pub(super) fn judges_again(&mut self, queue: &Queue, limits: Limits) -> bool {
        let exceeds = |prepared: &Prepared| prepared.lengths().any(|length| length > limits.word);
        // What was made for lower limits has been found to fit them.
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
        // Every server takes so much.
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
