//! Run without a source. It only answers clients and needs no Redis.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tracing::{debug, info, warn};

use super::{Ending, RunError};
use crate::config::WhenFull;
use crate::pipeline::shutdown::Stop;
use crate::report::{FilterReport, Phase, Report, Reporter};
use urlseen_engine::engine::Works;
use urlseen_engine::engine::store::Footprint;
use urlseen_engine::flow::driver::{Audience, Flow, FlowError, Progress};
use urlseen_engine::flow::feed::{Bad, Pages};
use urlseen_filter::{FillWatch, Parameters};

/// Run that answers clients until it is told to stop.
pub(crate) struct Standalone {
    works: Works,
    when_full: WhenFull,
    reporter: Reporter,
    filter: FilterReport,
    stop: Stop,
}

impl Standalone {
    /// Makes a run with the filter of `works`, which has these parameters. The run publishes its
    /// state on `reporter`, and ends when `stop` becomes true.
    pub(crate) fn new(
        works: Works,
        parameters: Parameters,
        limit: Option<u64>,
        when_full: WhenFull,
        mut reporter: Reporter,
        stop: Stop,
    ) -> Self {
        let mut filter = FilterReport::new(&works.engine, parameters, limit);
        reporter.publish(filter.status(&works.engine, None));
        Self { works, when_full, reporter, filter, stop }
    }

    /// Recovers the filter, and answers queries until the run is asked to stop. If `every` is set,
    /// calls `show` with a report once in each such interval.
    pub(crate) async fn run(
        &mut self,
        every: Option<Duration>,
        show: &mut dyn FnMut(&Report),
    ) -> Result<Ending, RunError> {
        self.enter(Phase::Recovering);
        self.recover().await?;
        self.enter(Phase::Working);
        let Self { works, when_full, reporter, filter, stop } = self;
        let limit = filter.limit;
        // The feed has no pages. It ends at the request to stop, and the flow ends with it.
        let (held, receiver) = mpsc::channel(1);
        let mut stopped = stop.clone();
        tokio::spawn(async move {
            let _ = stopped.wait_for(|stop| *stop).await;
            drop(held);
        });
        let most = limit.filter(|_| *when_full == WhenFull::Stop);
        let flow = Flow {
            works,
            pages: Pages { expected: 0, receiver },
            effect: None,
            fill: limit.map(FillWatch::new),
            remedy: REMEDY,
            audience: &mut Publisher {
                reporter,
                filter,
                stop,
                most,
                every,
                due: Instant::now(),
                show,
            },
        };
        match flow.run().await {
            Ok(_) => Ok(Ending::Stopped),
            Err(broken) => {
                let failure = RunError::from(broken);
                self.enter(Phase::Failed { reason: failure.to_string() });
                Err(failure)
            }
        }
    }

    /// Recovers the filter. The queries of clients wait until the end of the recovery.
    async fn recover(&mut self) -> Result<(), RunError> {
        let begun = Instant::now();
        self.works.engine.restoring();
        if let Some(storage) = &self.works.storage {
            let recovered = storage.call(|store| (store.recover(), store.kept.footprint()));
            let (how, footprint) = recovered.await?;
            self.reporter.now.status.storage = Some(footprint);
            let how = how?;
            self.works.engine.restored().await?;
            self.reporter.now.status.times.recovery.observe(begun.elapsed());
            info!("{how}");
        }
        Ok(())
    }

    fn enter(&mut self, phase: Phase) {
        self.reporter.now.status.phase = phase;
        self.reporter.publish(self.filter.status(&self.works.engine, None));
    }

    /// Returns the state of the run.
    pub(crate) fn report(&mut self) -> Report {
        self.reporter.report(self.filter.status(&self.works.engine, None))
    }
}

/// Publishes the progress of the run.
struct Publisher<'a> {
    reporter: &'a mut Reporter,
    filter: &'a mut FilterReport,
    stop: &'a Stop,
    /// Number of keys at which additions are refused.
    most: Option<u64>,
    /// Time between two calls of `show`, and the time of the next call.
    every: Option<Duration>,
    due: Instant,
    show: &'a mut dyn FnMut(&Report),
}

impl Audience for Publisher<'_> {
    fn say(&mut self, words: &str) {
        warn!("{words}");
    }

    fn bad(&mut self, _: &Bad) {}

    fn progress(&mut self, _: &Progress) {}

    fn footprint(&mut self, footprint: Footprint) {
        self.reporter.now.status.storage = Some(footprint);
    }

    fn look(&mut self, works: &mut Works) {
        let keys = works.engine.handle.gauge.fill().counted;
        let is_full = self.most.is_some_and(|most| keys >= most);
        if is_full && !works.dispatcher.is_full {
            warn!(
                "the filter holds as many fingerprints as it is made for. Additions are refused, \
                 because filter.when_full is \"stop\". {REMEDY}"
            );
        }
        works.dispatcher.is_full = is_full;
        let (reporter, asked) = (&mut *self.reporter, works.dispatcher.asked);
        if reporter.now.status.asked != asked {
            debug!("{asked:?}");
        }
        reporter.now.status.asked = asked;
        reporter.note_times(works);
        if *self.stop.borrow() {
            reporter.now.status.phase = Phase::Stopping;
        }
        if reporter.has_news() {
            reporter.publish(self.filter.status(&works.engine, None));
        }
        let now = Instant::now();
        if let Some(every) = self.every.filter(|_| self.due <= now) {
            (self.show)(&reporter.report(self.filter.status(&works.engine, None)));
            self.due = now.max(self.due + every);
        }
    }
}

impl From<FlowError> for RunError {
    fn from(error: FlowError) -> Self {
        match error {
            FlowError::Output(error) => Self::Log(error),
            FlowError::Works(error) => error.into(),
        }
    }
}

/// Remedy for a full filter without a source.
const REMEDY: &str = "Raise filter.capacity, or set filter.kind = \"two-choice\" with a \
     filter.grow_to that suffices, and delete the storage folder while no daemon runs. All \
     fingerprints are then forgotten, except those that urlseen import restores from lists";
