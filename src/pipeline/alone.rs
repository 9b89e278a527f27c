//! A run without a source: nothing but answers to those who ask. It needs no Redis.

use std::future::pending;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tracing::{debug, info, warn};

use super::report::{Live, Report, report};
use super::{Counts, Ending, RunError, Status};
use crate::pipeline::phase::Phase;
use crate::pipeline::shutdown::Stop;
use urlseen_core::filter::{FillWatch, Parameters};
use urlseen_engine::config::WhenFull;
use urlseen_engine::engine::query::QueryDispatcher;
use urlseen_engine::engine::store::{How, Local};
use urlseen_engine::engine::{EngineError, Fill, Heard};

/// How often everybody is told how it goes, and the folder is looked after.
const LOOK: Duration = Duration::from_millis(200);

/// Answers those who ask, until it is told to stop.
pub(crate) struct Alone {
    store: Local,
    dispatcher: QueryDispatcher,
    parameters: Parameters,
    when_full: WhenFull,
    fill_watch: Option<FillWatch>,
    live: watch::Sender<Live>,
    started: Instant,
    stop: Stop,
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
        let fill_watch = parameters.sizing().map(FillWatch::new);
        let started = Instant::now();
        let fill = Fill::of(&parameters, store.engine.gauges());
        let report = report(fill, Counts::default(), (dispatcher.asked(), 0), started, 0, 0);
        let live = watch::Sender::new(Live::new(status, report));
        Self { store, dispatcher, parameters, when_full, fill_watch, live, started, stop }
    }

    /// How it goes, for others to look at while it runs.
    pub(crate) fn live(&self) -> watch::Receiver<Live> {
        self.live.subscribe()
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
        let ended = self.answer(every, show).await;
        match &ended {
            Ok(()) => self.enter(Phase::Stopping),
            Err(failure) => self.enter(Phase::Failed { reason: failure.to_string() }),
        }
        ended?;
        self.dispatcher.drain(&mut self.store).await?;
        self.store.engine.settled().await?;
        if let Some(Err(error)) = self.store.wait_for_snapshot() {
            warn!("no snapshot could be taken ({error}); the log has it all");
        }
        self.store.rest_as_it_is().map_err(RunError::Folder)?;
        Ok(Ending::Stopped)
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

    async fn answer(
        &mut self,
        every: Option<Duration>,
        show: &mut dyn FnMut(&Report),
    ) -> Result<(), RunError> {
        let mut stop = self.stop.clone();
        let (mut look, mut tell) = (ticks(LOOK), every.map(ticks));
        loop {
            if self.dispatcher.has_extras() {
                self.dispatcher.do_extras(&mut self.store).await?;
            }
            let Self { store, dispatcher, .. } = self;
            let (may_ask, is_asked) = (store.engine.has_room_to_ask(), store.engine.asking() > 0);
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return Ok(()),
                _ = look.tick() => {
                    store.check().map_err(RunError::Log)?;
                    self.look();
                }
                () = tick(tell.as_mut()) => show(&self.report()),
                heard = store.engine.heard(), if is_asked => {
                    if let Heard::Answers(answers) = heard? {
                        dispatcher.answered(answers, store).map_err(RunError::Log)?;
                    }
                }
                query = dispatcher.next(), if may_ask => {
                    dispatcher.hand_on(query, &mut store.engine);
                }
            }
        }
    }

    /// Looks after the filter and its folder, and tells everybody how it goes if there is news.
    fn look(&mut self) {
        if let Some(error) = self.store.tend() {
            warn!("no snapshot could be taken ({error}); the log grows on");
        }
        let keys = self.store.engine.gauges().keys();
        if let Some(crossing) = self.fill_watch.as_mut().and_then(|watch| watch.observe(&keys)) {
            warn!("{crossing}. {REMEDY}");
        }
        let is_past = |capacity: u64| keys.iter().sum::<u64>() >= capacity;
        let capacity = self.parameters.sizing().map(|sizing| sizing.capacity().get());
        let is_full = self.when_full == WhenFull::Stop && capacity.is_some_and(is_past);
        if is_full && !self.dispatcher.is_full() {
            warn!(
                "the filter holds as many fingerprints as it is made for, and filter.when_full is \
                 \"stop\": nothing is added any more. {REMEDY}"
            );
        }
        self.dispatcher.set_full(is_full);
        if self.live.borrow().status.asked != self.dispatcher.asked() {
            debug!("{:?}", self.dispatcher.asked());
            self.publish();
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.live.send_modify(|live| live.status.phase = phase);
        self.publish();
    }

    fn publish(&mut self) {
        let (report, kept) = (self.report(), self.store.footprint());
        self.live.send_modify(|live| live.update(report, kept));
    }

    /// What the run looks like now.
    pub(crate) fn report(&self) -> Report {
        let gauges = self.store.engine.gauges();
        let asked = (self.dispatcher.asked(), gauges.tombstones());
        report(Fill::of(&self.parameters, gauges), Counts::default(), asked, self.started, 0, 0)
    }
}

/// Remedy for a full filter without a source.
const REMEDY: &str = "It cannot be made larger. Raise filter.capacity (or set filter.kind = \
     \"redisbloom\", which grows), and delete the storage folder while no daemon runs: all that \
     was added is forgotten, except what urlseen import brings back from lists of fingerprints";

/// The next tick of an interval that may not be there.
async fn tick(ticks: Option<&mut Interval>) {
    match ticks {
        Some(ticks) => drop(ticks.tick().await),
        None => pending().await,
    }
}

fn ticks(every: Duration) -> Interval {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
