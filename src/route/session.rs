//! Work of a router on one connection to the source.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::sleep;
use urlseen_engine::item::Reader;
use urlseen_redis::connect::connect;
use urlseen_redis::error::LinkError;
use urlseen_redis::protocol::{Cursor, LEASE, LeaseHolder, Leased, MARGIN, RENEWAL};

use super::outbox::{Outbox, RoutedBatch, Share};
use super::{RouteError, Router};
use crate::pipeline::GIVE_BACK_MAX;
use crate::pipeline::intake::Intake;
use crate::pipeline::{Ending, RunError};
use crate::report::Phase;

/// Number of items that are read and not acknowledged by all partitions, from which on no more are
/// read.
const ITEMS: u64 = 65_536;

/// Maximum number of bytes of these items.
const BYTES: usize = 64 << 20;

/// Maximum number of items in one claim while others are claimed. Redis moves them one by one.
const CLAIM: u64 = 5000;

/// Maximum time without a look at the clock.
const TICK: Duration = Duration::from_secs(1);

/// Work on one connection, with the lease of the source.
pub(super) struct RouteSession<'a> {
    router: &'a mut Router,
    leased: Leased,
    intake: Intake,
    reader: Reader,
    /// Number of claimed items.
    claimed: Cursor,
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

impl<'a> RouteSession<'a> {
    /// Connects, takes the lease, and finds the position of the source.
    pub(super) async fn begin(router: &'a mut Router) -> Result<Self, RouteError> {
        let Router { config, protocol, .. } = &*router;
        let (link, waiter) = (connect(&router.address).await?, connect(&router.address).await?);
        let (protocol, run) = (Arc::clone(protocol), router.run);
        let holder = LeaseHolder::this(&format!("{}, router", config.crawl.name));
        let leased = Leased::take(link, protocol, &holder, run, &[]).await?;
        let claimed = leased.crawl_state.cursor;
        let intake = Intake::new(waiter, &config.source, (usize::MAX, BYTES), claimed);
        let (mut queues, mut outboxes) = (Vec::new(), JoinSet::new());
        for config in config.crawls() {
            let (queue, shares) = mpsc::unbounded_channel();
            queues.push(queue);
            outboxes.spawn(Outbox::new(config, shares, router.status.clone()).run());
        }
        router.begin_session();
        let reader = Reader::new(router.items.clone());
        Ok(Self {
            router,
            leased,
            intake,
            reader,
            claimed,
            batches: VecDeque::new(),
            items: 0,
            bytes: 0,
            done: Arc::default(),
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
                self.intake.end();
                self.router.enter(Phase::Stopping);
            } else if self.items < ITEMS && self.bytes < BYTES {
                if let Some((after, count)) = self.intake.next_window(1) {
                    self.read(after, count).await?;
                    continue;
                } else if self.intake.claims(self.router.drain) {
                    self.claim().await?;
                    continue;
                }
            }
            let is_drained = self.router.drain && self.intake.is_empty();
            let has_trouble =
                || self.router.status.borrow().partitions.iter().any(|it| it.trouble.is_some());
            if is_stopping && !self.batches.is_empty() && has_trouble() {
                // The items stay claimed, and the next run pushes them again.
                self.leased.release().await?;
                return Ok(Ending::Stopped);
            } else if self.batches.is_empty() && (is_stopping || is_drained) {
                self.leased.give_back(GIVE_BACK_MAX).await?;
                return Ok(if is_stopping { Ending::Stopped } else { Ending::Drained });
            }
            self.wait(is_stopping).await?;
        }
    }

    /// Renews the lease, if it is time.
    async fn renew_if_due(&mut self) -> Result<(), RouteError> {
        if self.leased.age() < RENEWAL {
            return Ok(());
        }
        if self.leased.age() > LEASE.saturating_sub(MARGIN) {
            return Err(RunError::Lapsed.into());
        }
        Ok(self.leased.renew().await?)
    }

    /// Removes the oldest batches from the source, if all partitions have them.
    async fn remove_routed(&mut self) -> Result<(), RouteError> {
        while let Some(batch) = self.batches.pop_front_if(|batch| batch.is_done()) {
            let count = batch.batch.items.len() as u64;
            self.leased.remove(self.claimed, count).await?;
            self.claimed -= count;
            self.items -= count;
            self.bytes -= batch.batch.items.bytes_len();
            self.router.status.send_modify(|status| status.routed += count);
        }
        Ok(())
    }

    /// Reads the next items, and hands them to the outboxes.
    async fn read(&mut self, after: Cursor, count: u64) -> Result<(), RouteError> {
        self.intake.asked(count);
        self.intake.read(self.leased.read(after, count).await?);
        while let Some(batch) = self.intake.backlog.pop_front() {
            self.items += batch.items.len() as u64;
            self.bytes += batch.items.bytes_len();
            let count = self.router.config.partitions.count;
            let (batch, shares) = RoutedBatch::divide(batch, &mut self.reader, count, &self.done);
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

    /// Claims items of the source, behind those that are claimed.
    async fn claim(&mut self) -> Result<(), RouteError> {
        self.claimed = self.leased.claim(CLAIM).await?;
        self.intake.claimed(self.claimed.saturating_sub(self.items));
        Ok(())
    }

    /// Waits until all partitions have a batch, the source has an item that can be read, the run is
    /// told to stop, or for a tick.
    async fn wait(&mut self, is_stopping: bool) -> Result<(), RouteError> {
        self.intake.wait_if_idle(&self.router.protocol);
        tokio::select! {
            () = self.done.notified() => {}
            () = sleep(TICK) => {}
            Some(ended) = self.outboxes.join_next() => return Err(match ended {
                Ok((number, error)) => RouteError::Partition { number, error },
                Err(_) => RunError::Ended("the task of a partition").into(),
            }),
            found = self.intake.wake() => if let Some(found) = found? {
                self.intake.woken(&found.into_value()?);
            },
            _ = self.router.stop.wait_for(|stop| *stop), if !is_stopping => {}
        }
        Ok(())
    }
}
