//! Side work of a session, beside the way of its batches: when it is due, its requests, and what
//! their answers change. Each duty is in a file of its own, or in a few lines here.

use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use redis::{Cmd, Value};
use tokio::time::{Instant, sleep_until};
use tracing::warn;
use urlseen_redis::error::LinkError;
use urlseen_redis::link::Reply;
use urlseen_redis::protocol::{ProtocolError, RENEWAL, Reclaimer, value};
use urlseen_storage::Moment;

use super::forgetting::FORGETS;
use super::{Pipeline, RunError, Session};
use crate::pipeline::filter::RunFilter;
use crate::pipeline::persistence::replicas;
use crate::pipeline::server::{Awaited, Infos};

/// Time between two checks of the filter and its folder. After a check, the session publishes the
/// changes.
const LOOK: Duration = Duration::from_millis(200);

/// Maximum time between two checks of the lengths of the lists that other programs use.
const LENGTHS: Duration = Duration::from_secs(15);

/// Time between two checks of the lists' lengths while a terminal shows the progress.
const WATCHED: Duration = Duration::from_secs(1);

/// Number of requests for the fill of a filter in Redis that are under way together.
const FILLS: usize = 8;

/// Answers that a session awaits from others than its connection, each as a change of the session.
pub(super) type Answers = FuturesUnordered<Awaited<'static, Act>>;

/// Change of a session that follows from an answer.
type Act = Box<dyn FnOnce(&mut Session<'_>) -> Result<(), RunError> + Send>;

/// Start of a duty that is due.
type Start = fn(&mut Session<'_>);

/// Duty that is due again and again.
struct Duty {
    every: Duration,
    due: Instant,
    start: Start,
}

/// Duties of a session that are due again and again. The first one is the check of the filter and
/// its folder.
pub(super) struct Duties(Vec<Duty>);

impl Duties {
    /// Plans the duties. The first one of each kind is due after its interval.
    pub(super) fn new(pipeline: &Pipeline, report_every: Option<Duration>) -> Self {
        let is_watched = report_every.is_some_and(|every| every < WATCHED);
        let stopped = Reclaimer::interval(pipeline.parts.config.held.timeout);
        let report: Option<(_, Start)> =
            report_every.map(|every| (every, (|session| session.report()) as Start));
        let all: [(_, Start); 5] = [
            (LOOK, |session| session.check()),
            (RENEWAL, |session| session.renew()),
            (if is_watched { WATCHED } else { LENGTHS }, |session| session.ask_lengths()),
            (FORGETS, |session| session.look_for_forgets()),
            (stopped, |session| session.look_for_stopped_consumers()),
        ];
        let all = all.into_iter().chain(report);
        Self(all.map(|(every, start)| Duty { every, due: Instant::now() + every, start }).collect())
    }

    /// Makes the check due at once.
    pub(super) fn check_now(&mut self) {
        self.0[0].due = Instant::now();
    }

    /// Waits until a duty is due. The one that has been due for longest comes first, so a renewal
    /// of the lease waits for no later duty.
    pub(super) async fn due(&mut self) -> Start {
        let next = self.0.iter_mut().min_by_key(|duty| duty.due).expect("there are duties");
        sleep_until(next.due).await;
        next.due = Instant::now() + next.every;
        next.start
    }
}

/// Returns the result of a duty. If Redis refused its request, the duty counts as done, and comes
/// again when it is next due. Only a script that finds the lease lost ends the session.
fn done(name: &str, result: Result<(), RunError>) -> Result<(), RunError> {
    match result {
        Err(RunError::Redis(refusal)) if !matches!(refusal, ProtocolError::Refused(_)) => {
            warn!(
                "a request beside the batches is refused ({name}): {refusal}. The batches go on, \
                 and the request is repeated later"
            );
            Ok(())
        }
        done => done,
    }
}

impl Session<'_> {
    /// Sends a request of a duty, unless an earlier request of this name waits for its reply.
    pub(super) fn ask(
        &mut self,
        name: &'static str,
        command: &Cmd,
        take: impl FnOnce(&mut Session<'_>, Value) -> Result<(), RunError> + Send + 'static,
    ) {
        self.ask_even_if_refused(name, command, |session, reply| take(session, reply?));
    }

    /// Sends a request of a duty like [`Session::ask`]. `take` also receives a refusal.
    pub(super) fn ask_even_if_refused(
        &mut self,
        name: &'static str,
        command: &Cmd,
        take: impl FnOnce(&mut Session<'_>, Result<Value, LinkError>) -> Result<(), RunError>
        + Send
        + 'static,
    ) {
        let take = Box::new(move |session: &mut Session<'_>, reply: Reply, _| {
            done(name, take(session, reply.into_value()))
        });
        self.requests.ask_once(name, command, take);
    }

    /// Sends a request of a duty beside others of this name. The connection must have room.
    pub(super) fn ask_also(
        &mut self,
        name: &'static str,
        command: &Cmd,
        take: impl FnOnce(&mut Session<'_>, Value) -> Result<(), RunError> + Send + 'static,
    ) {
        let take = Box::new(move |session: &mut Session<'_>, reply: Reply, _| {
            let taken = reply.into_value().map_err(RunError::from);
            done(name, taken.and_then(|reply| take(session, reply)))
        });
        self.requests.ask(name, command, take);
    }

    /// Awaits an answer from elsewhere, while the session works on.
    pub(super) fn expect<T: Send + 'static>(
        &mut self,
        answer: impl Future<Output = T> + Send + 'static,
        take: impl FnOnce(&mut Session<'_>, T) -> Result<(), RunError> + Send + 'static,
    ) {
        self.answers.push(Box::pin(async move {
            let answer = answer.await;
            Box::new(move |session: &mut Session<'_>| take(session, answer)) as Act
        }));
    }

    fn report(&mut self) {
        let Self { pipeline, show, .. } = self;
        pipeline.reporter.note(pipeline.queue.head, pipeline.queue.cursor);
        show(&pipeline.report());
    }

    fn check(&mut self) {
        self.look();
        if self.lease.is_due {
            self.renew();
        }
        self.ask_fill();
        if self.pipeline.filter.snapshots.is_due {
            self.ask_for_persistence();
        }
    }

    /// Asks for the lengths of the lists that other programs also use: source, sink and rejects.
    pub(super) fn ask_lengths(&mut self) {
        let length = Cmd::llen(&self.pipeline.parts.protocol.keys.source);
        self.ask("length of the source", &length, |session, reply| {
            let waiting = value("a length", reply)?;
            session.pipeline.reporter.note_source(waiting);
            Ok(())
        });
        self.look_again();
    }

    /// Asks for the fill of some keys of a filter in Redis, if all earlier requests of this kind
    /// are answered. So requests to a slow server do not pile up.
    fn ask_fill(&mut self) {
        const NAME: &str = "fill of the filter";
        if self.requests.is_asking(NAME) {
            return;
        }
        for _ in 0..FILLS {
            let Some(shared) = &mut self.pipeline.filter.shared else { return };
            if !self.requests.has_room() {
                return;
            }
            let (sample, ask) = shared.ask();
            self.ask_also(NAME, &ask, move |session, answer| {
                let RunFilter { shared, works, .. } = &mut session.pipeline.filter;
                // Then the caches of seen keys are emptied, too.
                if shared.as_mut().is_some_and(|shared| shared.note(sample, answer)) {
                    works.engine.evict_seen();
                }
                Ok(())
            });
        }
    }
}

/// Saves of Redis and its replicas. A replica that takes over may restart, and then comes back with
/// its own last save. urlseen must keep the files with which it can recover the filter to that
/// save. So the session asks the replicas for their saves before a snapshot, because old files are
/// deleted after the snapshot.
impl Session<'_> {
    /// Asks Redis for the oldest state to which Redis may return, if there is a storage folder.
    pub(super) fn ask_for_persistence(&mut self) {
        if self.pipeline.filter.works.storage.is_some() && !self.are_saves_asked {
            let asked = Moment::now();
            self.ask(
                "states to which Redis may return",
                &redis::cmd("INFO"),
                move |session, reply| {
                    let info: String = value("INFO", reply)?;
                    session.note_persistence(info, asked);
                    Ok(())
                },
            );
        }
    }

    /// Processes the answer of the primary. If the primary has replicas, asks them for their saves.
    fn note_persistence(&mut self, info: String, asked: Moment) {
        match replicas(&info) {
            nodes if nodes.is_empty() => {
                self.pipeline.filter.learn_persistence(&info, &[], asked);
            }
            nodes => {
                self.are_saves_asked = true;
                let answers = self.pipeline.parts.server.infos(nodes);
                self.expect(answers, move |session, infos| {
                    session.note_saves(&info, infos, asked);
                    Ok(())
                });
            }
        }
    }

    /// Processes the answers of the replicas.
    fn note_saves(&mut self, info: &str, infos: Infos, asked: Moment) {
        self.are_saves_asked = false;
        let filter = &mut self.pipeline.filter;
        let mut answers = Vec::new();
        for (node, answer) in infos {
            match answer {
                Ok(info) => answers.push((node, info)),
                Err(trouble) => filter.snapshots.tell_unknown_save(&node, &trouble),
            }
        }
        filter.learn_persistence(info, &answers, asked);
    }
}
