//! Pipeline of the daemon: moves batches from the source to the sink, in sessions.
//!
//! A session is the work on one connection. If the session fails, its batches stay queued. The next
//! session takes the lease under a new token, reads the last commit from Redis, and continues from
//! there.

mod disk;
mod error;
mod filter;
pub(crate) mod intake;
mod persistence;
mod server;
mod session;
pub(crate) mod shutdown;
mod standalone;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use crate::config::Config;
use crate::pipeline::shutdown::Stop;
use crate::report::{ByRule, Phase, Report, Reporter};
use filter::RunFilter;
use intake::Arrivals;
use serde::Serialize;
use session::{LeaseClaim, Queue};
use tracing::{info, warn};
use urlseen_engine::engine::Works;
use urlseen_engine::item::Reader;
use urlseen_filter::Parameters;
use urlseen_redis::backoff::Backoff;
use urlseen_redis::error::LinkError;
use urlseen_redis::limits::ServerLimits;
use urlseen_redis::protocol::{GivenBack, Protocol, ProtocolError, ScriptError};

pub(crate) use error::RunError;
pub(crate) use filter::Shared;
pub(crate) use server::Server;
pub(crate) use standalone::Standalone;

/// Maximum number of claimed items that the daemon moves back to the source when it ends. If the
/// source or the list of claimed items is empty, one rename is enough. Otherwise the move blocks
/// all other clients of Redis for about a microsecond per item.
pub(crate) const GIVE_BACK_MAX: usize = 20_000;

/// Maximum time for releasing the lease of a run that failed.
const RELEASE: Duration = Duration::from_secs(2);

/// Everything that a pipeline needs, except its filter.
pub(crate) struct Parts {
    /// Redis server of the crawl.
    pub server: Arc<dyn Server>,
    /// Protocol that builds the crawl's requests to Redis.
    pub protocol: Protocol,
    /// Reader of the items that are to be forgotten.
    pub forgets: Reader,
    /// Configuration of the crawl.
    pub config: Config,
    /// True to end the run once the source is empty and all items are committed.
    pub drain: bool,
    /// True to wait for a lease that another process holds, instead of ending.
    pub standby: bool,
}

/// Reason why a run ended without an error. The largest reason of several runs counts for a
/// process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ending {
    /// The source is empty and all items are committed.
    Drained,
    /// The run was asked to stop.
    Stopped,
    /// The filter is full, and either the configuration says to stop then, or the filter has no
    /// room.
    Full,
}

/// Moves batches from the source through the engine to the sink.
pub(crate) struct Pipeline {
    parts: Parts,
    filter: RunFilter,
    claim: LeaseClaim,
    reporter: Reporter,
    queue: Queue,
    /// True if the filter is recovered to the head of the queue, the last commit of this run.
    is_recovered: bool,
    /// Limits of the server on the size of a request, as last reported.
    limits: ServerLimits,
    /// True if the batches of the queue must be read again, because these limits have changed since
    /// they were read, or another program has changed the claimed items.
    are_stale: bool,
    backoff: Backoff,
    arrivals: Arrivals,
    stop: Stop,
}

impl Pipeline {
    /// Makes a run with the filter of `works`, or with the filter in Redis if `shared` has one. The
    /// filter has these parameters. `limit` is the capacity of a filter of fixed size. The run
    /// publishes its state on `reporter`, and ends when `stop` becomes true.
    pub(crate) fn new(
        parts: Parts,
        works: Works,
        parameters: Parameters,
        limit: Option<u64>,
        shared: Option<Shared>,
        mut reporter: Reporter,
        stop: Stop,
    ) -> Self {
        let capacity = parts.config.filter.capacity;
        let mut filter = RunFilter::new(works, parameters, capacity, limit, shared);
        reporter.publish(filter.status());
        Self {
            reporter,
            parts,
            filter,
            claim: LeaseClaim::new(),
            queue: Queue::new(urlseen_storage::Head::START, 0),
            is_recovered: false,
            limits: ServerLimits::ASSUMED,
            are_stale: false,
            backoff: Backoff::default(),
            arrivals: Arrivals::new(),
            stop,
        }
    }

    /// Runs until there is nothing more to do, or until an error that no retry can fix. If
    /// `interval` is set, calls `show` with a report once in each interval.
    pub(crate) async fn run(
        &mut self,
        interval: Option<Duration>,
        show: &mut dyn FnMut(&Report),
    ) -> Result<Ending, RunError> {
        let disk = self.filter.disk.clone();
        let ended = tokio::select! {
            ended = self.sessions(interval, show) => ended,
            never = disk::watch(disk) => match never {},
        };
        match ended {
            Err(failure) if !matches!(failure, RunError::Away(_) | RunError::Hanging(_)) => {
                self.give_up(&failure).await;
                Err(self.diagnosed(failure).await)
            }
            ended => ended,
        }
    }

    /// Publishes that the run has failed, and releases the lease.
    pub(crate) async fn give_up(&mut self, failure: &RunError) {
        self.enter(Phase::Failed { reason: failure.to_string() });
        self.release().await;
    }

    /// Works in sessions until the run ends, or until an error that no further session can fix.
    async fn sessions(
        &mut self,
        interval: Option<Duration>,
        show: &mut dyn FnMut(&Report),
    ) -> Result<Ending, RunError> {
        loop {
            let failure = match self.session(interval, show).await {
                Ok(ending) => return Ok(ending),
                Err(failure) => self.checked(failure).await?,
            };
            let (now, standby) = (&self.reporter.now.status.phase, self.parts.standby);
            let jitter = || self.parts.server.jitter();
            let Some((wait, phase)) = failure.retry(now, standby, &mut self.backoff, jitter) else {
                return Err(failure);
            };
            self.is_recovered &= !failure.is_for_want_of_descriptors();
            self.enter(phase);
            let mut stop = self.stop.clone();
            let told = async move { stop.wait_for(|stop| *stop).await.is_ok() };
            let wait = async { tokio::time::timeout(wait, told).await.is_ok() };
            if self.meanwhile(wait).await? {
                self.answer_all().await?;
                return match failure {
                    RunError::FewReplicas { .. } => {
                        self.release().await;
                        Ok(Ending::Stopped)
                    }
                    // A process that waits for the lease has no batches.
                    RunError::Redis(ProtocolError::Held { .. }) => Ok(Ending::Stopped),
                    RunError::Hanging(_) => Err(failure),
                    _ if failure.is_for_want_of_descriptors() => Err(failure),
                    failure => Err(RunError::Away(Box::new(failure))),
                };
            }
        }
    }

    /// Notes that another program has changed the claimed items. Checks the filter of a standby
    /// that would wait for the lease. If the filter does not belong to the crawl, the standby could
    /// never take over. Then the result is the mismatch in place of `failure`.
    async fn checked(&mut self, failure: RunError) -> Result<RunError, RunError> {
        match failure {
            RunError::Redis(ProtocolError::Refused(ScriptError::Source { .. })) => {
                self.are_stale = true;
                Ok(failure)
            }
            RunError::Redis(ProtocolError::Held { head, filter, .. }) if self.parts.standby => {
                let unfit = self.filter.check_fit(head, filter).await?;
                Ok(unfit.err().map_or(failure, |unfit| RunError::Standby(Box::new(unfit))))
            }
            failure => Ok(failure),
        }
    }

    /// Publishes the phase that the run enters.
    fn enter(&mut self, phase: Phase) {
        self.reporter.now.status.phase = phase;
        self.reporter.now.status.asked = self.filter.works.dispatcher.asked;
        self.reporter.publish(self.filter.status());
    }

    /// Releases the lease at the end of a run that failed. Otherwise the next start would have to
    /// wait until the lease expires.
    async fn release(&self) {
        if !self.claim.is_made {
            return;
        }
        let Parts { server, protocol, .. } = &self.parts;
        let release = async {
            let mut link = server.connect().await?;
            protocol.release(&mut link, &self.claim.token()).await
        };
        if !matches!(tokio::time::timeout(RELEASE, release).await, Ok(Ok(()))) {
            warn!("the lease could not be released: the lease ends by itself within 15 s");
        }
    }

    /// Finds the cause of a failure. Redis does not name the key that has a wrong type or is
    /// denied. So the checks of the start are repeated: their errors name the key.
    async fn diagnosed(&self, failure: RunError) -> RunError {
        use LinkError::{NoPermission, UnknownCommand, WrongType};
        let RunError::Redis(ProtocolError::Link(
            WrongType | NoPermission { .. } | UnknownCommand { .. },
        )) = failure
        else {
            return failure;
        };
        let Parts { server, protocol, .. } = &self.parts;
        match server.check(&protocol.needs()).await {
            Err(problems) if problems.iter().any(|it| !it.is_passing()) => {
                RunError::Preflight(problems)
            }
            // The cause was fixed in the meantime, or Redis is unreachable.
            Ok(_) | Err(_) => failure,
        }
    }

    /// Returns the progress of the run.
    pub(crate) fn report(&mut self) -> Report {
        self.reporter.report(self.filter.status())
    }

    /// Returns true if the filter had no room for further items.
    pub(crate) fn lacks_room(&self) -> bool {
        self.filter.works.engine.full.is_some()
    }

    /// Returns the numbers of items by rule.
    pub(crate) fn by_rule(&self) -> ByRule {
        self.reporter.by_rule()
    }

    fn tell_given_back(given: GivenBack) {
        match given {
            GivenBack { back: 0, left: 0, .. } => info!("the lease is released"),
            GivenBack { back, left: 0, .. } => {
                info!("{back} unread items are back in the source. The lease is released");
            }
            GivenBack { left, .. } => info!(
                "{left} unread items stay claimed, because this list and the source are both too \
                 long to join. The next start reads the claimed items first. The lease is released"
            ),
        }
    }

    /// Waits until all accepted queries are answered.
    pub(super) async fn answer_all(&mut self) -> Result<(), RunError> {
        while self.filter.works.is_asked() {
            let event = self.filter.works.next(false).await?;
            self.take(event);
        }
        Ok(self.filter.works.do_extras().await?)
    }

    /// Waits until the queue has all batches that are now in the engine or on their way to the log.
    pub(super) async fn gather(&mut self) -> Result<(), RunError> {
        while self.filter.works.in_progress() > 0 {
            let event = self.filter.works.next(false).await?;
            self.take(event);
        }
        Ok(())
    }

    /// Does `work`, which does not use the filter, and answers queries at the same time.
    pub(super) async fn meanwhile<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<T, RunError> {
        let mut work = pin!(work);
        loop {
            self.filter.works.do_extras().await?;
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                event = self.filter.works.next(self.is_recovered) => self.take(event?),
            }
        }
    }
}
