//! Intake of a session or of a router: the known state of the source, the items that are read
//! ahead, and the number of items that are read together.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::config;
use redis::Value;
use tokio::time::{self, sleep_until};
use urlseen_engine::item::Items;
use urlseen_engine::item::batch::{Batch, Claimed};
use urlseen_redis::error::LinkError;
use urlseen_redis::link::{Link, Reply};
use urlseen_redis::protocol::{Cursor, Places, Protocol};

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
    /// Short wait between claims, so that more items arrive.
    linger: Linger,
    window: Window,
    /// Cursor after the requested items.
    read_to: Cursor,
    /// Cursors and numbers of items of the requested windows that were not received yet, oldest
    /// first.
    windows: VecDeque<(Cursor, u64)>,
    /// Number of items that were requested with the claim that Redis has not answered yet.
    first: Option<u64>,
    /// Batches that wait for room in the engine, oldest first. The session takes them.
    pub(crate) backlog: VecDeque<Batch<Claimed>>,
}

impl Intake {
    /// Starts to read at the cursor `read_to`, at most `items` items and `bytes` bytes together.
    /// `waiter` is a connection only for waits, because a wait blocks its connection.
    pub(crate) fn new(
        waiter: Link,
        source: &config::Source,
        (items, bytes): (usize, usize),
        read_to: Cursor,
    ) -> Self {
        Self {
            waiter: Some(waiter),
            supply: if read_to > 0 { Supply::Claimed } else { Supply::Unknown },
            linger: Linger::new(source.linger.unwrap_or_default()),
            window: Window::new(source.batch.min(items), source.batch_bytes.min(bytes)),
            read_to,
            windows: VecDeque::new(),
            first: None,
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
        self.windows.len() + usize::from(self.first.is_some()) + self.backlog.len()
    }

    /// Returns the next window to request: its cursor and its number of items. Returns `None` if no
    /// further window may be requested before a reply.
    pub(crate) fn next_window(&self, most: usize) -> Option<(Cursor, u64)> {
        let after = self.read_to;
        let is_wanted = after > 0 && self.windows.len() < self.window.at_once(most);
        is_wanted.then(|| (after, self.window.items().min(after)))
    }

    /// Notes that a window of this number of items was requested.
    pub(crate) fn asked(&mut self, items: u64) {
        self.windows.push_back((self.read_to, items));
        self.read_to -= items;
    }

    /// Returns the number of items to request together with a claim: the first window of the items
    /// that it finds.
    pub(crate) fn first_window(&mut self) -> u64 {
        *self.first.insert(self.window.items())
    }

    /// Returns the window that Redis answers next: its cursor and its number of items.
    pub(crate) fn next_answer(&self) -> (Cursor, u64) {
        *self.windows.front().expect("a window was requested")
    }

    /// Splits the items of the oldest window into batches.
    pub(crate) fn read(&mut self, (bytes, places): Places) {
        let left = self.windows.pop_front().map_or(0, |(after, count)| after - count);
        let items = Items::new(bytes, places).before(left);
        if !items.is_empty() {
            let parts = self.window.split(items).into_iter();
            self.backlog.extend(parts.map(Batch::<Claimed>::new));
        }
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
        if let Some(items) = self.first.take() {
            self.asked(items.min(cursor));
        }
    }

    /// Begins to wait for items if the source is empty and no wait is under way.
    pub(crate) fn wait_if_idle(&mut self, protocol: &Protocol) {
        if self.supply == Supply::Empty
            && let Some(waiter) = &mut self.waiter
            && waiter.is_idle()
        {
            waiter.send(&protocol.wait_for_items(WAIT_S));
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

/// Maximum number of items of the first window. The window is small, because the sizes of its items
/// are unknown.
const FIRST_WINDOW: usize = 16;

/// Limits the items that are read together, by count and by bytes.
///
/// The sizes of a list's items are known only after the items are read. So a window has only as
/// many items as would fit if each were as large as the largest recent item. The first window is
/// small, and windows double as long as the items are small. If items are larger than all recent
/// ones, a window can exceed the limit in bytes. Then it is split into several batches.
#[derive(Debug)]
struct Window {
    items_max: usize,
    bytes_max: usize,
    /// Size of the largest recent item, in bytes.
    item: usize,
    /// True while windows double, because no window has reached a limit yet.
    is_starting: bool,
    /// True until the first window is read.
    is_blind: bool,
}

impl Window {
    /// Makes a window of at most `items_max` items and `bytes_max` bytes.
    fn new(items_max: usize, bytes_max: usize) -> Self {
        let item = (bytes_max / FIRST_WINDOW).max(1);
        Self { items_max, bytes_max, item, is_starting: true, is_blind: true }
    }

    /// Returns the number of windows to request before the first of them is read. While the sizes
    /// of items are unknown, the number is one, so that at most one window of large items is in
    /// memory.
    fn at_once(&self, most: usize) -> usize {
        if self.is_blind { 1 } else { most }
    }

    /// Returns the number of items to request next. It is at least one, even if a single item
    /// exceeds the limit in bytes.
    fn items(&self) -> u64 {
        (self.bytes_max / self.item).clamp(1, self.items_max) as u64
    }

    /// Adapts to the sizes of the items that were read. Splits the items if they exceed the limit
    /// in bytes. An item that exceeds this limit alone becomes a batch of one item.
    fn split(&mut self, items: Items) -> Vec<Items> {
        self.is_blind = false;
        let largest = items.largest;
        self.is_starting &= self.items() < self.items_max as u64;
        // The window grows slowly again after a large item, because large items seldom come alone.
        let faded = self.item - self.item / if self.is_starting { 2 } else { 8 };
        self.is_starting &= largest < faded;
        self.item = largest.max(faded).max(1);
        if items.bytes_len() <= self.bytes_max {
            return vec![items];
        }
        let (mut parts, mut first, mut bytes) = (Vec::new(), 0, 0);
        for (index, item) in items.iter().enumerate() {
            if index > first && bytes + item.len() > self.bytes_max {
                parts.push(items.part(first..index));
                (first, bytes) = (index, 0);
            }
            bytes += item.len();
        }
        parts.push(items.part(first..items.len()));
        parts
    }
}

/// Minimum number of items in a claim after which the session sends the next claim without a wait.
const ENOUGH: u64 = 64;

/// Keeps claims apart while each claim finds only few items.
#[derive(Debug)]
struct Linger {
    span: Duration,
    /// Earliest time of the next claim. `None` if the last claim found enough items.
    not_before: Option<time::Instant>,
    until: Option<time::Instant>,
}

impl Linger {
    /// Returns a linger that waits until `span` has passed since the last claim, as long as claims
    /// find only few items. An item that arrives later is claimed at once.
    fn new(span: Duration) -> Self {
        Self { span, not_before: None, until: None }
    }

    /// Begins the wait, if there is one. Call it when the first item has arrived in the source.
    fn begin(&mut self) {
        self.until = self.not_before.filter(|&earliest| earliest > time::Instant::now());
    }

    /// Notes the number of items of a claim that Redis has just answered.
    fn note(&mut self, items: u64) {
        self.not_before = (items < ENOUGH).then(|| time::Instant::now() + self.span);
    }

    /// Returns true if the wait is over.
    fn is_over(&self) -> bool {
        self.until.is_none()
    }

    /// Sleeps until the end of the wait. Never returns if no wait has begun.
    async fn end(&mut self) {
        match self.until {
            Some(until) => sleep_until(until).await,
            None => std::future::pending().await,
        }
        self.until = None;
    }
}

/// Times at which the source became empty.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// The items of the source arrived after this time, at which it was empty.
    pub(super) last: Instant,
    /// The claimed items arrived after this time.
    before: Instant,
}

impl Arrivals {
    /// Begins at the start of a run. Items that already wait count from now.
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self { last: now, before: now }
    }

    /// Notes a claim that was sent at this time and took all items of the source.
    pub(super) fn claimed(&mut self, sent: Instant) {
        (self.before, self.last) = (self.last, sent);
    }

    /// Returns a time after which all waiting items arrived. `None` if no item waits.
    pub(super) fn since(&self, is_claimed: bool, is_source_empty: bool) -> Option<Instant> {
        match (is_claimed, is_source_empty) {
            (true, _) => Some(self.before),
            (false, false) => Some(self.last),
            (false, true) => None,
        }
    }
}

#[cfg(test)]
#[path = "intake_tests.rs"]
mod tests;
