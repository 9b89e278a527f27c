//! Intake of a session: the source as far as it is known, and the items that are read ahead.

use std::collections::VecDeque;

use redis::Value;

use super::linger::Linger;
use crate::crawl::protocol::{Cursor, Protocol};
use crate::pipeline::window::Window;
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::{Link, Reply};
use urlseen_engine::item::Items;
use urlseen_engine::item::batch::{Batch, Claimed};

/// Seconds that one wait for an idle source lasts.
const WAIT_S: f64 = 10.0;

/// State of the source, as far as the session knows.
#[derive(Debug, PartialEq, Eq)]
enum Supply {
    /// There may be items to claim.
    Unknown,
    /// Redis has not yet answered a claim.
    Claiming,
    /// There are claimed items to read.
    Claimed,
    /// The last claim found nothing, and no item has come since.
    Empty,
}

/// Claims and reads of a session.
pub(super) struct Intake {
    /// Second connection, which waits for an idle source. A session that ends has none.
    waiter: Option<Link>,
    supply: Supply,
    /// Collects items before a claim.
    linger: Linger,
    window: Window,
    /// End of the items that are read or asked for; unknown while only the reply can tell.
    read_to: Option<Cursor>,
    /// Windows that were asked for.
    windows: usize,
    /// Batches that the engine has no room for.
    backlog: VecDeque<Batch<Claimed>>,
}

impl Intake {
    /// Begins after the items before `read_to`. `waiter` is a connection of its own, as a wait
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

    /// Ends: the source is waited for no more.
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

    /// Counts the batches between source and engine.
    pub(super) fn on_their_way(&self) -> usize {
        self.windows + self.backlog.len()
    }

    /// Returns true if the engine has no room for a batch.
    pub(super) fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Returns the next window to ask for, if more are wanted before these are read: its place and
    /// its items.
    pub(super) fn next_window(&self, most: usize) -> Option<(Cursor, u64)> {
        let after = self.read_to.filter(|cursor| cursor.left > 0)?;
        let is_wanted = self.windows < self.window.at_once(most);
        is_wanted.then(|| (after, self.window.items().min(after.left)))
    }

    /// Notes that a window is asked for, which ends at `read_to` if that is known.
    pub(super) fn asked(&mut self, read_to: Option<Cursor>) {
        self.windows += 1;
        self.read_to = read_to;
    }

    /// Takes the items of a window that ends at `end`, in batches of at most `most` bytes an item.
    pub(super) fn read(&mut self, items: Items, end: Cursor, most: usize) {
        self.windows -= 1;
        self.read_to.get_or_insert(end);
        if !items.is_empty() {
            let parts = self.window.split(items).into_iter();
            self.backlog.extend(parts.map(|items| Batch::<Claimed>::new(items).bounded(most)));
        }
    }

    /// Returns the oldest batch that the engine does not have.
    pub(super) fn next_batch(&mut self) -> Option<Batch<Claimed>> {
        self.backlog.pop_front()
    }

    /// Decides if the source is to be claimed, once all claimed items are sent to be committed. The
    /// claim is under way then. A run that `drains` asks again even if nothing woke it.
    pub(super) fn claims(&mut self, drains: bool) -> bool {
        if self.read_to.is_none_or(|cursor| cursor.left > 0) {
            return false;
        }
        if self.supply == Supply::Claimed {
            // The wait for the source ends at once if it holds an item by then.
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

    /// Takes the end of a wait, which found an item or not.
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
