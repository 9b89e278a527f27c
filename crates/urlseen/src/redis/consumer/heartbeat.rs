//! Thread that sends the heartbeats of a consumer.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use super::crawl::Crawl;
use super::crawls::Crawls;
use super::deliveries::Differences;
use crate::redis::links::Links;
use crate::{Error, ErrorKind};
use urlseen_redis::protocol::{Reclaimer, Stopped};

/// Maximum wait after a failed heartbeat.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Wait between two tries to requeue the deliveries of a stopping consumer.
const PAUSE: Duration = Duration::from_millis(50);

/// Timeout that determines the interval of a thread without crawls, which only watches the table.
const TABLE_TIMEOUT: Duration = Duration::from_mins(1);

/// Maximum number of tries to requeue deliveries while other calls increase the heartbeat.
const TRIES: usize = 5;

/// Thread that sends heartbeats on its own connection, for the crawls of one server. So a consumer
/// counts as alive while the program works on a page for a long time. The thread also requeues
/// deliveries that the consumer should not hold. While the consumer is idle, the thread requeues
/// the deliveries of stopped consumers. It also reads the crawl records again.
#[derive(Debug)]
pub(super) struct Heartbeat {
    /// Sender that wakes the thread. If the sender is dropped, the thread ends.
    wake: Mutex<Option<Sender<()>>>,
    /// Receiver whose channel is disconnected when the thread ends.
    ended: Mutex<Receiver<()>>,
}

/// State of the heartbeat thread.
struct Beating {
    crawls: Arc<Crawls>,
    links: Links,
    has_table: bool,
    /// Crawls, each with the watch over the heartbeats of other consumers, to find those that have
    /// stopped.
    own: Vec<(Arc<Crawl>, Reclaimer)>,
    /// Maximum time that the stopping consumer takes to requeue its requests.
    stop_timeout: Duration,
}

impl Heartbeat {
    /// Starts the thread, which sends the heartbeats of `own` over the first of `links`. With
    /// `has_table`, it also watches the table.
    pub(super) fn start(
        crawls: Arc<Crawls>,
        links: Links,
        has_table: bool,
        own: Vec<Arc<Crawl>>,
        stop_timeout: Duration,
    ) -> Result<Self, Error> {
        let watched = |crawl: Arc<Crawl>| {
            // Without a record, the time-out is not known yet.
            let timeout = crawl.calls().map_or(TABLE_TIMEOUT, |calls| calls.record.timeout);
            (crawl, Reclaimer::new(timeout))
        };
        let own = own.into_iter().map(watched).collect();
        let beating = Beating { crawls, links, has_table, own, stop_timeout };
        let (wake, woken) = channel();
        let (end, ended) = channel();
        let thread = thread::Builder::new().name("urlseen-heartbeat".to_owned());
        let run = move || {
            let _end = end;
            beating.run(&woken);
        };
        thread.spawn(run).map_err(|error| no_thread(&error))?;
        Ok(Self { wake: Mutex::new(Some(wake)), ended: Mutex::new(ended) })
    }

    /// Makes the thread send a heartbeat now. Called after a broken connection, because Redis may
    /// then hold deliveries that the consumer does not know.
    pub(super) fn wake(&self) {
        // If the thread has ended, the send fails. This failure does no harm.
        let _ = self.sender().as_ref().map(|wake| wake.send(()));
    }

    /// Makes the thread requeue the consumer's deliveries and end.
    pub(super) fn stop(&self) {
        *self.sender() = None;
    }

    /// Waits until a stopping thread has ended, for at most `timeout`.
    pub(super) fn wait(&self, timeout: Duration) {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(timeout);
    }

    fn sender(&self) -> MutexGuard<'_, Option<Sender<()>>> {
        self.wake.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Beating {
    fn run(mut self, woken: &Receiver<()>) {
        let mut pause = self.interval();
        loop {
            match woken.recv_timeout(pause) {
                Ok(()) => while woken.try_recv().is_ok() {},
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            pause = match self.beat_all() {
                Ok(()) => self.interval(),
                Err(_) => self.interval().min(LONGEST_PAUSE),
            };
        }
        if !self.crawls.is_abandoned.load(Relaxed) {
            self.leave();
        }
    }

    fn interval(&self) -> Duration {
        let timeouts = self.own.iter().map(|(_, watch)| watch.timeout);
        Reclaimer::interval(timeouts.min().unwrap_or(TABLE_TIMEOUT))
    }

    /// Does the whole duty once. If one part fails although Redis is reachable, the thread goes on
    /// with the others. Returns the first error.
    fn beat_all(&mut self) -> Result<(), Error> {
        let Self { crawls, links, has_table, own, .. } = self;
        let mut done = if *has_table { crawls.refresh(links) } else { Ok(()) };
        for (crawl, watch) in own {
            if done.is_err() && links.lock(0).connect().is_err() {
                break;
            }
            done = done.and(beat(crawl, links, watch));
        }
        done
    }

    /// Requeues all deliveries of the consumer, and removes the consumer's entries in Redis.
    fn leave(&mut self) {
        let end = Instant::now() + self.stop_timeout;
        let Self { links, own, .. } = self;
        loop {
            own.retain(|(crawl, _)| crawl.give_back(links, &[]).is_err());
            if own.is_empty() || Instant::now() >= end {
                break;
            }
            thread::sleep(PAUSE);
        }
    }
}

/// Sends the heartbeat of a crawl, and requeues the deliveries that this finds.
fn beat(crawl: &Crawl, links: &Links, watch: &mut Reclaimer) -> Result<(), Error> {
    crawl.refresh(links)?;
    let timeout = crawl.calls()?.record.timeout;
    if timeout != watch.timeout {
        *watch = Reclaimer::new(timeout);
    }
    let before = crawl.deliveries.open();
    let held = crawl.beat(links)?;
    let Differences { unknown, dropped } = crawl.deliveries.compare(&before, &held);
    if !unknown.is_empty() {
        crawl.give_back(links, &unknown)?;
    }
    if !dropped.is_empty() {
        requeue_dropped(crawl, links, &dropped)?;
    }
    if crawl.is_idle.load(Relaxed) { reclaim(crawl, links, watch) } else { Ok(()) }
}

/// Requeues deliveries that the program dropped. The script gets the consumer's own heartbeat, so
/// the deliveries count as not finished. If a pop in another thread increases the heartbeat
/// meanwhile, the requeue is tried again.
fn requeue_dropped(crawl: &Crawl, links: &Links, ids: &[u64]) -> Result<(), Error> {
    for _ in 0..TRIES {
        let heartbeats = crawl.heartbeats(links)?;
        let own = heartbeats.iter().find(|(consumer, _)| *consumer == crawl.consumer);
        let Some((consumer, heartbeat)) = own else { break };
        if crawl.requeue(links, consumer, heartbeat, ids)? {
            break;
        }
    }
    Ok(())
}

/// Requeues the deliveries of consumers whose heartbeat did not change during the whole timeout.
fn reclaim(crawl: &Crawl, links: &Links, watch: &mut Reclaimer) -> Result<(), Error> {
    let mut heartbeats = crawl.heartbeats(links)?;
    heartbeats.retain(|(consumer, _)| *consumer != crawl.consumer);
    // No heartbeat changes while Redis is unreachable.
    watch.use_connection(links.lock(0).connects);
    for Stopped { consumer, heartbeat } in watch.observe(heartbeats, Instant::now()) {
        crawl.requeue(links, &consumer, &heartbeat, &[])?;
    }
    Ok(())
}

fn no_thread(error: &io::Error) -> Error {
    let text = format!(
        "no thread can be started for the heartbeat of the consumer: {error}; raise the limit on \
         threads (ulimit -u)"
    );
    Error::new(ErrorKind::Memory, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_mins(1);

    /// Rule H6 of the protocol: the timeout is measured on one unbroken connection, without a long
    /// pause between two looks at the heartbeats.
    #[test]
    fn the_timeout_starts_again_after_a_pause_or_a_new_connection() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let beats = || vec![("a#1".to_owned(), "7".to_owned())];
        // (time in seconds and number of connections at each look; time of the look that finds the
        // consumer stopped)
        for (looks, found) in [
            ([(0, 1), (20, 1), (40, 1), (60, 1), (80, 1)], Some(60)),
            ([(0, 1), (20, 2), (40, 2), (60, 2), (80, 2)], Some(80)),
            ([(0, 1), (20, 1), (40, 1), (60, 2), (80, 2)], None),
            ([(0, 1), (31, 1), (50, 1), (70, 1), (90, 1)], None),
        ] {
            let mut watch = Reclaimer::new(TIMEOUT);
            let mut stopped = looks.into_iter().filter(|&(seconds, connects)| {
                watch.use_connection(connects);
                !watch.observe(beats(), at(seconds)).is_empty()
            });
            assert_eq!(stopped.next().map(|(seconds, _)| seconds), found, "{looks:?}");
        }
    }
}
