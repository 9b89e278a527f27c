//! Batches on their way to the partitions. The outbox of a partition pushes items to its source
//! until the partition has acknowledged them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use redis::{Value, cmd};
use tokio::sync::{Notify, mpsc, watch};
use tracing::{info, warn};

use crate::config::Config;
use crate::report::{RouteStatus, RoutedStatus};
use urlseen_engine::item::batch::{Batch, Claimed};
use urlseen_engine::item::{Identity, Reader};
use urlseen_fingerprint::{Fingerprint, PartitionCount};
use urlseen_redis::backoff::Backoff;
use urlseen_redis::connect::connect;
use urlseen_redis::error::LinkError;
use urlseen_redis::link::{Link, WAITING_MAX};

/// Items of the source that were read together.
#[derive(Debug)]
pub(super) struct RoutedBatch {
    pub(super) batch: Batch<Claimed>,
    /// Number of partitions that have not acknowledged their items.
    missing: AtomicUsize,
    /// Told when no partition is missing.
    done: Arc<Notify>,
}

/// Items of a batch that belong to one partition.
#[derive(Debug)]
pub(super) struct Share {
    batch: Arc<RoutedBatch>,
    indices: Vec<usize>,
}

impl RoutedBatch {
    /// Divides items by their partitions. Returns the batch and the shares of the partitions that
    /// have items. `done` is told when all of them have acknowledged their shares.
    pub(super) fn divide(
        batch: Batch<Claimed>,
        reader: &mut Reader,
        count: PartitionCount,
        done: &Arc<Notify>,
    ) -> (Arc<Self>, Vec<(usize, Share)>) {
        let mut parts = vec![Vec::new(); count.get().into()];
        for (index, item) in batch.items.iter().enumerate() {
            let partition = match reader.read(item).map(|item| item.identity) {
                Ok(Identity::Fingerprint(fingerprint)) => count.of(&fingerprint),
                // The daemon of the partition rejects an item that cannot be read, and counts a
                // dropped one.
                Ok(Identity::Unfiltered | Identity::Dropped(_)) | Err(_) => {
                    count.of(&Fingerprint::Text(item.into()))
                }
            };
            parts[usize::from(partition.number())].push(index);
        }
        let parts: Vec<_> =
            parts.into_iter().enumerate().filter(|(_, indices)| !indices.is_empty()).collect();
        let missing = AtomicUsize::new(parts.len());
        let batch = Arc::new(Self { batch, missing, done: Arc::clone(done) });
        let share = |indices| Share { batch: Arc::clone(&batch), indices };
        let shares = parts.into_iter().map(|(number, part)| (number, share(part))).collect();
        (batch, shares)
    }

    /// Returns true if all partitions have acknowledged their items.
    pub(super) fn is_done(&self) -> bool {
        self.missing.load(Ordering::Acquire) == 0
    }
}

impl Share {
    pub(super) fn len(&self) -> u64 {
        self.indices.len() as u64
    }

    fn items(&self) -> impl Iterator<Item = &[u8]> {
        self.indices.iter().map(|&index| self.batch.batch.items.get(index))
    }

    /// Notes that the partition has the items.
    fn acknowledge(self) {
        if self.batch.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.batch.done.notify_one();
        }
    }
}

/// Maximum number of shares that are sent together.
const SENT: usize = WAITING_MAX;

/// Maximum time of a `WAIT`, in milliseconds.
const WAIT_MS: u64 = 2000;

/// Pushes the items of one partition, in order. If the connection breaks, pushes everything again
/// that is not acknowledged.
pub(super) struct Outbox {
    config: Config,
    /// Shares that are to be pushed.
    queue: mpsc::UnboundedReceiver<Share>,
    /// Shares that are not acknowledged.
    shares: VecDeque<Share>,
    status: watch::Sender<RouteStatus>,
    backoff: Backoff,
}

impl Outbox {
    /// Makes the outbox of a partition. `config` is the configuration of the partition.
    pub(super) fn new(
        config: Config,
        queue: mpsc::UnboundedReceiver<Share>,
        status: watch::Sender<RouteStatus>,
    ) -> Self {
        Self { config, queue, shares: VecDeque::new(), status, backoff: Backoff::default() }
    }

    /// Pushes items for ever. Returns the number of the partition, and the error that no retry can
    /// end.
    pub(super) async fn run(mut self) -> (u16, LinkError) {
        let number = self.config.number();
        loop {
            let Err(failure) = self.work().await;
            if !failure.is_passing() {
                return (number, failure);
            }
            let wait = self.backoff.next_wait(urlseen_filter::id::random());
            warn!("partition {number}: {failure}. Trying again in {} ms", wait.as_millis());
            self.tell(|it| it.trouble = Some(failure.to_string()));
            tokio::time::sleep(wait).await;
        }
    }

    /// Pushes items over one connection. Shares that come meanwhile are pushed together.
    async fn work(&mut self) -> Result<Infallible, LinkError> {
        let mut link = connect(&self.config.redis.url).await?;
        self.end_trouble();
        loop {
            if self.shares.is_empty() {
                match self.queue.recv().await {
                    Some(share) => self.shares.push_back(share),
                    // The router ends, and this task with it.
                    None => std::future::pending().await,
                }
            }
            self.shares.extend(std::iter::from_fn(|| self.queue.try_recv().ok()));
            let sent = self.shares.len().min(SENT);
            for share in self.shares.iter().take(sent) {
                let mut push = cmd(self.config.list().push());
                push.arg(&self.config.source.key);
                share.items().for_each(|item| _ = push.arg(item));
                link.send(&push);
            }
            for _ in 0..sent {
                link.receive().await?.into_value()?;
            }
            self.wait_for_replicas(&mut link).await?;
            self.acknowledge(sent);
        }
    }

    /// Waits until the wanted replicas have all pushes of a connection.
    async fn wait_for_replicas(&self, link: &mut Link) -> Result<(), LinkError> {
        let wanted = self.config.redis.wait_replicas;
        if wanted == 0 {
            return Ok(());
        }
        loop {
            match link.call(cmd("WAIT").arg(wanted).arg(WAIT_MS)).await? {
                Value::Int(have) if have.cast_unsigned() < wanted => self.tell(|it| {
                    it.trouble = Some(format!("{have} of {wanted} replicas have the items"));
                }),
                _ => break,
            }
        }
        self.end_trouble();
        Ok(())
    }

    /// Acknowledges the oldest shares.
    fn acknowledge(&mut self, count: usize) {
        self.backoff.reset();
        for share in self.shares.drain(..count).collect::<Vec<_>>() {
            let items = share.len();
            self.tell(|it| {
                it.waiting -= items;
                it.pushed += items;
            });
            share.acknowledge();
        }
    }

    fn end_trouble(&self) {
        let number = self.config.number();
        if self.status.borrow().partitions[usize::from(number)].trouble.is_some() {
            info!("partition {number} takes items again");
            self.tell(|it| it.trouble = None);
        }
    }

    /// Changes the status of the partition.
    fn tell(&self, change: impl FnOnce(&mut RoutedStatus)) {
        let index = usize::from(self.config.number());
        self.status.send_modify(|status| change(&mut status.partitions[index]));
    }
}
