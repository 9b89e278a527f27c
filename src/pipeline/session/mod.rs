//! Work on one connection, from taking the lease to releasing it.

mod begin;
mod commits;
mod duties;
mod forgetting;
mod lease;
mod reclaiming;
mod replicas;
mod requests;

use std::time::{Duration, Instant};

use crate::config::{Config, WhenFull};
use begin::{Connected, Recovered};
use commits::Pressure;
use duties::{Answers, Duties};
use forgetting::Forgetting;
use futures_util::stream::StreamExt as _;
use replicas::Replicas;
use requests::Requests;
use tokio::time::sleep_until;
use urlseen_engine::engine::Event;
use urlseen_redis::limits::ServerLimits;
use urlseen_redis::link::Reply;
use urlseen_redis::protocol::Reclaimer;

use super::intake::Intake;
use super::{Ending, Pipeline, RunError};
use crate::pipeline::GIVE_BACK_MAX;
use crate::report::{Backpressure, Phase, Report};

pub(super) use commits::Queue;
use lease::Lease;
pub(super) use lease::LeaseClaim;

/// Maximum number of batches that are read and not committed, in all stages.
const AHEAD_MAX: usize = 8;

/// Work on one connection.
struct Session<'a> {
    pipeline: &'a mut Pipeline,
    requests: Requests,
    lease: Lease,
    intake: Intake,
    /// Number of queued batches that were sent to be committed.
    sent: usize,
    /// Sent batches that Redis has committed, but that too few replicas have received.
    replicas: Replicas,
    pressure: Pressure,
    duties: Duties,
    answers: Answers,
    /// State of the work on the list of keys to forget.
    forgetting: Forgetting,
    /// Finds the consumers that have stopped.
    reclaimer: Reclaimer,
    /// True if the replicas are asked about their saves.
    are_saves_asked: bool,
    /// Shows a report on a terminal.
    show: &'a mut dyn FnMut(&Report),
}

impl Pipeline {
    /// Works on one connection until the run ends or an error occurs.
    pub(super) async fn session(
        &mut self,
        report_every: Option<Duration>,
        show: &mut dyn FnMut(&Report),
    ) -> Result<Ending, RunError> {
        let mut session = Session::begin(self, report_every, show).await?;
        let ending = session.work().await?;
        session.finish().await.map(|()| ending)
    }
}

impl<'a> Session<'a> {
    /// Connects, takes the lease, reads the position of the crawl, and recovers the filter to that
    /// position.
    async fn begin(
        pipeline: &'a mut Pipeline,
        report_every: Option<Duration>,
        show: &'a mut dyn FnMut(&Report),
    ) -> Result<Self, RunError> {
        let connected = Connected::open(pipeline).await?;
        let owned = connected.own(pipeline).await?;
        let recovered = owned.recover(pipeline).await?;
        let Recovered { link, waiter, lease, sink_length, rejected_length } = recovered;
        let queue = &pipeline.queue;
        let read_to = queue.cursor(queue.batches.len());
        let Config { source, held: consumers, .. } = &pipeline.parts.config;
        let ServerLimits { batch, items, .. } = pipeline.limits;
        let mut session = Self {
            requests: Requests::new(link),
            lease,
            intake: Intake::new(waiter, source, (items, batch), read_to),
            sent: 0,
            replicas: Replicas::new(pipeline.parts.protocol.wanted_replicas),
            pressure: Pressure::new(sink_length, rejected_length),
            duties: Duties::new(pipeline, report_every),
            answers: Answers::new(),
            forgetting: Forgetting::default(),
            reclaimer: Reclaimer::new(consumers.timeout),
            are_saves_asked: false,
            show,
            pipeline,
        };
        session.look();
        Ok(session)
    }

    /// Sends everything that can be sent, then waits for the next event, in a loop.
    async fn work(&mut self) -> Result<Ending, RunError> {
        let mut stop = self.pipeline.stop.clone();
        self.ask_for_forgets();
        self.ask_for_persistence();
        self.ask_lengths();
        // The session forgets the keys that are already on the list before it reads the first item,
        // because an item that was pushed after its key must pass.
        let mut is_first = true;
        loop {
            self.submit();
            is_first &= self.is_forgetting();
            if !is_first {
                self.read_ahead();
            }
            self.send_commits();
            self.ask_replicas();
            self.claim();
            if let Some(ending) = self.ending() {
                return Ok(ending);
            }
            self.intake.wait_if_idle(&self.pipeline.parts.protocol);
            self.pipeline.filter.works.do_extras().await?;
            let Self { pipeline, requests, intake, duties, answers, .. } = self;
            tokio::select! {
                // Timers and requests to stop have priority: under load, there is always more work.
                biased;
                _ = stop.wait_for(|stop| *stop) => return Ok(Ending::Stopped),
                () = sleep_until(self.lease.until) => return Err(self.lapsed()),
                start = duties.due() => start(self),
                answer = requests.answer() => self.take_note(answer?)?,
                event = pipeline.filter.works.next(true) => {
                    let event = event?;
                    if let Event::SnapshotDue = event {
                        duties.check_now();
                    }
                    pipeline.take(event);
                }
                Some(act) = answers.next() => act(self)?,
                found = intake.wake() => if let Some(found) = found?
                    && !intake.woken(&found.into_value()?)
                {
                    pipeline.arrivals.last = Instant::now();
                },
            }
        }
    }

    /// Waits for the answers to the commits, puts uncommitted items back into the source, and
    /// releases the lease.
    async fn finish(&mut self) -> Result<(), RunError> {
        self.intake.end();
        self.pipeline.enter(Phase::Stopping);
        self.finish_forgetting().await?;
        self.finish_requests().await?;
        self.pipeline.gather().await?;
        self.pipeline.answer_all().await?;
        let Pipeline { queue, filter, .. } = &mut *self.pipeline;
        queue.clear();
        let head = queue.head;
        filter.abort(head).await?;
        // After this, the counts of the filter are final.
        filter.works.engine.caught_up().await?;
        filter.watch_fill();
        if let Some(shared) = &mut filter.shared {
            shared.look(&mut self.requests.link).await?;
        }
        let protocol = &self.pipeline.parts.protocol;
        let reply =
            self.requests.link.call(&protocol.give_back(&self.lease.token, GIVE_BACK_MAX)).await?;
        let given = protocol.given_back(reply)?;
        let Pipeline { reporter, filter, queue, .. } = &mut *self.pipeline;
        queue.cursor = given.left;
        reporter.note_source(given.source);
        reporter.note(queue.head, queue.cursor);
        if let Some(footprint) = filter.rest(head).await? {
            reporter.now.status.storage = Some(footprint);
        }
        Pipeline::tell_given_back(given);
        Ok(())
    }

    /// Checks the fill of the filter, and publishes changes.
    fn look(&mut self) {
        let Pipeline { reporter, filter, queue, arrivals, .. } = &mut *self.pipeline;
        filter.watch_fill();
        reporter.note(queue.head, queue.cursor);
        reporter.note_times(&filter.works);
        reporter.now.waiting_since = arrivals.since(queue.cursor > 0, self.intake.is_empty());
        reporter.now.lease_until = Some(self.lease.until.into_std());
        let status = &mut reporter.now.status;
        let late = self.replicas.are_late().then_some(Backpressure::Replicas);
        let by = self.pressure.by.or(late);
        status.phase = by.map_or(Phase::Working, |by| Phase::Backpressure { by });
        status.asked = filter.works.dispatcher.asked;
        status.lists.sink = Some(self.pressure.sink);
        status.lists.rejected = Some(self.pressure.rejected);
        if reporter.has_news() {
            reporter.publish(filter.status());
        }
    }

    /// Requests the next items while fewer than [`AHEAD_MAX`] batches are in progress.
    fn read_ahead(&mut self) {
        while self.requests.has_room()
            && self.on_their_way() < AHEAD_MAX
            && let Some((after, items)) = self.intake.next_window(AHEAD_MAX)
        {
            let protocol = &self.pipeline.parts.protocol;
            let window = protocol.read(after, items);
            self.intake.asked(items);
            self.requests.ask(
                "window",
                &window,
                Box::new(|session, reply, _| session.take_window(reply)),
            );
        }
    }

    /// Counts the batches that are requested or read, and whose commit Redis has not confirmed.
    fn on_their_way(&self) -> usize {
        let Pipeline { filter, queue, .. } = &*self.pipeline;
        self.intake.on_their_way() + filter.works.in_progress() + queue.batches.len()
    }

    /// Claims items of the source once all claimed items are sent to be committed. While batches
    /// wait for replicas, the end of the queue is not yet the position of the crawl. So no items
    /// are claimed then.
    fn claim(&mut self) {
        let most = if self.replicas.wanted > 0 { 0 } else { self.sent };
        let is_sent = self.on_their_way() <= most;
        if is_sent && self.intake.claims(self.pipeline.parts.drain) {
            let protocol = &self.pipeline.parts.protocol;
            let claim = protocol.claim(&self.lease.token, 0);
            self.requests.ask_once(
                "claim",
                &claim,
                Box::new(|session, reply, sent| session.take_claim(sent, reply)),
            );
            if self.requests.has_room() {
                // After the commits that were sent, nothing else is claimed.
                let items = self.intake.first_window();
                let window = protocol.first(items);
                self.requests.ask(
                    "window",
                    &window,
                    Box::new(|session, reply, _| session.take_window(reply)),
                );
            }
        }
    }

    fn take_claim(&mut self, sent: Instant, reply: Reply) -> Result<(), RunError> {
        let protocol = &self.pipeline.parts.protocol;
        let cursor = protocol.claimed(reply.into_value()?)?;
        if protocol.claims_all(cursor) {
            self.pipeline.arrivals.claimed(sent);
            self.pipeline.reporter.note_source(0);
        }
        self.intake.claimed(cursor);
        self.pipeline.queue.cursor = cursor;
        self.pipeline.backoff.reset();
        Ok(())
    }

    fn take_window(&mut self, reply: Reply) -> Result<(), RunError> {
        let (after, wanted) = self.intake.next_answer();
        let items = self.pipeline.parts.protocol.items(reply.checked()?, after, wanted)?;
        self.intake.read(items);
        Ok(())
    }

    /// Returns the reason why the run ends now. A request to stop is not one of these reasons.
    fn ending(&self) -> Option<Ending> {
        let Pipeline { parts, filter, queue, .. } = &*self.pipeline;
        let is_full = if filter.works.engine.full.is_some() {
            // The run first commits the batches that were tested before.
            filter.works.in_progress() == 0 && queue.batches.is_empty()
        } else {
            parts.config.filter.when_full == WhenFull::Stop && filter.is_past_capacity()
        };
        let is_drained =
            self.intake.is_empty() && self.on_their_way() == 0 && !self.is_forgetting();
        match (is_full, parts.drain && is_drained) {
            (true, _) => Some(Ending::Full),
            (false, true) => Some(Ending::Drained),
            (false, false) => None,
        }
    }
}
