//! The way of a batch through the daemon, and what happens when it is interrupted.
//!
//! A session is the work on one connection. When it fails, its batches stay queued;
//! the next session takes the lease under a new token, asks Redis how far it came, and goes on
//! from there.

mod alone;
mod asking;
mod counts;
mod disk;
mod error;
mod fill;
mod moment;
pub(crate) mod phase;
mod queue;
mod recovery;
mod report;
mod server;
mod session;
mod shared;
pub(crate) mod shutdown;
mod snapshots;
mod status;
mod suspicion;
#[cfg(test)]
mod tests;
mod window;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::crawl::protocol::{GivenBack, Persistence, Protocol, ProtocolError};
use crate::pipeline::phase::Phase;
use crate::pipeline::shutdown::Stop;
pub(crate) use alone::Alone;
pub use counts::Counts;
use disk::{Disk, Hang};
pub(crate) use error::RunError;
pub(crate) use queue::Queue;
pub(crate) use report::Live;
pub use report::Report;
pub use server::Server;
pub(crate) use shared::Shared;
pub use status::{Archive, FilterStatus, Head, Lists, Passed, Status, Storage};
use suspicion::Suspicion;
use urlseen_core::filter::{FillWatch, Parameters};
use urlseen_core::redis::backoff::Backoff;
use urlseen_core::redis::error::{LinkError, Retry};
use urlseen_core::redis::lease::{LeaseHolder, RunId};
use urlseen_core::redis::limits::Limits;
use urlseen_core::redis::preflight::Needs;
use urlseen_engine::config::Config;
pub use urlseen_engine::engine::query::Asked;
use urlseen_engine::engine::{Gauges, Works};
use urlseen_engine::item::Options;

/// How often a lease that is waited for is asked for.
const STANDBY: Duration = Duration::from_secs(1);

/// How long to try to release the lease of a run that failed.
const RELEASE: Duration = Duration::from_secs(2);

/// What a pipeline works with.
pub struct Parts {
    /// Redis.
    pub server: Arc<dyn Server>,
    /// What to ask of it.
    pub protocol: Protocol,
    /// What must be proved before the first item is taken.
    pub needs: Needs,
    /// What the filter is made for.
    pub parameters: Parameters,
    /// The filter, where it is in Redis.
    pub shared: Option<Shared>,
    /// How what is to be forgotten is read.
    pub forgets: Options,
    /// Who runs it.
    pub holder: LeaseHolder,
    /// The configuration of the crawl.
    pub config: Config,
    /// Ends once the source is empty and all is committed.
    pub drain: bool,
    /// Waits for a lease that another process holds, rather than ends.
    pub standby: bool,
    /// What is told of it before it starts.
    pub status: Status,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The source is empty and all is committed.
    Drained,
    /// It was asked to stop.
    Stopped,
    /// The filter is full, and the config says to stop then, or it can take no more.
    Full,
}

/// Moves batches from the source through the engine to the sink.
pub struct Pipeline {
    parts: Parts,
    run: RunId,
    /// The filter, what keeps it, and who asks about single fingerprints.
    works: Works,
    /// Where it is kept, if it is kept on a disk.
    disk: Option<Disk>,
    gauges: Arc<Gauges>,
    /// Who wants to know how it goes.
    live: watch::Sender<Live>,
    /// What this run knew of the crawl when the last session ended. The session that works has it;
    /// nothing before the first one has read where the crawl stands.
    known: Option<Queue>,
    /// The last commit and the items that are claimed, as last seen.
    head: Option<urlseen_core::storage::Head>,
    processing: u64,
    /// What the server takes at once, as last told.
    limits: Limits,
    suspicion: Suspicion,
    /// Whether the lease was asked for, and so may be held.
    has_asked_for_lease: bool,
    /// The runs before this one that the storage folder knows, once it was asked.
    dead: Option<Vec<RunId>>,
    /// What Redis said of how far back it may come.
    persistence: Persistence,
    /// Whether a snapshot is to be begun once Redis has said that again.
    is_snapshot_due: bool,
    /// Whether it was said that the storage folder goes back less far than it should.
    told_cut: bool,
    /// Who was last said to hold the lease that is waited for.
    told_holder: Option<String>,
    backoff: Backoff,
    /// Where the filter has a size that it may outgrow.
    fill_watch: Option<FillWatch>,
    /// Layers of a filter that grows, as last told.
    layers: usize,
    counts: Counts,
    /// How many items passed by each rule, by its number.
    passed: Vec<u64>,
    /// How many items commits to a filter in Redis have found unseen, since the crawl began.
    unseen: u64,
    started: Instant,
    source_length: u64,
    stop: Stop,
}

impl Pipeline {
    /// Ready to run with the filter of `works`; `stop` tells when to end.
    pub fn new(parts: Parts, works: Works, stop: Stop) -> Self {
        let gauges = Arc::clone(works.engine.gauges());
        let (counts, started) = (Counts::default(), Instant::now());
        let fill = report::fill(&parts, &gauges);
        let report = report::report(fill, counts, (works.dispatcher.asked(), 0), started, 0, 0);
        let live = Live::new(parts.status.clone(), report);
        Self {
            fill_watch: parts.parameters.sizing().map(FillWatch::new),
            layers: gauges.fill().layers,
            parts,
            run: RunId::random(),
            disk: works.storage.as_ref().map(Disk::of),
            works,
            gauges,
            live: watch::Sender::new(live),
            known: None,
            head: None,
            processing: 0,
            limits: Limits::ASSUMED,
            suspicion: Suspicion::default(),
            has_asked_for_lease: false,
            dead: None,
            persistence: Persistence::default(),
            is_snapshot_due: false,
            told_cut: false,
            told_holder: None,
            backoff: Backoff::default(),
            counts,
            passed: Vec::new(),
            unseen: 0,
            started,
            source_length: 0,
            stop,
        }
    }

    /// How it goes, for others to look at while it runs.
    pub(crate) fn live(&self) -> watch::Receiver<Live> {
        self.live.subscribe()
    }

    /// Runs until there is nothing more to do or something that no retry mends. `show` is called
    /// with a report every `interval`, if there is one.
    pub async fn run(
        &mut self,
        interval: Option<Duration>,
        show: &mut dyn FnMut(&Report),
    ) -> Result<Ending, RunError> {
        let disk = self.disk.clone();
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

    /// Tells that the run has failed, and releases the lease.
    pub(crate) async fn give_up(&mut self, failure: &RunError) {
        self.enter(Phase::Failed { reason: failure.to_string() });
        self.release().await;
    }

    /// One session after the other.
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
            let (wait, failure) = match failure {
                failure if failure.is_mendable() => {
                    let wait = self.backoff.next_wait(self.parts.server.jitter());
                    warn!("{failure}. Trying again in {} ms", wait.as_millis());
                    if failure.is_for_want_of_descriptors() {
                        self.abort_queue();
                        self.enter(Phase::Recovering);
                    } else {
                        self.enter(failure.phase());
                    }
                    (wait, Some(failure))
                }
                RunError::Redis(ProtocolError::Held { holder, .. }) if self.parts.standby => {
                    self.tell_standby(holder.as_deref());
                    (STANDBY, None)
                }
                failure => return Err(failure),
            };
            let mut stop = self.stop.clone();
            let told = async move { stop.wait_for(|stop| *stop).await.is_ok() };
            let wait = async { tokio::time::timeout(wait, told).await.is_ok() };
            if self.meanwhile(wait).await? {
                self.answer_known().await?;
                // Who stands by has nothing to lose.
                return failure.map(RunError::after_stop).map_or(Ok(Ending::Stopped), Err);
            }
        }
    }

    /// Replaces the failure of a daemon that would wait for the lease, if its filter does not
    /// belong to the crawl: it could not take over.
    async fn checked(&self, failure: RunError) -> Result<RunError, RunError> {
        match failure {
            RunError::Redis(ProtocolError::Held { head, filter, .. }) if self.parts.standby => {
                let unfit = self.check_fit(head, filter).await?;
                Ok(unfit.err().map_or(failure, |unfit| RunError::Standby(Box::new(unfit))))
            }
            failure => Ok(failure),
        }
    }

    /// Says for whom it waits, once for each.
    fn tell_standby(&mut self, holder: Option<&LeaseHolder>) {
        let name = holder
            .as_ref()
            .map_or_else(|| "a program other than urlseen".to_owned(), ToString::to_string);
        if self.told_holder.as_ref() != Some(&name) {
            info!("standing by: waiting for the lease, which {name} holds");
            self.told_holder = Some(name.clone());
        }
        self.enter(Phase::WaitingForLease { holder: name });
    }

    /// Tells everybody what it does from now on.
    fn enter(&mut self, phase: Phase) {
        if self.live.borrow().status.phase != phase {
            self.live.send_modify(|live| live.status.phase = phase);
        }
        self.publish();
    }

    /// Whether something has changed since everybody was told.
    fn has_news(&self, phase: &Phase) -> bool {
        let live = self.live.borrow();
        let Status { phase: told, counts, lists, asked, .. } = &live.status;
        told != phase
            || *counts != self.counts
            || lists.source != Some(self.source_length)
            || *asked != self.works.dispatcher.asked()
    }

    /// Takes note of where the crawl stands.
    fn note(&mut self, queue: &Queue) {
        (self.head, self.processing) = (Some(queue.head()), queue.processing());
    }

    /// Tells everybody how it goes.
    fn publish(&mut self) {
        let report = self.report();
        self.live.send_modify(|live| {
            if let Some(head) = self.head {
                live.status.head = Some(head.into());
            }
            live.update(report);
            for (passed, items) in live.status.passed.iter_mut().zip(&self.passed) {
                passed.items = *items;
            }
        });
    }

    /// The request to the disk that has waited for too long.
    fn hang(&self) -> Option<Hang> {
        self.disk.as_ref().and_then(Disk::hang)
    }

    /// Releases the lease at the end of a run that failed, so that the next start need not wait
    /// until it runs out. Where that fails too, it does: the reason to end is what counts.
    async fn release(&self) {
        if !self.has_asked_for_lease {
            return;
        }
        let Parts { server, protocol, .. } = &self.parts;
        let release = async {
            let mut link = server.connect().await?;
            for command in protocol.load().chain([protocol.release(&self.run.token())]) {
                link.call(&command).await?;
            }
            Ok::<_, LinkError>(())
        };
        if !matches!(tokio::time::timeout(RELEASE, release).await, Ok(Ok(()))) {
            warn!("the lease could not be released; it ends by itself within 15 s");
        }
    }

    /// Redis does not say which of a command's keys has a wrong type or is denied: the proof of
    /// the start, made again, does.
    async fn diagnosed(&self, failure: RunError) -> RunError {
        use LinkError::{NoPermission, UnknownCommand, WrongType};
        let RunError::Redis(ProtocolError::Link(
            WrongType | NoPermission { .. } | UnknownCommand { .. },
        )) = failure
        else {
            return failure;
        };
        let Parts { server, needs, .. } = &self.parts;
        match server.check(needs).await {
            Err(problems) if problems.iter().any(|it| it.retry() == Retry::Never) => {
                RunError::Preflight(problems)
            }
            // Mended meanwhile, or Redis is away: what is known has to do.
            Ok(_) | Err(_) => failure,
        }
    }

    /// What the run looks like now.
    pub fn report(&self) -> Report {
        let fill = report::fill(&self.parts, &self.gauges);
        let asked = (self.works.dispatcher.asked(), self.gauges.tombstones());
        report::report(fill, self.counts, asked, self.started, self.source_length, self.processing)
    }

    /// How many items passed by each rule, by its number; none behind the last that any passed by.
    pub(crate) fn passed(&self) -> &[u64] {
        &self.passed
    }

    fn tell_given_back(given: GivenBack) {
        match given {
            GivenBack { back: 0, left: 0, .. } => info!("the lease is released"),
            GivenBack { back, left: 0, .. } => {
                info!("{back} unread items are back in the source, the lease is released");
            }
            GivenBack { left, .. } => info!(
                "{left} unread items wait where they were claimed (the source is too long to \
                 give them back to at once); the next start begins with them. The lease is released"
            ),
        }
    }
}
