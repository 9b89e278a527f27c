//! Router: moves the items of a list to the partitions of a crawl.
//!
//! A router reads a batch of items, and pushes each item to the source of its partition. It waits
//! until all partitions have acknowledged their items, and only then removes the batch from the
//! list. If it is killed between these steps, the next router pushes the batch again. The filter of
//! the partition drops an item that arrives twice. Any other item then passes twice, as after a
//! producer's push whose answer was lost.
//!
//! A router has no filter and no folder, so any process can take over its list.

mod outbox;
mod session;

use std::sync::Arc;
use std::time::SystemTime;

use crate::config::Config;
use crate::pipeline::shutdown::Stop;
use crate::pipeline::{Ending, RunError};
use crate::report::{Phase, RouteStatus, RoutedStatus};
use session::RouteSession;
use tokio::sync::watch;
use urlseen_engine::item::Options;
use urlseen_filter::id::{self, RandomId};
use urlseen_redis::RedisAddress;
use urlseen_redis::backoff::Backoff;
use urlseen_redis::error::LinkError;
use urlseen_redis::protocol::Protocol;

/// Router of a list: a process moves one list.
pub(crate) struct Router {
    /// Configuration of the whole crawl.
    config: Config,
    /// Address of the node that has the list.
    address: RedisAddress,
    protocol: Arc<Protocol>,
    /// Options for reading items of all partitions.
    items: Options,
    /// True to end the run once the list is empty.
    pub(crate) drain: bool,
    /// True to wait for a lease that another process holds.
    pub(crate) standby: bool,
    stop: Stop,
    run: RandomId,
    status: watch::Sender<RouteStatus>,
}

/// Reason why a router ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RouteError {
    /// The list cannot be read.
    #[error(transparent)]
    Source(RunError),
    /// The items of a partition cannot be pushed.
    #[error("partition {number} takes no items: {error}")]
    Partition {
        /// Number of the partition.
        number: u16,
        /// Error of the last push.
        error: LinkError,
    },
}

impl<E: Into<RunError>> From<E> for RouteError {
    fn from(error: E) -> Self {
        Self::Source(error.into())
    }
}

impl Router {
    /// Makes the router of `list` for the crawl of `config`. Items are read with the options
    /// `items`.
    pub(crate) fn new(config: &Config, list: &str, items: Options, stop: Stop) -> Self {
        let partitions = config.partitions.count.partitions();
        let partitions =
            partitions.map(|it| RoutedStatus { partition: it.number(), ..RoutedStatus::default() });
        let status = RouteStatus {
            crawl: config.crawl.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            since: SystemTime::now(),
            phase: Phase::Starting,
            source: list.to_owned(),
            routed: 0,
            partitions: partitions.collect(),
        };
        let mut of_list = config.clone();
        list.clone_into(&mut of_list.source.key);
        of_list.find_node();
        let (protocol, run) = (Arc::new(of_list.protocol()), RandomId::random());
        Self {
            config: config.clone(),
            address: of_list.redis.url,
            protocol,
            items,
            drain: false,
            standby: false,
            stop,
            run,
            status: watch::Sender::new(status),
        }
    }

    /// Returns the state of the router, which watchers can follow.
    pub(crate) fn watch(&self) -> watch::Receiver<RouteStatus> {
        self.status.subscribe()
    }

    /// Runs until there is nothing more to do, or until an error that no retry can end.
    pub(crate) async fn run(&mut self) -> Result<Ending, RouteError> {
        let mut backoff = Backoff::default();
        loop {
            let ended = match RouteSession::begin(self).await {
                Ok(session) => {
                    backoff.reset();
                    session.work().await
                }
                Err(failure) => Err(failure),
            };
            let failure = match ended {
                Err(RouteError::Source(failure)) => failure,
                ended => return ended,
            };
            let now = self.status.borrow().phase.clone();
            let Some((wait, phase)) = failure.retry(&now, self.standby, &mut backoff, id::random)
            else {
                self.enter(Phase::Failed { reason: failure.to_string() });
                return Err(failure.into());
            };
            self.enter(phase);
            tokio::select! {
                _ = self.stop.wait_for(|stop| *stop) => return Ok(Ending::Stopped),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Publishes that a session begins, with no items on their way.
    fn begin_session(&self) {
        self.status.send_modify(|status| {
            status.phase = Phase::Working;
            status.partitions.iter_mut().for_each(|partition| partition.waiting = 0);
        });
    }

    /// Publishes the phase that the router enters.
    pub(crate) fn enter(&self, phase: Phase) {
        self.status.send_if_modified(|status| {
            let is_new = status.phase != phase;
            status.phase = phase;
            is_new
        });
    }
}
