//! Stages of a batch in a session, in order.
//!
//! ```text
//! read -> submitted -> judged, logged: ready -> sent -> executed -> committed
//! ```
//!
//! [`Works`](urlseen_engine::engine::Works) judges batches: it tests their items against the
//! filter. It also logs the batches. A batch that is ready stays in the queue until its commit is
//! acknowledged, or until the batch is aborted. Redis acknowledges a commit with its reply. If the
//! crawl waits for replicas, they must have the commit, too.

use tracing::{debug, error};

use super::{Pending, Session};
use crate::config::RejectsFull;
use crate::pipeline::filter::Snapshots;
use crate::pipeline::queue::Prepared;
use crate::pipeline::{Parts, Pipeline};
use urlseen_core::redis::protocol::{Commit, Committed, Order};
use urlseen_engine::engine::Event;
use urlseen_engine::item::batch::{Batch, Sifted};

/// Maximum number of commits that are sent and not acknowledged.
const IN_FLIGHT_MAX: usize = 3;

/// Batches that are read and submitted.
impl Session<'_> {
    /// Submits the batches that were read to the engine, in order.
    pub(super) fn submit(&mut self) {
        let engine = &mut self.pipeline.filter.works.engine;
        while engine.has_room()
            && let Some(batch) = self.intake.next_batch()
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
                self.reporter.counts().snapshots += 1;
                self.filter.snapshots.tell(finished);
            }
            Event::Snapshot(Err(error)) => {
                self.reporter.counts().snapshots_failed += 1;
                Snapshots::tell_none(&error);
            }
            Event::Footprint(footprint) => self.reporter.keep_footprint(footprint),
            Event::Generation(generation) => debug!("generation {} has begun", generation.get()),
            Event::Added | Event::Asked | Event::Swept => {}
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
            let Some(prepared) = queue.get(self.sent) else { return };
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
                count: batch.items().len(),
                onward: &onward,
                question: protocol.question(batch.onward_fingerprints()),
                rejects,
                rejects_max,
            });
            self.sent += 1;
            match commit {
                Commit::Script(script) => {
                    self.requests.ask(Pending::Commit { is_transaction: false }, &script);
                }
                Commit::Transaction { push, script } => {
                    let pending = Pending::Commit { is_transaction: true };
                    self.requests.ask_transaction(pending, &push, &script);
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
        self.pipeline.committed(prepared.as_slice(), committed.unseen);
        self.pipeline.reporter.counts().rejects_dropped += committed.dropped;
        self.pipeline.backoff.reset();
    }
}

/// Batches after their commit, and batches whose connection was lost.
impl Pipeline {
    /// Notes committed batches, whose fingerprints count as seen after this call. If the filter is
    /// in Redis, `unseen` is the number of their unseen items.
    pub(in crate::pipeline) fn committed(&mut self, all: &[Prepared], unseen: Option<u64>) {
        for Prepared { batch, .. } in all.iter().filter(|prepared| prepared.is_last) {
            self.filter.works.engine.committed(batch.end());
        }
        self.reporter.count(all.iter().map(|prepared| &prepared.batch), unseen);
        if let (Some(shared), Some(unseen)) = (&mut self.filter.shared, unseen) {
            shared.note_unseen(unseen);
        }
    }
}
