//! Links, acknowledgements and forgets on their way to Redis, for the Scrapy package. A thread
//! sends them, because the reactor of a spider must not wait for Redis.
//!
//! If a server is away, everything for it stays in the outbox in its order, and is sent later.
//! An acknowledgement waits for the links of its page, and for all items that belong to no page: a
//! callback may have passed such a request to the engine. A repeated acknowledgement or rejection
//! has no effect. A repeated push is safe for filtered items, because the filter drops the second
//! copies. An unfiltered item that belongs to no page can be pushed twice, but is never lost.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{mem, thread};

use super::push::{Items, PUSH_ITEMS};
use super::sending::{Attempt, Counts, End, Step, Work, size};
use super::{Consumer, ConsumerOptions, Delivery};
use crate::redis::address::Address;
use crate::{Error, ErrorKind};

/// Number of bytes of links with which an unfinished page is pushed early.
const EARLY_BYTES: usize = 1 << 20;

/// First and maximum pause before the thread sends again what failed.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

/// Error of a flush after the end of the thread.
const ENDED: &str = "the thread that sends links and acknowledgements has ended";

/// Consumer, and everything that it still has to send.
#[doc(hidden)]
pub struct Outbox {
    /// Consumer that sends. Its deliveries end by the methods of the outbox.
    pub consumer: Arc<Consumer>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<OutboxState>,
    changed: Condvar,
}

#[derive(Default)]
struct OutboxState {
    /// Links of unfinished pages, by the number of the crawl and the id of their delivery.
    pages: BTreeMap<(usize, u64), PageLinks>,
    /// Everything that waits, except what the thread is sending.
    work: Work,
    /// Steps that are never sent, once the pages were given up. They keep their deliveries, so that
    /// these still count as held.
    given_up: Option<Vec<Step>>,
    /// Size in bytes of the items that wait, and of the links in `pages`.
    waiting_bytes: usize,
    page_bytes: usize,
    counts: Counts,
    is_sending: bool,
    /// True if something was added since the last attempt began.
    is_changed: bool,
    /// Number of calls that wait for an attempt, and of the last one that an attempt has served.
    asked: u64,
    served: u64,
    /// Error of a server that was away in the last attempt.
    failed: Option<Error>,
    /// Refusal that the program does not know yet.
    refused: Option<Error>,
    is_closed: bool,
}

/// Links of a page that is not finished.
#[derive(Default)]
struct PageLinks {
    /// Links that the filter may drop. They may be pushed before the page is finished.
    filtered: Items,
    /// Links that the filter always lets pass. They wait for the acknowledgement, so that a page
    /// that is fetched twice does not push them twice. They may go to any source.
    unfiltered: Vec<Vec<u8>>,
    bytes: usize,
}

impl Outbox {
    /// Opens a consumer, even if no daemon has run for a source yet. Starts the thread that sends.
    ///
    /// # Errors
    /// The same errors as [`Consumer::open_with`], except that of a missing record.
    pub fn open(address: &Address, source: &str, options: ConsumerOptions) -> Result<Self, Error> {
        let consumer = Arc::new(Consumer::open_early(address, source, options)?);
        let shared = Arc::<Shared>::default();
        let (sender, state) = (Arc::clone(&consumer), Arc::clone(&shared));
        let thread = thread::Builder::new().name("outbox".to_owned());
        let started = thread.spawn(move || run(&sender, &state));
        started.map_err(|error| Error::new(ErrorKind::Memory, error))?;
        Ok(Self { consumer, shared })
    }

    /// Adds an item with this fingerprint (hex digits). It is a link of the page of a delivery, or
    /// belongs to no page.
    pub fn collect(
        &self,
        page: Option<&Arc<Delivery>>,
        fingerprint: &str,
        item: Vec<u8>,
        is_filtered: bool,
    ) {
        let number = self.consumer.number_of(fingerprint);
        let state = &mut *self.shared.state();
        let Some(page) = page else {
            state.waiting_bytes += item.len();
            state.work.loose.entry(number).or_default().push(item);
            return self.shared.wake(state);
        };
        state.page_bytes += item.len();
        let links = state.pages.entry(place(page)).or_default();
        links.bytes += item.len();
        if is_filtered {
            links.filtered.entry(number).or_default().push(item);
        } else {
            links.unfiltered.push(item);
        }
        let count: usize = links.filtered.values().map(Vec::len).sum();
        if count >= PUSH_ITEMS || links.bytes >= EARLY_BYTES {
            state.push_early(place(page));
            self.shared.wake(state);
        }
    }

    /// Pushes the filtered links of all unfinished pages.
    pub fn push_early(&self) {
        let state = &mut *self.shared.state();
        for page in state.pages.keys().copied().collect::<Vec<_>>() {
            state.push_early(page);
        }
        self.shared.wake(state);
    }

    /// Acknowledges a finished page, with the links that it still has.
    ///
    /// All other sources take their links before one script pushes those of the page's own source
    /// and the unfiltered ones, and acknowledges the page.
    pub fn finish(&self, page: Arc<Delivery>) {
        let state = &mut *self.shared.state();
        let PageLinks { filtered: mut links, unfiltered, bytes } =
            state.pages.remove(&place(&page)).unwrap_or_default();
        state.page_bytes -= bytes;
        state.waiting_bytes += bytes;
        let mut own = links.remove(&page.crawl.number).unwrap_or_default();
        own.extend(unfiltered);
        state.add(Step { links, end: Some((page, End::Finish(own))) });
        self.shared.wake(state);
    }

    /// Moves a request to the rejects, with a reason for people.
    pub fn reject(&self, page: Arc<Delivery>, reason: String) {
        let step = Step { links: Items::new(), end: Some((page, End::Reject(reason))) };
        let state = &mut *self.shared.state();
        state.add(step);
        self.shared.wake(state);
    }

    /// Lets a fingerprint (hex digits) pass once more. Returns false if the crawl's filter cannot
    /// forget.
    pub fn forget(&self, fingerprint: &str) -> bool {
        let number = self.consumer.number_of(fingerprint);
        let crawls = &self.consumer.crawls;
        if crawls.calls(&crawls.all[number]).is_ok_and(|it| it.record.forget.is_empty()) {
            return false;
        }
        let state = &mut *self.shared.state();
        state.work.forgets.entry(number).or_default().push(fingerprint.into());
        self.shared.wake(state);
        true
    }

    /// Returns the size in bytes of the items that wait, and of the links of unfinished pages.
    pub fn sizes(&self) -> [usize; 2] {
        let state = self.shared.state();
        [state.waiting_bytes, state.page_bytes]
    }

    /// Returns the number of waiting items that belong to no page.
    pub fn loose(&self) -> usize {
        self.shared.state().work.loose.values().map(Vec::len).sum()
    }

    /// Counts the requests of the crawl as [`Consumer::pending`] does, and those in the sources of
    /// crawls without a record. Returns at least 1 if something waits here, or a server is away.
    ///
    /// # Errors
    /// Redis refuses a call, or no server answers.
    pub fn count(&self) -> Result<u64, Error> {
        let state = self.shared.state();
        if state.is_sending || !state.work.is_empty() {
            return Ok(1);
        }
        drop(state);
        self.consumer.count()
    }

    /// Returns the names and numbers of what Redis has taken since the last call, and the refusal
    /// of a command.
    pub fn news(&self) -> (Counts, Option<Error>) {
        let mut state = self.shared.state();
        (mem::take(&mut state.counts), state.refused.take())
    }

    /// Drops all links and acknowledgements of pages. The consumer still holds these requests, so
    /// that other consumers fetch the pages again when it leaves.
    pub fn give_up_pages(&self) {
        let mut state = self.shared.state();
        state.given_up.get_or_insert_default();
        state.drop_given_up();
    }

    /// Sends everything, and waits until Redis has it, for at least one attempt. Returns the error
    /// of the last attempt if something is left after `wait`.
    pub fn flush(&self, wait: Duration) -> Option<Error> {
        self.shared.flush(wait)
    }

    /// Requeues all requests, removes the consumer from the crawl, and ends the thread. What is
    /// left is lost. Repeats this for `wait` if a server is away. Returns the number of requeued
    /// requests, and the last error.
    pub fn leave(&self, wait: Duration) -> (u64, Option<Error>) {
        let left = self.consumer.leave(wait);
        self.shared.close();
        left
    }
}

impl Drop for Outbox {
    /// Leaves the requests to other consumers. A program that wants more calls `leave` before.
    fn drop(&mut self) {
        self.shared.close();
        self.consumer.abandon(Duration::ZERO);
    }
}

impl Shared {
    fn flush(&self, wait: Duration) -> Option<Error> {
        let end = Instant::now() + wait;
        loop {
            let mut state = self.state();
            state.asked += 1;
            let mine = state.asked;
            self.changed.notify_all();
            while state.served < mine {
                if state.is_closed {
                    return Some(Error::new(ErrorKind::Refused, ENDED));
                }
                state = self.wait(state, None);
            }
            let failed = state.failed.take();
            drop(state);
            if failed.is_none() || Instant::now() >= end {
                return failed;
            }
            thread::sleep(PAUSES[0]);
        }
    }

    fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, OutboxState> {
        // No method panics while it changes the state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the thread that something was added.
    fn wake(&self, state: &mut OutboxState) {
        state.is_changed = true;
        self.changed.notify_all();
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, OutboxState>,
        pause: Option<Duration>,
    ) -> MutexGuard<'a, OutboxState> {
        match pause {
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(pause) => {
                self.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }
}

impl OutboxState {
    fn add(&mut self, step: Step) {
        self.work.steps.push(step);
        self.drop_given_up();
    }

    fn push_early(&mut self, page: (usize, u64)) {
        let Some(page) = self.pages.get_mut(&page) else { return };
        let links = mem::take(&mut page.filtered);
        if links.is_empty() {
            return;
        }
        let bytes = size(&links);
        page.bytes -= bytes;
        self.page_bytes -= bytes;
        self.waiting_bytes += bytes;
        self.add(Step { links, end: None });
    }

    /// Puts the steps aside if the pages were given up, unless the thread is sending them.
    fn drop_given_up(&mut self) {
        if let (Some(given_up), false) = (&mut self.given_up, self.is_sending) {
            given_up.append(&mut self.work.steps);
            self.waiting_bytes = size(&self.work.loose);
        }
    }
}

/// Returns the key of a page in `pages`.
fn place(page: &Delivery) -> (usize, u64) {
    (page.crawl.number, page.id)
}

/// Closes the outbox when its thread ends. After a panic, also tells the program.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let text = format!("{ENDED} in a panic: this is a bug in urlseen");
            self.0.state().refused = Some(Error::new(ErrorKind::Refused, text));
        }
        self.0.close();
    }
}

/// Sends until the outbox is closed.
fn run(consumer: &Consumer, shared: &Shared) {
    let _ending = Ending(shared);
    let mut pause = PAUSES[0];
    // What is left after an attempt is sent again after a pause. Something new is sent at once,
    // unless everything is away.
    let mut again: Option<Instant> = None;
    let mut is_away = false;
    let mut state = shared.state();
    loop {
        while !state.is_closed && state.asked == state.served {
            let left = again.map(|it| it.saturating_duration_since(Instant::now()));
            let is_due = left.is_some_and(|left| left.is_zero());
            if is_due || state.is_changed && !is_away {
                break;
            }
            state = shared.wait(state, left);
        }
        if state.is_closed {
            return;
        }
        let (asked, mut work) = (state.asked, mem::take(&mut state.work));
        let counts = mem::take(&mut state.counts);
        (state.is_sending, state.is_changed) = (true, false);
        drop(state);
        let mut attempt = Attempt::new(consumer, counts);
        let refused = attempt.send(&mut work).err();
        let Attempt { failed, counts, taken_bytes, .. } = attempt;
        again = (!work.is_empty()).then(|| Instant::now() + pause);
        is_away = !failed.is_empty() && consumer.is_away();
        pause = if work.is_empty() { PAUSES[0] } else { (2 * pause).min(PAUSES[1]) };
        state = shared.state();
        work.append(mem::take(&mut state.work));
        (state.work, state.counts, state.is_sending) = (work, counts, false);
        state.waiting_bytes -= taken_bytes;
        state.failed = failed.into_values().next();
        state.refused = refused.or(state.refused.take());
        state.served = asked;
        state.drop_given_up();
        shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_after_a_panic_of_the_thread_fails() {
        let shared = Arc::<Shared>::default();
        let thread = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let _ending = Ending(&thread);
            panic!("a bug");
        });
        let error = shared.flush(Duration::ZERO).unwrap();
        assert_eq!(error.to_string(), ENDED);
        assert!(thread.join().is_err());
        let refused = shared.state().refused.take().unwrap();
        assert!(refused.to_string().ends_with("in a panic: this is a bug in urlseen"), "{refused}");
    }
}
