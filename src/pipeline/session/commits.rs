//! Commits: what a session does with a batch from its submission on, in order.
//!
//! ```text
//! read -> submitted -> judged, logged: ready -> sent -> executed -> committed
//! ```
//!
//! [`Works`](urlseen_engine::engine::Works) judges batches: it tests their items against the
//! filter. It also logs the batches. A batch that is ready stays in the queue until its commit is
//! acknowledged, or until the batch is aborted. Redis acknowledges a commit with its reply. If the
//! crawl waits for replicas, they must have the commit, too.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use redis::Cmd;
use tokio::time::{Instant, sleep};
use tracing::{error, info, warn};

use super::Session;
use super::requests::COMMIT;
use crate::config::{Config, RejectsFull};
use crate::pipeline::{Parts, Pipeline};
use crate::report::Backpressure;
use urlseen_engine::engine::Event;
use urlseen_engine::item::Unreadable;
use urlseen_engine::item::batch::{Batch, Ready, Sifted};
use urlseen_redis::link::Reply;
use urlseen_redis::protocol::{Commit, Committed, Cursor, Order, value};
use urlseen_redis::reject;
use urlseen_storage::Head;

/// Maximum number of commits that are sent and not acknowledged.
const IN_FLIGHT_MAX: usize = 3;

/// Batch with everything that its commit needs.
#[derive(Debug)]
pub(in crate::pipeline) struct Prepared {
    pub(in crate::pipeline) batch: Batch<Ready>,
    /// Rejects of the batch, as JSON.
    pub(in crate::pipeline) rejects: Vec<Vec<u8>>,
    /// True for a complete batch, and for the last part of a batch that was split.
    pub(in crate::pipeline) is_last: bool,
}

impl Prepared {
    /// Prepares a batch. `is_last` is true for a complete batch, and for the last part of a batch
    /// that was split.
    pub(in crate::pipeline) fn new(batch: Batch<Ready>, is_last: bool) -> Self {
        let now = SystemTime::now();
        let rejects = batch.rejects().map(|(item, reason)| {
            let is_large = matches!(reason, Unreadable::TooLarge { .. });
            let write = if is_large { reject::shortened } else { reject::write };
            write(item, reason, now)
        });
        Self { rejects: rejects.collect(), batch, is_last }
    }

    /// Returns the place in the processing list after the commit.
    fn end(&self) -> Cursor {
        self.batch.items.left
    }
}

/// Ready batches in the order of their commits, and the position of the crawl before the first
/// batch.
#[derive(Debug)]
pub(in crate::pipeline) struct Queue {
    /// Last batch that is known to be committed.
    pub(in crate::pipeline) head: Head,
    /// Place in the processing list after the commit `head`: the number of items that were claimed
    /// and not committed. A claim changes it while the queue is empty.
    pub(in crate::pipeline) cursor: Cursor,
    /// Queued batches, oldest first. A session adds them with [`Queue::push`].
    pub(in crate::pipeline) batches: VecDeque<Prepared>,
}

impl Queue {
    /// Makes an empty queue. `head` and `cursor` are those that Redis records.
    pub(in crate::pipeline) fn new(head: Head, cursor: Cursor) -> Self {
        Self { head, cursor, batches: VecDeque::new() }
    }

    /// Returns the position of the source before the batch at `index`, counted from the oldest. If
    /// `index` is the number of batches, returns the position after the last batch.
    pub(in crate::pipeline) fn cursor(&self, index: usize) -> Cursor {
        match index.checked_sub(1) {
            Some(before) => self.batches[before].end(),
            None => self.cursor,
        }
    }

    /// Returns the head that the next batch follows.
    pub(in crate::pipeline) fn next_base(&self) -> Head {
        self.batches.back().map_or(self.head, |last| last.batch.head())
    }

    /// Adds a batch that follows [`Queue::next_base`].
    pub(in crate::pipeline) fn push(&mut self, prepared: Prepared) {
        debug_assert_eq!(prepared.batch.base(), self.next_base());
        self.batches.push_back(prepared);
    }

    /// Removes and returns the oldest batch, which Redis has committed.
    pub(in crate::pipeline) fn committed(&mut self) -> Option<Prepared> {
        let prepared = self.batches.pop_front()?;
        self.head = prepared.batch.head();
        self.cursor = prepared.end();
        Some(prepared)
    }

    /// Drops all batches, and returns their number.
    pub(in crate::pipeline) fn clear(&mut self) -> usize {
        self.batches.drain(..).count()
    }
}

/// Batches that are read and submitted.
impl Session<'_> {
    /// Submits the batches that were read to the engine, in order.
    pub(super) fn submit(&mut self) {
        let engine = &mut self.pipeline.filter.works.engine;
        while engine.has_room()
            && let Some(batch) = self.intake.backlog.pop_front()
        {
            engine.submit(batch);
        }
    }
}

/// Batches that are judged and logged, and the other events of the filter.
impl Pipeline {
    /// Processes an event of the filter.
    pub(in crate::pipeline) fn take(&mut self, event: Event) {
        match event {
            Event::Judged(batch) => self.filter.works.log(batch),
            Event::Ready(batch) => {
                self.queue.push(Prepared::new(batch, true));
            }
            Event::Sifted(batch) => self.queue_parts(batch),
            Event::Full(why) => {
                error!(
                    "{why}. The daemon still commits the batches that it has tested. Then the run \
                     ends"
                );
            }
            Event::SnapshotDue => self.filter.snapshots.is_due = true,
            Event::Snapshot(Ok(finished)) => {
                self.reporter.now.status.counts.snapshots += 1;
                self.filter.snapshots.tell(finished);
            }
            Event::Snapshot(Err(error)) => {
                self.reporter.now.status.counts.snapshots_failed += 1;
                warn!(
                    "no snapshot could be taken ({error}). The log grows until the next snapshot"
                );
            }
            Event::Footprint(footprint) => self.reporter.now.status.storage = Some(footprint),
            Event::Added | Event::Asked | Event::Expired => {}
        }
    }

    /// Queues a batch whose items Redis tests. Splits a large batch into parts, so that no part
    /// blocks Redis for long.
    fn queue_parts(&mut self, batch: Batch<Sifted>) {
        let most = self.parts.protocol.most_judged().unwrap_or(usize::MAX);
        let mut parts = batch.parts(most).into_iter();
        while let Some(part) = parts.next() {
            let ready = part.after(self.queue.next_base());
            self.queue.push(Prepared::new(ready, parts.len() == 0));
        }
    }
}

/// Batches that are sent and executed.
impl Session<'_> {
    /// Sends the commits of ready batches, unless they must wait.
    pub(super) fn send_commits(&mut self) {
        while self.sent < IN_FLIGHT_MAX && self.requests.has_room() {
            if self.is_held_up() {
                return;
            }
            let Pipeline { parts: Parts { protocol, config, .. }, queue, .. } = &*self.pipeline;
            let Some(prepared) = queue.batches.get(self.sent) else { return };
            let rejects_max = match config.rejects.when_full {
                RejectsFull::Wait => 0,
                RejectsFull::DropOldest => config.rejects.max_len,
            };
            let Prepared { batch, rejects, .. } = prepared;
            let onward: Vec<_> = batch.onward().zip(batch.onward_scores()).collect();
            let commit = protocol.commit(&Order {
                token: &self.lease.token,
                base: batch.base(),
                head: batch.head(),
                before: queue.cursor(self.sent),
                count: batch.items.len(),
                onward: &onward,
                question: protocol.question(batch.onward_fingerprints()),
                rejects,
                rejects_max,
            });
            self.sent += 1;
            let is_transaction = matches!(commit, Commit::Transaction { .. });
            let take = Box::new(move |session: &mut Session<'_>, reply: Reply, _| {
                let protocol = &session.pipeline.parts.protocol;
                let committed = protocol.committed(reply.into_value()?, is_transaction)?;
                session.commit_answered(committed);
                Ok(())
            });
            match commit {
                Commit::Script(script) => self.requests.ask(COMMIT, &script, take),
                Commit::Transaction { push, script } => {
                    self.requests.ask_transaction(COMMIT, &push, &script, take);
                }
            }
        }
    }

    /// Processes the reply to the oldest commit that has no reply yet.
    pub(super) fn commit_answered(&mut self, committed: Committed) {
        (self.pressure.sink, self.pressure.rejected) = (committed.sink, committed.rejected);
        if self.replicas.wanted > 0 {
            self.replicas.hold(committed);
        } else {
            self.settle(committed);
        }
    }

    /// Notes that the oldest commit counts as acknowledged.
    pub(super) fn settle(&mut self, committed: Committed) {
        self.sent -= 1;
        let prepared = self.pipeline.queue.committed();
        self.pipeline.settle(prepared.as_slice(), committed.unseen);
        self.pipeline.reporter.now.status.counts.rejects_dropped += committed.dropped;
        self.pipeline.backoff.reset();
    }
}

/// Batches after their commit, and batches whose connection was lost.
impl Pipeline {
    /// Notes committed batches, whose fingerprints count as seen after this call. If the filter is
    /// in Redis, `unseen` is the number of their unseen items.
    pub(in crate::pipeline) fn settle(&mut self, all: &[Prepared], unseen: Option<u64>) {
        for Prepared { batch, .. } in all.iter().filter(|prepared| prepared.is_last) {
            self.filter.works.engine.settle(batch.end());
        }
        self.reporter.count(all.iter().map(|prepared| &prepared.batch), unseen);
        if let (Some(shared), Some(unseen)) = (&mut self.filter.shared, unseen) {
            shared.unseen += unseen;
        }
    }
}

/// Time between two checks of a full sink or rejects list.
const POLL: Duration = Duration::from_millis(50);

/// Time during which no further message about waiting is logged.
const QUIET: Duration = Duration::from_secs(10);

/// Lengths of the sink and the rejects list, and the list that commits wait for.
#[derive(Debug)]
pub(super) struct Pressure {
    /// Number of items in the sink, as Redis last reported it.
    pub(super) sink: u64,
    /// Number of items on the rejects list, as Redis last reported it.
    pub(super) rejected: u64,
    /// List that the next commit waits for.
    pub(super) by: Option<Backpressure>,
    /// True if another check of the lists is planned.
    is_polling: bool,
    /// List that the last log line named. `None` at the start, and if the last line said that the
    /// work continues.
    told: Option<Backpressure>,
    /// Time of the last log line which says that commits wait.
    told_at: Option<Instant>,
}

impl Pressure {
    /// Starts with lists of these lengths.
    pub(super) fn new(sink: u64, rejected: u64) -> Self {
        Self { sink, rejected, by: None, is_polling: false, told: None, told_at: None }
    }

    /// Logs when commits begin to wait, and when they continue. With slow crawlers this happens
    /// many times a second, so only some of these events are logged.
    fn tell(&mut self, parts: &Parts) {
        let is_quiet = |told: Instant| told.elapsed() < QUIET;
        if self.by == self.told || self.by.is_some() && self.told_at.is_some_and(is_quiet) {
            return;
        }
        if self.by.is_some() {
            self.told_at = Some(Instant::now());
        }
        self.told = self.by;
        let Parts { protocol, config, .. } = parts;
        let keys = &protocol.keys;
        match self.by {
            Some(Backpressure::Sink) => info!(
                "waiting: {} holds {} items, and sink.max_len is {}",
                keys.sink, self.sink, config.sink.max_len
            ),
            Some(Backpressure::Rejects) => warn!(
                "waiting: {} holds {} items that could not be read, and rejects.max_len is {}. \
                 Inspect and delete these items (urlseen rejects), or set rejects.when_full = \
                 \"drop-oldest\"",
                keys.rejected, self.rejected, config.rejects.max_len
            ),
            // The wait for replicas has its own log lines.
            Some(Backpressure::Replicas) => {}
            None => info!("there is room again: the work continues"),
        }
    }
}

/// Batches that wait while a list has reached its maximum length.
impl Session<'_> {
    /// Returns true if the next batch must wait for a list.
    fn is_held_up(&mut self) -> bool {
        self.pressure.by = self.backpressure();
        // While commits are under way, the final lengths of the lists are not known, so a wait is
        // not logged yet.
        if self.pressure.by.is_none() || self.sent == self.replicas.waiting() {
            self.pressure.tell(&self.pipeline.parts);
        }
        let is_held_up = self.pressure.by.is_some();
        if is_held_up && !std::mem::replace(&mut self.pressure.is_polling, true) {
            self.expect(sleep(POLL), |session, ()| {
                session.pressure.is_polling = false;
                session.look_again();
                Ok(())
            });
        }
        is_held_up
    }

    fn backpressure(&self) -> Option<Backpressure> {
        let Pipeline { parts, queue, .. } = &*self.pipeline;
        let Config { sink, rejects: list, .. } = &parts.config;
        let next = queue.batches.get(self.sent)?;
        // The reported lengths contain the items of executed commits.
        let executed = self.replicas.waiting();
        let sent = || (executed..self.sent).filter_map(|index| queue.batches.get(index));
        let onward: u64 = sent().map(|prepared| prepared.batch.findings.onward.len() as u64).sum();
        if sink.max_len > 0
            && !next.batch.findings.onward.is_empty()
            && self.pressure.sink + onward >= sink.max_len
        {
            return Some(Backpressure::Sink);
        }
        let rejects: u64 = sent().map(|prepared| prepared.rejects.len() as u64).sum();
        let after = self.pressure.rejected + rejects + next.rejects.len() as u64;
        if list.when_full == RejectsFull::Wait && !next.rejects.is_empty() && after > list.max_len {
            return Some(Backpressure::Rejects);
        }
        None
    }

    /// Asks for the lengths of the lists that commits wait for.
    pub(super) fn look_again(&mut self) {
        let protocol = &self.pipeline.parts.protocol;
        let (sink, rejected) = (protocol.sink_length(), Cmd::llen(&protocol.keys.rejected));
        self.ask_for_pressure("length of the sink", &sink, |it| &mut it.sink);
        self.ask_for_pressure("length of the rejects", &rejected, |it| &mut it.rejected);
    }

    fn ask_for_pressure(
        &mut self,
        name: &'static str,
        command: &Cmd,
        length: fn(&mut Pressure) -> &mut u64,
    ) {
        self.ask_even_if_refused(name, command, move |session, reply| {
            // If Redis refuses to tell the length for which a commit waits, the commit is sent: its
            // own refusal ends the run, and says which key is wrong.
            if session.pressure.by.is_some() {
                *length(&mut session.pressure) = 0;
            }
            *length(&mut session.pressure) = value("a length", reply?)?;
            Ok(())
        });
    }
}
