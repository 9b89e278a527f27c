//! The work on one connection, from taking the lease to releasing it.

mod backpressure;
mod batches;
mod begin;
mod forgetting;
mod idle;
mod lease;
mod line;
mod linger;
mod pending;
mod reclaiming;
mod ticks;

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::queue::Queue;
use super::window::Window;
use super::{Ending, Live, Pipeline, Report, RunError};
use crate::crawl::protocol::{Cursor, GIVE_BACK_MAX};
use crate::pipeline::phase::{Backpressure, Phase};
use backpressure::BACKPRESSURE_POLL;
pub(super) use begin::Owned;
use begin::{Connected, Recovered};
use forgetting::{FORGETS, Forgetting};
use idle::receive;
pub(super) use lease::Lease;
use line::Line;
use linger::Linger;
use pending::Pending;
use ticks::{tick, ticks};
use urlseen_core::redis::held::Reclaimer;
use urlseen_core::redis::lease::RENEWAL;
use urlseen_core::redis::link::Link;
use urlseen_engine::config::Config;
use urlseen_engine::item::batch::{Batch, Claimed};

/// Batches read and not committed, in all stages.
const AHEAD_MAX: usize = 8;

/// How often everybody is told how it goes, if there is news, and the filter and its folder are
/// looked after.
const LOOK: Duration = Duration::from_millis(200);

/// The longest time between two looks at the lengths of the lists that others use.
const LENGTHS: Duration = Duration::from_secs(15);

/// The same while somebody watches the progress on a terminal.
const WATCHED: Duration = Duration::from_secs(1);

/// Of how many keys of a filter in Redis it is then asked how full they are.
const FILLS: usize = 8;

/// What the daemon knows of the source.
#[derive(Debug, PartialEq, Eq)]
enum Supply {
    /// There may be items to claim.
    Unknown,
    /// A claim is under way.
    Claiming,
    /// Items are claimed.
    Claimed,
    /// There was nothing to claim, and nothing has come since.
    Empty,
}

/// One connection's work.
struct Session<'a> {
    pipeline: &'a mut Pipeline,
    line: Line,
    /// A second connection, which waits for an idle source; not while the session ends.
    waiter: Option<Link>,
    lease: Lease,
    /// The batches that are ready, and where the crawl stands.
    queue: Queue,
    supply: Supply,
    /// Collects items before a claim.
    linger: Linger,
    /// Until when the connection is watched before a commit is sent that may have broken others.
    control: Option<Instant>,
    window: Window,
    /// What is read or being read ends here; nothing while only the reply can tell.
    read_to: Option<Cursor>,
    /// Windows being read.
    windows: usize,
    /// Batches read that the engine has no room for.
    backlog: VecDeque<Batch<Claimed>>,
    /// How many of the queued batches were sent to be committed.
    sent: usize,
    /// How many items wait in the sink, as last seen, and on the rejects list.
    sink_length: u64,
    rejected_length: u64,
    backpressure: Option<Backpressure>,
    /// What is done about what is to be forgotten.
    forgetting: Forgetting,
    /// Finds the consumers that stopped.
    reclaimer: Reclaimer,
    /// What was last said of it, and when it was last said that commits wait.
    told_backpressure: Option<Backpressure>,
    backpressure_told: Option<Instant>,
}

impl Pipeline {
    /// Works on one connection until the run ends or something fails.
    pub(super) async fn session(
        &mut self,
        report_every: Option<Duration>,
        show: &mut dyn FnMut(&Report),
    ) -> Result<Ending, RunError> {
        let mut session = match Session::begin(self).await {
            Ok(session) => session,
            Err(failure) => {
                self.acquit(&failure);
                return Err(failure);
            }
        };
        let result = session.work(report_every, show).await;
        let result = match result {
            Ok(ending) => session.finish().await.map(|()| ending),
            Err(failure) => Err(failure),
        };
        let Session { queue, sent, .. } = session;
        if let Err(failure) = &result {
            match queue.get(0).filter(|_| sent > 0 && failure.is_lost_connection()) {
                Some(oldest) => self.suspicion.lost(oldest.batch.head()),
                None => self.acquit(failure),
            }
        }
        self.known = Some(queue);
        result
    }
}

impl<'a> Session<'a> {
    /// Connects, takes the lease, and then, not before, reads where the crawl stands and brings
    /// the filter there.
    async fn begin(pipeline: &'a mut Pipeline) -> Result<Self, RunError> {
        let connected = Connected::open(pipeline).await?;
        let owned = connected.own(pipeline).await?;
        let recovered = owned.recover(pipeline).await?;
        let mut session = Self::new(pipeline, recovered);
        session.look();
        Ok(session)
    }

    fn new(pipeline: &'a mut Pipeline, recovered: Recovered) -> Self {
        let Recovered { link, waiter, lease, queue, sink_length, rejected_length } = recovered;
        let (read_to, ahead) = (queue.cursor(queue.batches()), queue.items());
        let is_claimed = queue.processing() > 0;
        let Config { source, held: consumers, .. } = &pipeline.parts.config;
        let bytes = source.batch_bytes.min(pipeline.limits.batch);
        Self {
            line: Line::new(link),
            waiter: Some(waiter),
            lease,
            queue,
            supply: if is_claimed { Supply::Claimed } else { Supply::Unknown },
            linger: Linger::new(source.linger.unwrap_or_default()),
            control: pipeline.suspicion.control(),
            window: Window::new(source.batch, bytes).with_alone(pipeline.suspicion.alone(ahead)),
            read_to: Some(read_to),
            windows: 0,
            backlog: VecDeque::new(),
            sent: 0,
            sink_length,
            rejected_length,
            backpressure: None,
            forgetting: Forgetting::default(),
            reclaimer: Reclaimer::new(consumers.timeout),
            told_backpressure: None,
            backpressure_told: None,
            pipeline,
        }
    }

    /// The main loop: sends all that can be sent, then waits for whatever comes first.
    async fn work(
        &mut self,
        report_every: Option<Duration>,
        show: &mut dyn FnMut(&Report),
    ) -> Result<Ending, RunError> {
        let mut stop = self.pipeline.stop.clone();
        let mut renewal = ticks(RENEWAL);
        let mut poll = ticks(BACKPRESSURE_POLL);
        let mut look = ticks(LOOK);
        let is_watched = report_every.is_some_and(|every| every < WATCHED);
        let mut lengths = ticks(if is_watched { WATCHED } else { LENGTHS });
        let mut forgets = ticks(FORGETS);
        let mut consumers = ticks(Reclaimer::interval(self.pipeline.parts.config.held.timeout));
        let mut report = report_every.map(ticks);
        // What was forgotten while nothing ran is so before the first item is judged.
        self.ask_for_forgets();
        self.ask_for_persistence();
        let mut is_first = true;
        loop {
            self.submit();
            is_first &= self.forgetting.is_under_way();
            if !is_first {
                self.read_ahead();
            }
            self.send_commits();
            self.claim();
            if let Some(ending) = self.ending() {
                return Ok(ending);
            }
            self.wait_if_idle();
            self.ask_for_snapshot();
            self.pipeline.works.do_extras().await?;
            let control = self.control;
            let Self { pipeline, queue, line, waiter, forgetting, linger, .. } = self;
            tokio::select! {
                // What the clock and people ask for comes first: work never runs out when it is
                // most.
                biased;
                _ = stop.wait_for(|stop| *stop) => return Ok(Ending::Stopped),
                () = sleep_until(self.lease.until) => return Err(self.lapsed()),
                _ = renewal.tick() => self.renew(),
                _ = lengths.tick() => self.ask_lengths(),
                _ = poll.tick(), if self.backpressure.is_some() => self.look_again(),
                _ = look.tick() => {
                    self.look();
                    self.renew_if_due();
                    self.ask_fill();
                }
                _ = forgets.tick() => self.look_for_forgets(),
                () = tick(report.as_mut()) => {
                    pipeline.note(queue);
                    show(&pipeline.report());
                }
                _ = consumers.tick() => self.look_for_stopped_consumers(),
                answer = line.answer() => self.take_note(answer?)?,
                event = pipeline.works.next(true) => pipeline.take(event, Some(queue))?,
                Some(reply) = forgetting::answered(forgetting) => self.forgot(&reply),
                found = receive(waiter.as_mut()) => self.woken(&found?.into_value()?),
                () = linger.end() => {}
                () = sleep_until(control.unwrap_or(self.lease.until)), if control.is_some() => {
                    self.control = None;
                }
            }
        }
    }

    /// Lets the commits that were sent be answered, gives the rest back and releases the lease.
    async fn finish(&mut self) -> Result<(), RunError> {
        self.waiter = None;
        self.pipeline.enter(Phase::Stopping);
        self.finish_forgetting().await?;
        while !self.line.is_idle() {
            let answer = self.line.answer().await?;
            self.take_note(answer)?;
        }
        self.pipeline.gather(Some(&mut self.queue)).await?;
        self.pipeline.answer_all(Some(&mut self.queue)).await?;
        self.queue.clear();
        let head = self.queue.head();
        self.pipeline.settle_engine(head).await?;
        self.pipeline.look_at_shared(self.line.link()).await?;
        let protocol = &self.pipeline.parts.protocol;
        let reply = self.line.call(&protocol.give_back(&self.lease.token, GIVE_BACK_MAX)).await?;
        let given = protocol.given_back(reply)?;
        let cursor = Cursor { left: given.left, ..self.queue.cursor(0) };
        self.queue.claimed(cursor);
        self.pipeline.source_length = given.source;
        self.pipeline.note(&self.queue);
        self.pipeline.rest(head).await?;
        Pipeline::tell_given_back(given);
        Ok(())
    }

    /// Tells everybody how it goes, if there is news, and looks after the filter and its folder.
    fn look(&mut self) {
        self.pipeline.watch_fill();
        self.pipeline.note(&self.queue);
        let (sink, rejected) = (Some(self.sink_length), Some(self.rejected_length));
        let lease_until = Some(self.lease.until.into_std());
        let is_new = self.pipeline.live.send_if_modified(|live| {
            let Live { status, lease_until: until } = live;
            let lists = &mut status.lists;
            let before = (lists.sink, lists.rejected, *until);
            (lists.sink, lists.rejected, *until) = (sink, rejected, lease_until);
            before != (sink, rejected, lease_until)
        });
        let phase = self.backpressure.map_or(Phase::Working, |by| Phase::Backpressure { by });
        if is_new || self.pipeline.has_news(&phase) {
            self.pipeline.enter(phase);
        }
    }

    /// Asks how long the lists are that others push to and take from.
    fn ask_lengths(&mut self) {
        if !self.line.is_asking(&Pending::SourceLength) {
            let length = self.pipeline.parts.protocol.source_length();
            self.line.ask(Pending::SourceLength, &length);
        }
        self.look_again();
    }

    /// Asks how full some keys of a filter in Redis are, once it has answered that of others: a
    /// server that is slow must not be asked more and more, until nothing else can be asked.
    fn ask_fill(&mut self) {
        if self.line.is_filling() {
            return;
        }
        for _ in 0..FILLS {
            let Some(shared) = &mut self.pipeline.parts.shared else { return };
            let (sample, ask) = shared.ask();
            self.line.ask(Pending::Fill(sample), &ask);
        }
    }

    /// Asks for the next items while few enough batches are on their way.
    fn read_ahead(&mut self) {
        while self.line.has_room()
            && self.windows < self.window.at_once(AHEAD_MAX)
            && self.on_their_way() < AHEAD_MAX
            && let Some(after) = self.read_to.filter(|cursor| cursor.left > 0)
        {
            let items = self.window.items().min(after.left);
            let (window, read_to) = self.pipeline.parts.protocol.read(after, items);
            self.read_to = read_to;
            self.windows += 1;
            self.line.ask(Pending::Window { after, items }, &window);
        }
    }

    /// Batches between source and commit.
    fn on_their_way(&self) -> usize {
        self.windows + self.backlog.len() + self.pipeline.works.in_progress() + self.queue.batches()
    }

    /// Claims what the source holds once all that was claimed is sent to be committed.
    fn claim(&mut self) {
        let is_read = self.read_to.is_some_and(|cursor| cursor.left == 0);
        if !is_read || self.on_their_way() > self.sent {
            return;
        }
        if self.supply == Supply::Claimed {
            // The wait for the source ends at once if it holds something by then.
            let drain = self.pipeline.parts.drain;
            self.supply = if drain { Supply::Unknown } else { Supply::Empty };
        }
        if self.supply == Supply::Unknown && self.linger.is_over() {
            let claim = self.pipeline.parts.protocol.claim(&self.lease.token);
            self.supply = Supply::Claiming;
            self.line.ask(Pending::Claim, &claim);
        }
    }

    /// Whether there is a reason to end, other than being told to.
    fn ending(&self) -> Option<Ending> {
        if self.pipeline.is_full(&self.queue) {
            return Some(Ending::Full);
        }
        let drained = self.supply == Supply::Empty
            && self.on_their_way() == 0
            && !self.forgetting.is_under_way();
        (self.pipeline.parts.drain && drained).then_some(Ending::Drained)
    }
}
