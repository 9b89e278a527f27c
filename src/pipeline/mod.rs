//! The way of a batch through the daemon, and what happens when it is interrupted.
//!
//! A [`Session`](session) is the work on one connection. When it fails, its batches stay queued;
//! the next session takes the lease under a new token, asks Redis how far it came, and goes on
//! from there.

mod queue;
mod reject;
mod session;
mod tally;
mod window;

use std::time::{Duration, Instant};

use serde::Serialize;
use tracing::{info, warn};

use crate::config::{RedisAddress, RejectsFull, WhenFull};
use crate::engine::{Died, Engine};
use crate::filter::{Fullness, Sizing};
use crate::head::Tip;
use crate::protocol::{GivenBack, Protocol, Unwelcome};
use crate::redis::backoff::Backoff;
use crate::redis::lease::{Holder, Run};
use crate::redis::preflight::{Needs, PreflightProblem};
use crate::redis::trouble::{Retry, Trouble};
use crate::shutdown::Stop;
use crate::state::Log;
pub use queue::{Diverged, Queue};
pub use tally::Tally;

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

/// Why a run ended otherwise. Whatever it is, items that were not committed wait in Redis.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// What no retry mends.
    #[error(transparent)]
    Redis(Unwelcome),
    /// The proof before the start failed.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Preflight(Vec<PreflightProblem>),
    /// Redis has another history.
    #[error(transparent)]
    Diverged(#[from] Diverged),
    /// A filter thread panicked.
    #[error(transparent)]
    Died(#[from] Died),
    /// The log cannot be written.
    #[error("the log cannot be written: {0}. Nothing more is committed; make room and start again")]
    Log(std::io::Error),
    /// Asked to stop while Redis was away.
    #[error(
        "stopped while Redis was away ({0}). Items that were claimed wait there for the next \
         start; the lease ends by itself within 15 s"
    )]
    Away(Box<Failure>),
}

/// Why a session ended early.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Redis, or the way to it.
    #[error(transparent)]
    Redis(#[from] Unwelcome),
    /// See [`RunError::Preflight`].
    #[error("the checks before the start failed")]
    Preflight(Vec<PreflightProblem>),
    /// See [`RunError::Diverged`].
    #[error(transparent)]
    Diverged(#[from] Diverged),
    /// See [`RunError::Died`].
    #[error(transparent)]
    Died(#[from] Died),
    /// See [`RunError::Log`].
    #[error(transparent)]
    Log(std::io::Error),
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        Self::Redis(trouble.into())
    }
}

impl Failure {
    /// Sorts out what another session would not mend.
    fn mendable(self) -> Result<Self, RunError> {
        match self {
            Self::Redis(Unwelcome::Trouble(trouble)) if trouble.retry() == Retry::Never => {
                Err(RunError::Redis(trouble.into()))
            }
            Self::Redis(Unwelcome::Trouble(_) | Unwelcome::Refused(_)) => Ok(self),
            Self::Redis(unwelcome) => Err(RunError::Redis(unwelcome)),
            Self::Preflight(problems) => Err(RunError::Preflight(problems)),
            Self::Diverged(diverged) => Err(diverged.into()),
            Self::Died(died) => Err(died.into()),
            Self::Log(error) => Err(RunError::Log(error)),
        }
    }
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
    ) -> Result<Ending, RunError> {
        loop {
            let failure = match self.session(interval, show).await {
                Ok(ending) => {
                    // The last commits are in the gauges, for the report and the last warning.
                    self.parts.engine.settled().await?;
                    self.watch_fullness();
                    return Ok(ending);
                }
                Err(failure) => failure.mendable()?,
            };
            let wait = self.backoff.next_wait(crate::head::random());
            warn!("{failure}. Trying again in {} ms", wait.as_millis());
            tokio::select! {
                biased;
                _ = self.stop.wait_for(|stop| *stop) => {
                    return Err(RunError::Away(Box::new(failure)));
                }
                () = tokio::time::sleep(wait) => {}
            }
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
            GivenBack { back: 0, left: 0 } => info!("the lease is released"),
            GivenBack { back, left: 0 } => {
                info!("{back} unread items are back in the source, the lease is released");
            }
            GivenBack { left, .. } => info!(
                "{left} unread items wait where they were claimed (the source is too long to \
                 give them back to at once); the next start begins with them. The lease is released"
            ),
        }
    }
}
