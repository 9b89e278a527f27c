//! A run without a source: nothing but answers to those who ask. It needs no Redis.

use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tracing::{debug, info, warn};

use super::report::{Live, Report, report};
use super::{Counts, Ending, RunError, Status};
use crate::pipeline::phase::Phase;
use crate::pipeline::shutdown::Stop;
use urlseen_core::filter::{FillWatch, Parameters};
use urlseen_engine::config::WhenFull;
use urlseen_engine::engine::EngineError;
use urlseen_engine::engine::query::QueryDispatcher;
use urlseen_engine::engine::store::{How, Local};
use urlseen_engine::flow::driver::{Audience, Flow, FlowError, Progress};
use urlseen_engine::flow::feed::{Bad, Pages};

/// Answers those who ask, until it is told to stop.
pub(crate) struct Alone {
    store: Local,
    dispatcher: QueryDispatcher,
    board: Board,
    stop: Stop,
}

/// View of the run for others.
struct Board {
    parameters: Parameters,
    when_full: WhenFull,
    live: watch::Sender<Live>,
    started: Instant,
}

impl Alone {
    /// Ready to answer those who ask at the `dispatcher` by the filter in `store`; `stop` tells
    /// when to end.
    pub(crate) fn new(
        store: Local,
        dispatcher: QueryDispatcher,
        parameters: Parameters,
        when_full: WhenFull,
        status: Status,
        stop: Stop,
    ) -> Self {
        let live = watch::Sender::new(Live { status, lease_until: None });
        let board = Board { parameters, when_full, live, started: Instant::now() };
        board.publish(&store, &dispatcher);
        Self { store, dispatcher, board, stop }
    }

    /// How it goes, for others to look at while it runs.
    pub(crate) fn live(&self) -> watch::Receiver<Live> {
        self.board.live.subscribe()
    }

    /// Brings the filter back, and answers until it is told to stop. `show` is called with a report
    /// every `every`, if there is one.
    pub(crate) async fn run(
        &mut self,
        every: Option<Duration>,
        show: &mut dyn FnMut(&Report),
    ) -> Result<Ending, RunError> {
        self.enter(Phase::Recovering);
        info!("{}", self.recover()?);
        self.enter(Phase::Working);
        let Self { store, dispatcher, board, stop } = self;
        // Nothing comes, and the flow ends with it.
        let (held, receiver) = mpsc::channel(1);
        let (mut stop, live) = (stop.clone(), board.live.clone());
        tokio::spawn(async move {
            let _ = stop.wait_for(|stop| *stop).await;
            live.send_modify(|live| live.status.phase = Phase::Stopping);
            drop(held);
        });
        let flow = Flow {
            store,
            pages: Pages { expected: 0, receiver },
            effect: &mut (),
            dispatcher,
            fill: board.parameters.sizing().map(FillWatch::new),
            remedy: REMEDY,
            audience: &mut Teller { board, every, due: Instant::now(), show },
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

    /// Reads on a thread of its own, as a runtime's thread may not wait for the engine's. There is
    /// nothing else to do meanwhile: whoever connects is heard once the filter is there.
    fn recover(&mut self) -> Result<How, RunError> {
        thread::scope(|scope| {
            let thread = thread::Builder::new().name("recovery".to_owned());
            let reading = thread.spawn_scoped(scope, || self.store.recover());
            let recovered = reading.map_err(RunError::Thread)?.join();
            Ok(recovered.map_err(|_| RunError::Engine(EngineError::Panicked))??)
        })
    }

    fn enter(&self, phase: Phase) {
        self.board.live.send_modify(|live| live.status.phase = phase);
        self.board.publish(&self.store, &self.dispatcher);
    }

    /// Returns the state of the run.
    pub(crate) fn report(&self) -> Report {
        self.board.report(&self.store, &self.dispatcher)
    }
}

impl Board {
    fn report(&self, store: &Local, dispatcher: &QueryDispatcher) -> Report {
        let gauges = store.engine.gauges();
        let (fill, asked) = ((gauges.fill(), gauges.error_rate()), dispatcher.asked());
        report(fill, Counts::default(), (asked, gauges.tombstones()), self.started, 0, 0)
    }

    fn publish(&self, store: &Local, dispatcher: &QueryDispatcher) {
        let (report, kept) = (self.report(store, dispatcher), store.footprint());
        self.live.send_modify(|live| {
            live.update(report);
            live.status.storage = kept.map(Into::into);
        });
    }
}

/// Tells everybody how it goes.
struct Teller<'a> {
    board: &'a Board,
    /// Time between two calls of `show`, and time of the next.
    every: Option<Duration>,
    due: Instant,
    show: &'a mut dyn FnMut(&Report),
}

impl Audience for Teller<'_> {
    fn say(&mut self, words: &str) {
        warn!("{words}");
    }

    fn bad(&mut self, _: &Bad) {}

    fn progress(&mut self, _: &Progress) {}

    fn look(&mut self, store: &Local, dispatcher: &mut QueryDispatcher) {
        let board = self.board;
        let keys: u64 = store.engine.gauges().keys().iter().sum();
        let capacity = board.parameters.sizing().map(|sizing| sizing.capacity().get());
        let is_past = capacity.is_some_and(|capacity| keys >= capacity);
        let is_full = board.when_full == WhenFull::Stop && is_past;
        if is_full && !dispatcher.is_full() {
            warn!(
                "the filter holds as many fingerprints as it is made for, and filter.when_full is \
                 \"stop\": nothing is added any more. {REMEDY}"
            );
        }
        dispatcher.set_full(is_full);
        if board.live.borrow().status.asked != dispatcher.asked() {
            debug!("{:?}", dispatcher.asked());
            board.publish(store, dispatcher);
        }
        let now = Instant::now();
        if let Some(every) = self.every.filter(|_| self.due <= now) {
            (self.show)(&board.report(store, dispatcher));
            self.due = now.max(self.due + every);
        }
    }
}

impl From<FlowError> for RunError {
    fn from(error: FlowError) -> Self {
        match error {
            FlowError::Output(error) => Self::Log(error),
            FlowError::Store(error) => error.into(),
        }
    }
}

/// Remedy for a full filter without a source.
const REMEDY: &str = "It cannot be made larger. Raise filter.capacity (or set filter.kind = \
     \"redisbloom\", which grows), and delete the storage folder while no daemon runs: all that \
     was added is forgotten, except what urlseen import brings back from lists of fingerprints";
