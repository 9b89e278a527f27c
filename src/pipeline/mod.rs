//! The way of a batch through the daemon, and what happens when it is interrupted.
//!
//! A session is the work on one connection. When it fails, its batches stay queued;
//! the next session takes the lease under a new token, asks Redis how far it came, and goes on
//! from there.

mod failure;
mod queue;
mod session;
mod tally;
mod window;

use std::time::{Duration, Instant};

use serde::Serialize;
use tracing::{info, warn};

use crate::config::{RedisAddress, RejectsFull, WhenFull};
use crate::engine::Engine;
use crate::filter::{Fullness, Sizing};
use crate::head::Tip;
use crate::protocol::{GivenBack, Protocol, Unwelcome};
use crate::redis::backoff::Backoff;
use crate::redis::connect::{Timeouts, connect};
use crate::redis::lease::{Holder, Run};
use crate::redis::link::Link;
use crate::redis::preflight::{Needs, preflight};
use crate::redis::trouble::{Retry, Trouble};
use crate::rejects::reject;
use crate::shutdown::Stop;
use crate::state::Log;
pub use failure::Failure;
pub use queue::{Diverged, Queue};
pub use tally::Tally;

/// How long to try to release the lease of a run that failed.
const RELEASE: Duration = Duration::from_secs(2);

/// What a pipeline works with.
pub struct Parts {
    /// How to reach Redis.
    pub address: RedisAddress,
    /// What to ask of it.
    pub protocol: Protocol,
    /// What must be proved before the first item is taken.
    pub needs: Needs,
    /// Judges.
    pub engine: Engine,
    /// How large the filter is.
    pub sizing: Sizing,
    /// Remembers.
    pub log: Box<dyn Log>,
    /// Who runs it.
    pub holder: Holder,
    /// How it behaves.
    pub settings: Settings,
}

/// What the config says of the way of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Items a batch has at most.
    pub batch: usize,
    /// Bytes a batch has at most, unless a single item is larger.
    pub batch_bytes: usize,
    /// How long the sink may be before commits wait; 0 for no bound.
    pub sink_max: u64,
    /// How long the list of rejects may be.
    pub rejects_max: u64,
    /// What happens then.
    pub rejects_full: RejectsFull,
    /// What happens when the filter is full.
    pub filter_full: WhenFull,
    /// End once the source is empty and all is committed.
    pub drain: bool,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The source is empty and all is committed.
    Drained,
    /// It was asked to stop.
    Stopped,
    /// The filter is full, and the config says to stop then.
    Full,
}

/// What a run looks like at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Report {
    /// What was done since the start.
    #[serde(flatten)]
    pub tally: Tally,
    /// Seconds since the start.
    pub seconds: f64,
    /// Items that wait in the source, as last seen.
    pub source: u64,
    /// Items claimed and not committed.
    pub taken: u64,
    /// Fingerprints in the filter, estimated from its fill.
    pub keys: u64,
    /// What the filter holds as a share of what it is made for.
    pub fill: f64,
    /// The share of unseen items that it calls seen now.
    pub error_rate: f64,
}

/// Moves batches from the source through the engine to the sink.
pub struct Pipeline {
    parts: Parts,
    run: Run,
    /// The id of the filter that the crawl's state is tied to.
    filter: Tip,
    /// Nothing before the first session has read where the crawl stands.
    queue: Option<Queue>,
    /// Whether the lease was asked for, and so may be held.
    has_asked_for_lease: bool,
    backoff: Backoff,
    fullness: Fullness,
    tally: Tally,
    started: Instant,
    source_length: u64,
    stop: Stop,
}

impl Pipeline {
    /// Ready to run; `stop` tells when to end.
    pub fn new(parts: Parts, stop: Stop) -> Self {
        Self {
            fullness: Fullness::new(parts.sizing),
            parts,
            run: Run::random(),
            filter: Tip::random(),
            queue: None,
            has_asked_for_lease: false,
            backoff: Backoff::default(),
            tally: Tally::default(),
            started: Instant::now(),
            source_length: 0,
            stop,
        }
    }

    /// Runs until there is nothing more to do or something that no retry mends. `show` is called
    /// with a report every `interval`, if there is one.
    pub async fn run(
        &mut self,
        interval: Option<Duration>,
        show: &mut dyn FnMut(&Report),
    ) -> Result<Ending, Failure> {
        loop {
            let failure = match self.session(interval, show).await {
                Ok(ending) => return Ok(ending),
                Err(failure) if failure.is_mendable() => failure,
                Err(failure) => {
                    self.release().await;
                    return Err(self.diagnosed(failure).await);
                }
            };
            let wait = self.backoff.next_wait(crate::head::random());
            warn!("{failure}. Trying again in {} ms", wait.as_millis());
            tokio::select! {
                biased;
                _ = self.stop.wait_for(|stop| *stop) => {
                    return Err(Failure::Away(Box::new(failure)));
                }
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Releases the lease at the end of a run that failed, so that the next start need not wait
    /// until it runs out. Where that fails too, it does: the reason to end is what counts.
    async fn release(&self) {
        if !self.has_asked_for_lease {
            return;
        }
        let Parts { address, protocol, .. } = &self.parts;
        let release = async {
            let mut link = Link::new(connect(address, Timeouts::default()).await?);
            for command in protocol.load().chain([protocol.release(&self.run.token())]) {
                link.call(command).await?;
            }
            Ok::<_, Trouble>(())
        };
        if !matches!(tokio::time::timeout(RELEASE, release).await, Ok(Ok(()))) {
            warn!("the lease could not be released; it ends by itself within 15 s");
        }
    }

    /// Redis does not say which of a command's keys has a wrong type or is denied: the proof of
    /// the start, made again, does.
    async fn diagnosed(&self, failure: Failure) -> Failure {
        let Failure::Redis(Unwelcome::Trouble(
            Trouble::WrongType | Trouble::NoPermission { .. } | Trouble::UnknownCommand { .. },
        )) = failure
        else {
            return failure;
        };
        let Parts { address, needs, .. } = &self.parts;
        match preflight(address, Timeouts::default(), needs).await {
            Err(problems) if problems.iter().any(|it| it.retry() == Retry::Never) => {
                Failure::Preflight(problems)
            }
            // Mended meanwhile, or Redis is away: what is known has to do.
            Ok(_) | Err(_) => failure,
        }
    }

    /// What the run looks like now.
    pub fn report(&self) -> Report {
        let (keys, ones) = (self.parts.engine.gauges().keys(), self.parts.engine.gauges().ones());
        let sizing = &self.parts.sizing;
        let geometry = sizing.geometry();
        let estimate: u64 = ones.iter().map(|&ones| geometry.keys_from_ones(ones)).sum();
        Report {
            tally: self.tally,
            seconds: self.started.elapsed().as_secs_f64(),
            source: self.source_length,
            taken: self.queue.as_ref().map_or(0, Queue::taken),
            keys: estimate,
            fill: estimate as f64 / sizing.capacity().get() as f64,
            error_rate: geometry.error_rate_of(&keys),
        }
    }

    /// Warns where the filter is newly past one of its marks.
    fn watch_fullness(&mut self) {
        if let Some(crossing) = self.fullness.observe(&self.parts.engine.gauges().keys()) {
            warn!("{crossing}");
        }
    }

    /// Whether the filter holds what it is made for, and that is to end the run.
    fn is_full(&self) -> bool {
        let keys = || self.parts.engine.gauges().keys().iter().sum::<u64>();
        self.parts.settings.filter_full == WhenFull::Stop
            && keys() >= self.parts.sizing.capacity().get()
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
