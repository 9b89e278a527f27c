//! Outbox of a partition: pushes items to its source until the partition has acknowledged them.

use std::collections::VecDeque;
use std::convert::Infallible;

use redis::{Value, cmd};
use tokio::sync::{mpsc, watch};
use tracing::{info, warn};
use urlseen_core::redis::backoff::Backoff;
use urlseen_core::redis::connect::{Timeouts, connect};
use urlseen_core::redis::error::{LinkError, Retry};
use urlseen_core::redis::link::{Link, WAITING_MAX};
use urlseen_engine::config::Config;
use urlseen_engine::flow::source::Source;

use super::batch::Share;
use super::{PartitionStatus, RouteStatus};

/// Maximum number of shares that are sent and not acknowledged. One further command waits for
/// replicas.
const SENT: usize = WAITING_MAX - 1;

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

/// Shares on one connection.
struct Sending {
    link: Link,
    /// Replies that Redis still owes, in order.
    expected: VecDeque<Expected>,
    /// Number of shares whose pushes are sent.
    sent: usize,
    /// Number of shares that Redis has, and that replicas may lack.
    pushed: usize,
    /// True if a reply to `WAIT` is expected.
    waits: bool,
}

/// Reply that Redis owes.
enum Expected {
    /// Reply to the push of the oldest share that is not pushed.
    Push,
    /// Reply to a `WAIT` for this number of the oldest shares.
    Replicas { shares: usize },
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
        let number = self.config.partition.number();
        loop {
            let Err(failure) = self.work().await;
            if failure.retry() == Retry::Never {
                return (number, failure);
            }
            let wait = self.backoff.next_wait(urlseen_core::filter::id::random());
            warn!("partition {number}: {failure}. Trying again in {} ms", wait.as_millis());
            self.tell(|it| it.trouble = Some(failure.to_string()));
            tokio::time::sleep(wait).await;
        }
    }

    /// Pushes items over one connection.
    async fn work(&mut self) -> Result<Infallible, LinkError> {
        let link = connect(&self.config.redis.url, Timeouts::default()).await?;
        self.end_trouble();
        let expected = VecDeque::new();
        let mut sending = Sending { link, expected, sent: 0, pushed: 0, waits: false };
        loop {
            while sending.sent < self.shares.len().min(SENT) {
                self.send(&mut sending);
            }
            tokio::select! {
                Some(share) = self.queue.recv() => self.shares.push_back(share),
                reply = sending.link.receive() => {
                    let reply = reply?.into_value()?;
                    self.note(&mut sending, &reply);
                }
            }
        }
    }

    /// Sends the push of the next share.
    fn send(&self, sending: &mut Sending) {
        let mut push = cmd(Source::new(self.config.source.take_from).push());
        push.arg(&self.config.source.key);
        for item in self.shares[sending.sent].items() {
            push.arg(item);
        }
        sending.link.send(&push);
        sending.expected.push_back(Expected::Push);
        sending.sent += 1;
    }

    /// Processes a reply. Acknowledges shares that Redis and the wanted replicas have.
    fn note(&mut self, sending: &mut Sending, reply: &Value) {
        let wanted = self.config.redis.wait_replicas;
        match sending.expected.pop_front() {
            Some(Expected::Push) => sending.pushed += 1,
            Some(Expected::Replicas { shares }) => {
                sending.waits = false;
                match reply {
                    Value::Int(have) if have.cast_unsigned() < wanted => self.tell(|it| {
                        let words = format!("{have} of {wanted} replicas have the items");
                        it.trouble = Some(words);
                    }),
                    _ => {
                        self.end_trouble();
                        self.acknowledge(sending, shares);
                    }
                }
            }
            None => unreachable!("a reply belongs to a command"),
        }
        if wanted == 0 {
            self.acknowledge(sending, sending.pushed);
        } else if sending.pushed > 0 && !sending.waits {
            sending.waits = true;
            sending.link.send(cmd("WAIT").arg(wanted).arg(WAIT_MS));
            sending.expected.push_back(Expected::Replicas { shares: sending.pushed });
        }
    }

    /// Acknowledges the oldest shares.
    fn acknowledge(&mut self, sending: &mut Sending, count: usize) {
        sending.pushed -= count;
        sending.sent -= count;
        for share in self.shares.drain(..count) {
            let items = share.len();
            let index = usize::from(self.config.partition.number());
            self.status.send_modify(|status| {
                status.partitions[index].waiting -= items;
                status.partitions[index].pushed += items;
            });
            share.acknowledge();
        }
        if count > 0 {
            self.backoff.reset();
        }
    }

    fn end_trouble(&self) {
        let number = self.config.partition.number();
        if self.status.borrow().partitions[usize::from(number)].trouble.is_some() {
            info!("partition {number} takes items again");
            self.tell(|it| it.trouble = None);
        }
    }

    /// Changes the status of the partition.
    fn tell(&self, change: impl FnOnce(&mut PartitionStatus)) {
        let index = usize::from(self.config.partition.number());
        self.status.send_modify(|status| change(&mut status.partitions[index]));
    }
}
