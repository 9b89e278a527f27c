//! The heartbeat of a consumer.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use super::crawl::Crawl;
use super::deliveries::Differences;
use crate::redis::link::Link;
use crate::{Error, ErrorKind};
use urlseen_core::redis::held::{Reclaimer, Stopped};

/// The longest wait after a heartbeat that failed.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The wait between two tries to requeue what a stopping consumer holds.
const PAUSE: Duration = Duration::from_millis(50);

/// Tries of a requeue if heartbeats of the same consumer come before it.
const TRIES: usize = 5;

/// A thread that beats over a connection of its own, so that a consumer is alive however long the
/// program works on a page. It also requeues what the consumer should not hold, and, while the
/// consumer is idle, what stopped consumers hold.
#[derive(Debug)]
pub(super) struct Heartbeat {
    /// Wakes the thread; without it the thread ends.
    wake: Option<Sender<()>>,
    /// Disconnected once the thread has ended.
    ended: Mutex<Receiver<()>>,
}

/// The state of the thread.
struct Beating {
    crawl: Arc<Crawl>,
    link: Link,
    looks: Looks,
    /// Longest time to requeue the consumer's requests when it stops.
    stop_timeout: Duration,
}

/// The heartbeats of other consumers, as far as they were watched without a break.
struct Looks {
    reclaimer: Reclaimer,
    timeout: Duration,
    connects: u64,
    last: Instant,
}

impl Heartbeat {
    /// Starts the thread, which beats over `link`.
    pub(super) fn start(crawl: Arc<Crawl>, link: Link, stop: Duration) -> Result<Self, Error> {
        let timeout = crawl.calls()?.record().timeout;
        let looks = Looks::new(timeout, link.connects());
        let beating = Beating { crawl, link, looks, stop_timeout: stop };
        let (wake, woken) = channel();
        let (end, ended) = channel();
        let thread = thread::Builder::new().name("urlseen-heartbeat".to_owned());
        let run = move || {
            let _end = end;
            beating.run(&woken);
        };
        thread.spawn(run).map_err(|error| no_thread(&error))?;
        Ok(Self { wake: Some(wake), ended: Mutex::new(ended) })
    }

    /// Beats now: a connection broke, and Redis may hold what the consumer does not know.
    pub(super) fn wake(&self) {
        // Without the thread there is nothing to wake.
        let _ = self.wake.as_ref().map(|wake| wake.send(()));
    }

    /// Ends the thread, which requeues what the consumer holds, and waits for it this long.
    pub(super) fn stop(&mut self, timeout: Duration) {
        self.wake = None;
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(timeout);
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
            pause = match self.beat() {
                Ok(()) => self.interval(),
                Err(_) => self.interval().min(LONGEST_PAUSE),
            };
        }
        if !self.crawl.is_abandoned.load(Relaxed) {
            self.leave();
        }
    }

    fn interval(&self) -> Duration {
        Reclaimer::interval(self.looks.timeout)
    }

    fn beat(&mut self) -> Result<(), Error> {
        let Self { crawl, link, .. } = self;
        crawl.refresh(link)?;
        let timeout = crawl.calls()?.record().timeout;
        if timeout != self.looks.timeout {
            self.looks = Looks::new(timeout, link.connects());
        }
        let before = crawl.deliveries.open();
        let held = crawl.beat(link)?;
        let Differences { unknown, dropped } = crawl.deliveries.compare(&before, &held);
        if !unknown.is_empty() {
            crawl.give_back(link, &unknown)?;
        }
        if !dropped.is_empty() {
            self.requeue_dropped(&dropped)?;
        }
        if self.crawl.is_idle.load(Relaxed) { self.reclaim() } else { Ok(()) }
    }

    /// Requeues deliveries that the program dropped, by the consumer's own heartbeat: so they count
    /// as not finished. A pop in another thread counts the heartbeat up in between.
    fn requeue_dropped(&mut self, ids: &[u64]) -> Result<(), Error> {
        let Self { crawl, link, .. } = self;
        for _ in 0..TRIES {
            let heartbeats = crawl.heartbeats(link)?;
            let own = heartbeats.iter().find(|(consumer, _)| *consumer == crawl.consumer);
            let Some((consumer, heartbeat)) = own else { break };
            if crawl.requeue(link, consumer, heartbeat, ids)? {
                break;
            }
        }
        Ok(())
    }

    /// Requeues what consumers hold whose heartbeat stood still for the whole time-out.
    fn reclaim(&mut self) -> Result<(), Error> {
        let Self { crawl, link, looks, .. } = self;
        let mut heartbeats = crawl.heartbeats(link)?;
        heartbeats.retain(|(consumer, _)| *consumer != crawl.consumer);
        for Stopped { consumer, heartbeat } in
            looks.look(heartbeats, link.connects(), Instant::now())
        {
            crawl.requeue(link, &consumer, &heartbeat, &[])?;
        }
        Ok(())
    }

    /// Requeues what the consumer holds, and removes its entry.
    fn leave(&mut self) {
        let end = Instant::now() + self.stop_timeout;
        while self.crawl.give_back(&mut self.link, &[]).is_err() && Instant::now() < end {
            thread::sleep(PAUSE);
        }
    }
}

impl Looks {
    fn new(timeout: Duration, connects: u64) -> Self {
        Self { reclaimer: Reclaimer::new(timeout), timeout, connects, last: Instant::now() }
    }

    /// Returns the consumers that stopped. Time counts anew with each connection and after a pause:
    /// no heartbeat moves while Redis is away or stands still.
    fn look(
        &mut self,
        heartbeats: Vec<(String, String)>,
        connects: u64,
        now: Instant,
    ) -> Vec<Stopped> {
        if self.connects != connects || now.duration_since(self.last) > self.timeout / 2 {
            *self = Self::new(self.timeout, connects);
        }
        self.last = now;
        self.reclaimer.observe(heartbeats, now)
    }
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

    /// Rule H6: the time-out counts on one unbroken connection, without a pause between two looks.
    #[test]
    fn time_counts_anew_after_a_pause_and_with_a_connection() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let beats = || vec![("a#1".to_owned(), "7".to_owned())];
        // (the looks, as seconds and connections, and which of them finds the consumer stopped)
        for (looks, found) in [
            ([(0, 1), (20, 1), (40, 1), (60, 1), (80, 1)], Some(60)),
            ([(0, 1), (20, 2), (40, 2), (60, 2), (80, 2)], Some(80)),
            ([(0, 1), (20, 1), (40, 1), (60, 2), (80, 2)], None),
            ([(0, 1), (31, 1), (50, 1), (70, 1), (90, 1)], None),
        ] {
            let mut watch = Looks::new(TIMEOUT, 1);
            watch.last = start;
            let mut stopped = looks.into_iter().filter(|&(seconds, connects)| {
                !watch.look(beats(), connects, at(seconds)).is_empty()
            });
            assert_eq!(stopped.next().map(|(seconds, _)| seconds), found, "{looks:?}");
        }
    }
}
