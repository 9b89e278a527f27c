//! Intake of a session: the known state of the source, and the items that are read ahead.

use std::collections::VecDeque;

use redis::Value;

use super::linger::Linger;
use crate::crawl::protocol::{Cursor, Protocol};
use crate::pipeline::window::Window;
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::{Link, Reply};
use urlseen_engine::item::Items;
use urlseen_engine::item::batch::{Batch, Claimed};

/// Duration of one wait for an idle source, in seconds.
const WAIT_S: f64 = 10.0;

/// State of the source, as far as the session knows it.
#[derive(Debug, PartialEq, Eq)]
enum Supply {
    /// There may be items to claim.
    Unknown,
    /// Redis has not yet answered a claim.
    Claiming,
    /// There are claimed items to read.
    Claimed,
    /// The last claim found nothing, and no item has arrived since.
    Empty,
}

/// Claims and reads of a session.
pub(super) struct Intake {
    /// Second connection, which waits for an idle source. A session that ends does not have it.
    waiter: Option<Link>,
    supply: Supply,
    /// Collects items before a claim.
    linger: Linger,
    window: Window,
    /// End of the items that were read or requested. It is unknown while only the reply can tell.
    read_to: Option<Cursor>,
    /// Number of requested windows.
    windows: usize,
    /// Batches that the engine has no room for.
    backlog: VecDeque<Batch<Claimed>>,
}

impl Intake {
    /// Starts after the items before `read_to`. `waiter` is a separate connection, because a wait
    /// blocks it.
    pub(super) fn new(waiter: Link, linger: Linger, window: Window, read_to: Cursor) -> Self {
        Self {
            waiter: Some(waiter),
            supply: if read_to.left > 0 { Supply::Claimed } else { Supply::Unknown },
            linger,
            window,
            read_to: Some(read_to),
            windows: 0,
            backlog: VecDeque::new(),
        }
    }

    /// Ends the intake: the session no longer waits for the source.
    pub(super) fn end(&mut self) {
        self.waiter = None;
    }

    /// Returns true if the session ends.
    pub(super) fn is_ending(&self) -> bool {
        self.waiter.is_none()
    }

    /// Returns true if the source is known to be empty.
    pub(super) fn is_empty(&self) -> bool {
        self.supply == Supply::Empty
    }

    /// Counts the batches between the source and the engine.
    pub(super) fn on_their_way(&self) -> usize {
        self.windows + self.backlog.len()
    }

    /// Returns true if the engine has no room for a batch.
    pub(super) fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Returns the next window to request: its place and its number of items. Returns `None` if no
    /// further window is wanted before the requested ones are read.
    pub(super) fn next_window(&self, most: usize) -> Option<(Cursor, u64)> {
        let after = self.read_to.filter(|cursor| cursor.left > 0)?;
        let is_wanted = self.windows < self.window.at_once(most);
        is_wanted.then(|| (after, self.window.items().min(after.left)))
    }

    /// Notes that a window was requested. It ends at `read_to`, if that is known.
    pub(super) fn asked(&mut self, read_to: Option<Cursor>) {
        self.windows += 1;
        self.read_to = read_to;
    }

    /// Takes the items of a window that ends at `end`. Splits them into batches whose items pass on
    /// at most `most` bytes each.
    pub(super) fn read(&mut self, items: Items, end: Cursor, most: usize) {
        self.windows -= 1;
        self.read_to.get_or_insert(end);
        if !items.is_empty() {
            let parts = self.window.split(items).into_iter();
            self.backlog.extend(parts.map(|items| Batch::<Claimed>::new(items).bounded(most)));
        }
    }

    /// Returns the oldest batch that was not yet given to the engine.
    pub(super) fn next_batch(&mut self) -> Option<Batch<Claimed>> {
        self.backlog.pop_front()
    }

    /// Decides whether to claim the source, once all claimed items are sent to be committed. If it
    /// returns true, the claim is under way. A run that `drains` claims again even without a
    /// wake-up.
    pub(super) fn claims(&mut self, drains: bool) -> bool {
        if self.read_to.is_none_or(|cursor| cursor.left > 0) {
            return false;
        }
        if self.supply == Supply::Claimed {
            // If the source holds an item by then, the wait for the source ends immediately.
            self.supply = if drains { Supply::Unknown } else { Supply::Empty };
        }
        let claims = self.supply == Supply::Unknown && self.linger.is_over();
        if claims {
            self.supply = Supply::Claiming;
        }
        claims
    }

    /// Notes that the items after a cursor are claimed.
    pub(super) fn claimed(&mut self, cursor: Cursor) {
        self.read_to = Some(cursor);
        self.linger.note(cursor.left);
        self.supply = if cursor.left > 0 { Supply::Claimed } else { Supply::Empty };
    }

    /// Waits for the source if it is idle and no other wait is under way.
    pub(super) fn wait_if_idle(&mut self, protocol: &Protocol) {
        if self.supply == Supply::Empty
            && let (Some(waiter), Some(after)) = (&mut self.waiter, self.read_to)
            && waiter.is_idle()
        {
            waiter.send(&protocol.wait(after, WAIT_S));
        }
    }

    /// Takes the result of a wait, which may have found an item.
    pub(super) fn woken(&mut self, protocol: &Protocol, found: &Value) {
        if self.supply == Supply::Empty && protocol.wakes(found) {
            self.supply = Supply::Unknown;
            self.linger.begin();
        }
    }

    /// Returns the reply to the wait for the source, or `None` at the end of the wait for a batch.
    pub(super) async fn wake(&mut self) -> Result<Option<Reply>, LinkError> {
        let Self { waiter, linger, .. } = self;
        let reply = async {
            match waiter {
                Some(waiter) => waiter.receive().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            reply = reply => reply.map(Some),
            () = linger.end() => Ok(None),
        }
    }
}
