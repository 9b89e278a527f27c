//! Work of a router on one connection to the source.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::lease::{LEASE, MARGIN, RENEWAL, Token};
use urlseen_core::redis::link::Link;
use urlseen_engine::item::Reader;

use super::batch::{RoutedBatch, Share};
use super::outbox::Outbox;
use super::{RouteError, Router};
use crate::crawl::protocol::{Cursor, GIVE_BACK_MAX, Position};
use crate::pipeline::linger::Linger;
use crate::pipeline::phase::Phase;
use crate::pipeline::window::Window;
use crate::pipeline::{Ending, RunError};

/// Maximum number of items that are read and not acknowledged by all partitions. A partition knows
/// the marks of more items.
const ITEMS: u64 = 65_536;

/// Maximum number of bytes of these items.
const BYTES: usize = 64 << 20;

/// Maximum number of items in one claim while others are claimed. Redis moves them one by one.
const CLAIM: u64 = 5000;

/// Maximum time without a look at the clock.
const TICK: Duration = Duration::from_secs(1);

/// Work on one connection, with the lease of the source.
pub(super) struct Session<'a> {
    router: &'a mut Router,
    link: Link,
    /// Second connection, on which the session waits for items while the source is empty.
    waiter: Link,
    token: Token,
    /// Time of the last request for the lease.
    renewed: Instant,
    /// Cursor after the items that were read.
    read_to: Cursor,
    /// Position after the items that were read.
    position: Position,
    window: Window,
    /// Short wait before a claim, so that more items arrive.
    linger: Linger,
    reader: Reader,
    /// Batches that are read and still in the source, in order.
    batches: VecDeque<Arc<RoutedBatch>>,
    /// Number of items in these batches.
    items: u64,
    /// Number of bytes of these items.
    bytes: usize,
    /// Told when all partitions have acknowledged a batch.
    done: Arc<Notify>,
    queues: Vec<mpsc::UnboundedSender<Share>>,
    outboxes: JoinSet<(u16, LinkError)>,
}

impl<'a> Session<'a> {
    /// Connects, takes the lease, and finds the position of the source.
    pub(super) async fn begin(router: &'a mut Router) -> Result<Self, RouteError> {
        let Router { config, protocol, .. } = &*router;
        let mut link = router.connect().await?;
        let waiter = router.connect().await?;
        for command in protocol.load() {
            link.call(&command).await.map_err(RunError::from)?;
        }
        let (token, renewed) = (router.token(), Instant::now());
        let own = protocol.own(&token, &router.holder(), &[]);
        let standing = protocol.owned(link.call(&own).await.map_err(RunError::from)?);
        let read_to = standing.map_err(RunError::from)?.cursor;
        let reply = link.call(&protocol.history(&token)).await.map_err(RunError::from)?;
        let position = protocol.position(reply).map_err(RunError::from)?;
        let window = Window::configured(&config.source, BYTES);
        let linger = Linger::configured(&config.source);
        let (mut queues, mut outboxes) = (Vec::new(), JoinSet::new());
        for config in config.all_partitions() {
            let (queue, shares) = mpsc::unbounded_channel();
            queues.push(queue);
            outboxes.spawn(Outbox::new(config, shares, router.status.clone()).run());
        }
        router.begin_session();
        let reader = Reader::new(router.items);
        let (batches, done) = (VecDeque::new(), Arc::default());
        Ok(Self {
            router,
            link,
            waiter,
            token,
            renewed,
            read_to,
            position,
            window,
            linger,
            reader,
            batches,
            items: 0,
            bytes: 0,
            done,
            queues,
            outboxes,
        })
    }

    /// Moves items until the run ends.
    pub(super) async fn work(mut self) -> Result<Ending, RouteError> {
        loop {
            self.renew_if_due().await?;
            self.remove_routed().await?;
            let is_stopping = *self.router.stop.borrow();
            if is_stopping {
                self.router.enter(Phase::Stopping);
            }
            let may_read = self.has_room() && !is_stopping;
            if may_read && (self.read_to > 0 || self.claim().await?) {
                self.read().await?;
            } else if is_stopping && !self.batches.is_empty() && self.router.has_trouble() {
                // The items stay claimed, and the next run pushes them again.
                self.release().await?;
                return Ok(Ending::Stopped);
            } else if self.batches.is_empty() && (is_stopping || self.router.drain) {
                self.give_back().await?;
                return Ok(if is_stopping { Ending::Stopped } else { Ending::Drained });
            } else {
                self.wait().await?;
            }
        }
    }

    fn has_room(&self) -> bool {
        self.items < ITEMS && self.bytes < BYTES
    }

    /// Renews the lease, if it is time.
    async fn renew_if_due(&mut self) -> Result<(), RouteError> {
        if self.renewed.elapsed() < RENEWAL {
            return Ok(());
        }
        if self.renewed.elapsed() > LEASE.saturating_sub(MARGIN) {
            return Err(RunError::Lapsed.into());
        }
        let asked = Instant::now();
        let protocol = &self.router.protocol;
        let reply = self.link.call(&protocol.renew(&self.token)).await.map_err(RunError::from)?;
        protocol.done(reply).map_err(RunError::from)?;
        self.renewed = asked;
        Ok(())
    }

    /// Removes the oldest batches from the source, if all partitions have them.
    async fn remove_routed(&mut self) -> Result<(), RouteError> {
        while let Some(batch) = self.batches.pop_front_if(|batch| batch.is_done()) {
            let protocol = &self.router.protocol;
            let RoutedBatch { items, position, .. } = &*batch;
            let before = self.read_to + self.items;
            let routed = protocol.routed(&self.token, position, before, items);
            let reply = self.link.call(&routed).await.map_err(RunError::from)?;
            protocol.done(reply).map_err(RunError::from)?;
            let count = items.len() as u64;
            self.items -= count;
            self.bytes -= items.bytes_len();
            self.router.status.send_modify(|status| status.routed += count);
        }
        Ok(())
    }

    /// Reads the next items, and hands them to the outboxes.
    async fn read(&mut self) -> Result<(), RouteError> {
        let protocol = &self.router.protocol;
        let before = self.read_to;
        let count = self.window.items().min(before).min(ITEMS - self.items);
        let read = protocol.source().read(protocol.keys(), before, count);
        // A cursor counts from the end of the claimed items. If another router has taken over and
        // has claimed more, the cursor leads to other items, and their marks would be wrong. So the
        // lease must be valid after the read.
        let asked = Instant::now();
        self.link.send(&read);
        self.link.send(&protocol.renew(&self.token));
        let reply = self.link.receive().await.map_err(RunError::from)?;
        let renewed = self.link.receive().await.map_err(RunError::from)?.into_value();
        protocol.done(renewed.map_err(RunError::from)?).map_err(RunError::from)?;
        self.renewed = asked;
        let items = protocol.items(reply, before, count).map_err(RunError::from)?;
        self.read_to = items.left();
        for items in self.window.split(items) {
            let position = self.position.clone();
            self.position.routed += items.len() as u64;
            self.items += items.len() as u64;
            self.bytes += items.bytes_len();
            let count = self.router.config.partitions.count;
            let (batch, shares) =
                RoutedBatch::divide(items, position, &mut self.reader, count, &self.done);
            self.router.status.send_modify(|status| {
                for (number, share) in &shares {
                    status.partitions[*number].waiting += share.len();
                }
            });
            for (number, share) in shares {
                // An outbox that has ended is reported by `wait`.
                let _ = self.queues[number].send(share);
            }
            self.batches.push_back(batch);
        }
        Ok(())
    }

    /// Claims items of the source, behind those that are claimed. Returns true if there are any.
    async fn claim(&mut self) -> Result<bool, RouteError> {
        let protocol = &self.router.protocol;
        let claim = protocol.claim(&self.token, CLAIM);
        let reply = self.link.call(&claim).await.map_err(RunError::from)?;
        let claimed = protocol.claimed(reply).map_err(RunError::from)?;
        self.read_to = claimed.saturating_sub(self.items);
        self.linger.note(self.read_to);
        Ok(self.read_to > 0)
    }

    /// Waits until all partitions have a batch, the source has an item that can be read, the run is
    /// told to stop, or for a tick.
    async fn wait(&mut self) -> Result<(), RouteError> {
        let protocol = &self.router.protocol;
        let may_stop = !*self.router.stop.borrow();
        if may_stop && self.has_room() && self.waiter.is_idle() {
            let seconds = TICK.as_secs_f64();
            self.waiter.send(&protocol.source().wait(protocol.keys(), seconds));
        }
        tokio::select! {
            () = self.done.notified() => {}
            () = sleep(TICK) => {}
            Some(ended) = self.outboxes.join_next() => return Err(match ended {
                Ok((number, error)) => RouteError::Partition { number, error },
                Err(_) => RunError::Ended("the task of a partition").into(),
            }),
            reply = self.waiter.receive(), if !self.waiter.is_idle() => {
                let reply = reply.map_err(RunError::from)?.into_value().map_err(RunError::from)?;
                if reply != Value::Nil {
                    self.linger.begin();
                    if !self.linger.is_over() {
                        self.linger.end().await;
                    }
                }
            }
            _ = self.router.stop.wait_for(|stop| *stop), if may_stop => {}
        }
        Ok(())
    }

    async fn release(&mut self) -> Result<(), RouteError> {
        let protocol = &self.router.protocol;
        let reply = self.link.call(&protocol.release(&self.token)).await.map_err(RunError::from)?;
        protocol.done(reply).map_err(RunError::from)?;
        Ok(())
    }

    /// Gives unread items back to the source, and releases the lease.
    async fn give_back(&mut self) -> Result<(), RouteError> {
        let protocol = &self.router.protocol;
        let give_back = protocol.give_back(&self.token, GIVE_BACK_MAX);
        let reply = self.link.call(&give_back).await.map_err(RunError::from)?;
        protocol.given_back(reply).map_err(RunError::from)?;
        Ok(())
    }
}
