//! Intake of a session or of a router: the known state of the source, and the items that are read
//! ahead.

use std::collections::VecDeque;

use redis::Value;

use super::linger::Linger;
use super::window::Window;
use crate::crawl::protocol::{Cursor, Protocol};
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::{Link, Reply};
use urlseen_engine::item::Items;
use urlseen_engine::item::batch::{Batch, Claimed};

/// Duration of one wait for items of an empty source, in seconds.
const WAIT_S: f64 = 10.0;

/// Last known state of the source.
#[derive(Debug, PartialEq, Eq)]
enum Supply {
    /// The source may have items to claim.
    Unknown,
    /// Redis has not yet answered a claim.
    Claiming,
    /// There are claimed items to read.
    Claimed,
    /// The last claim found no items, and no item has arrived since.
    Empty,
}

/// Claims and reads of the items of a source.
pub(crate) struct Intake {
    /// Second connection, on which the session waits for items while the source is empty. `None` if
    /// the session is ending.
    waiter: Option<Link>,
    supply: Supply,
    /// Short wait before a claim, so that more items arrive.
    linger: Linger,
    window: Window,
    /// Cursor after the requested items.
    read_to: Cursor,
    /// Number of requested windows that were not received yet.
    windows: usize,
    /// Batches that wait for room in the engine.
    backlog: VecDeque<Batch<Claimed>>,
}

impl Intake {
    /// Starts to read at the cursor `read_to`. `waiter` is a connection only for waits, because a
    /// wait blocks its connection.
    pub(crate) fn new(waiter: Link, linger: Linger, window: Window, read_to: Cursor) -> Self {
        Self {
            waiter: Some(waiter),
            supply: if read_to > 0 { Supply::Claimed } else { Supply::Unknown },
            linger,
            window,
            read_to,
            windows: 0,
            backlog: VecDeque::new(),
        }
    }

    /// Ends the intake: the session no longer waits for the source.
    pub(crate) fn end(&mut self) {
        self.waiter = None;
    }

    /// Returns true if the session is ending.
    pub(crate) fn is_ending(&self) -> bool {
        self.waiter.is_none()
    }

    /// Returns true if the source is known to be empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.supply == Supply::Empty
    }

    /// Counts the windows and batches between the source and the engine.
    pub(crate) fn on_their_way(&self) -> usize {
        self.windows + self.backlog.len()
    }

    /// Returns the next window to request: its cursor and its number of items. Returns `None` if no
    /// further window may be requested before a reply.
    pub(crate) fn next_window(&self, most: usize) -> Option<(Cursor, u64)> {
        let after = self.read_to;
        let is_wanted = after > 0 && self.windows < self.window.at_once(most);
        is_wanted.then(|| (after, self.window.items().min(after)))
    }

    /// Notes that a window of this number of items was requested.
    pub(crate) fn asked(&mut self, items: u64) {
        self.windows += 1;
        self.read_to -= items;
    }

    /// Splits the items of a window into batches.
    pub(crate) fn read(&mut self, items: Items) {
        self.windows -= 1;
        let parts = self.window.split(items).into_iter();
        self.backlog.extend(parts.map(Batch::<Claimed>::new));
    }

    /// Removes and returns the oldest batch that waits for the engine.
    pub(crate) fn next_batch(&mut self) -> Option<Batch<Claimed>> {
        self.backlog.pop_front()
    }

    /// Decides whether the items of the source are claimed now. A session may call this only when
    /// the commits of all claimed items are sent. If the result is true, the caller must send the
    /// claim. If `drains` is true, the session claims again even if no item has arrived.
    pub(crate) fn claims(&mut self, drains: bool) -> bool {
        if self.read_to > 0 {
            return false;
        }
        if self.supply == Supply::Claimed {
            // If the source holds an item by now, the next wait for the source ends at once.
            self.supply = if drains { Supply::Unknown } else { Supply::Empty };
        }
        let claims = self.supply == Supply::Unknown && self.linger.is_over();
        if claims {
            self.supply = Supply::Claiming;
        }
        claims
    }

    /// Notes that the items after a cursor are claimed.
    pub(crate) fn claimed(&mut self, cursor: Cursor) {
        self.read_to = cursor;
        self.linger.note(cursor);
        self.supply = if cursor > 0 { Supply::Claimed } else { Supply::Empty };
    }

    /// Begins to wait for items if the source is empty and no wait is under way.
    pub(crate) fn wait_if_idle(&mut self, protocol: &Protocol) {
        if self.supply == Supply::Empty
            && let Some(waiter) = &mut self.waiter
            && waiter.is_idle()
        {
            waiter.send(&protocol.source().wait(protocol.keys(), WAIT_S));
        }
    }

    /// Processes the reply to a wait for items. Returns true if an item has arrived.
    pub(crate) fn woken(&mut self, found: &Value) -> bool {
        let has_arrived = *found != Value::Nil;
        if self.supply == Supply::Empty && has_arrived {
            self.supply = Supply::Unknown;
            self.linger.begin();
        }
        has_arrived
    }

    /// Waits until Redis replies to the wait for items, and returns the reply. Returns `None` if
    /// the linger before a claim ends first.
    pub(crate) async fn wake(&mut self) -> Result<Option<Reply>, LinkError> {
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
