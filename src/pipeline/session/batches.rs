//! The way of a batch through a session, in its order.
//!
//! ```text
//! read -> submitted -> judged, logged: ready -> sent -> answered -> committed
//! ```
//!
//! [`Works`](urlseen_engine::engine::Works) judges and logs. A batch that is ready stays in the
//! queue until its commit is known to have happened, or it is aborted.

use tracing::warn;

use super::{Pending, Session};
use crate::crawl::protocol::{Commit, Committed, Order};
use crate::pipeline::queue::{Prepared, Queue};
use crate::pipeline::{Parts, Pipeline, RunError};
use urlseen_core::storage::Head;
use urlseen_engine::config::RejectsFull;
use urlseen_engine::engine::{Event, WorksError};
use urlseen_engine::item::Items;
use urlseen_engine::item::batch::{Batch, Claimed, Sifted};

/// Commits sent and not answered.
const IN_FLIGHT_MAX: usize = 3;

/// Read and submitted.
impl Session<'_> {
    /// Queues what was read to be judged, with the bound on what is sent of each item.
    pub(super) fn take_items(&mut self, items: Items) {
        let queue = &self.queue;
        let is_next = queue.batches() == 0
            && self.pipeline.works.in_progress() == 0
            && self.backlog.is_empty();
        let is_condemned = is_next && self.pipeline.suspicion.condemns(queue.head());
        let most = if is_condemned { 0 } else { self.pipeline.limits.word };
        let parts = self.window.split(items);
        self.backlog
            .extend(parts.into_iter().map(|items| Batch::<Claimed>::new(items).bounded(most)));
    }

    /// Gives the engine what was read, in order.
    pub(super) fn submit(&mut self) {
        let engine = &mut self.pipeline.works.engine;
        while engine.has_room()
            && let Some(batch) = self.backlog.pop_front()
        {
            engine.submit(batch);
        }
    }
}

/// Judged and logged.
impl Pipeline {
    /// Takes what has happened to the filter and its batches. What is ready is queued; without a
    /// queue it was read for one that was given up.
    pub(in crate::pipeline) fn take(
        &mut self,
        event: Result<Event, WorksError>,
        queue: Option<&mut Queue>,
    ) -> Result<(), RunError> {
        match (event?, queue) {
            (Event::Judged(batch), _) => self.works.log(batch),
            (Event::Ready(batch), Some(queue)) => {
                queue.push(Prepared::new(&self.parts.protocol, batch, true));
            }
            (Event::Sifted(batch), Some(queue)) => self.queue_parts(batch, queue),
            (Event::Ready(_) | Event::Sifted(_), None) => self.note_aborted(1),
            (event, _) => self.tell(event),
        }
        Ok(())
    }

    /// Says that entries went from the source before they were read.
    pub(super) fn note_lost(&mut self, lost: u64) {
        if lost > 0 {
            self.counts.source_lost += lost;
            warn!(
                "{lost} entries went from {} before they were read: another program removes them \
                 (XTRIM, XADD with MAXLEN, XDEL) and does not wait for this crawl",
                self.parts.protocol.keys().source
            );
        }
    }

    /// Queues a batch that Redis judges: in parts, where that would take too long at once.
    pub(in crate::pipeline) fn queue_parts(&self, batch: Batch<Sifted>, queue: &mut Queue) {
        let most = self.parts.protocol.most_judged().unwrap_or(usize::MAX);
        let mut parts = batch.parts(most).into_iter();
        while let Some(part) = parts.next() {
            let ready = part.after(queue.next_base());
            queue.push(Prepared::new(&self.parts.protocol, ready, parts.len() == 0));
        }
    }

    /// Queues what is still judged or logged.
    pub(in crate::pipeline) async fn gather(
        &mut self,
        mut queue: Option<&mut Queue>,
    ) -> Result<(), RunError> {
        while self.works.in_progress() > 0 {
            let event = self.works.next(false).await;
            self.take(event, queue.as_deref_mut())?;
        }
        Ok(())
    }

    /// The same between two sessions.
    pub(in crate::pipeline) async fn gather_known(&mut self) -> Result<(), RunError> {
        let mut known = self.known.take();
        let gathered = self.gather(known.as_mut()).await;
        self.known = known;
        gathered
    }
}

/// Sent and answered.
impl Session<'_> {
    /// Sends what is judged and logged to be committed, unless it has to wait.
    pub(super) fn send_commits(&mut self) {
        let in_flight = if self.pipeline.suspicion.is_aroused() { 1 } else { IN_FLIGHT_MAX };
        while self.control.is_none() && self.sent < in_flight && self.line.has_room() {
            let backpressure = self.backpressure();
            self.tell_backpressure(backpressure);
            if backpressure.is_some() {
                return;
            }
            let Parts { protocol, config, .. } = &self.pipeline.parts;
            let Some(prepared) = self.queue.get(self.sent) else { return };
            let rejects_max = match config.rejects.when_full {
                RejectsFull::Wait => 0,
                RejectsFull::DropOldest => config.rejects.max_len,
            };
            let Prepared { batch, rejects, .. } = prepared;
            let (token, before) = (&self.lease.token, self.queue.cursor(self.sent));
            let commit = protocol.commit(Order { token, batch, rejects, before, rejects_max });
            self.sent += 1;
            match commit {
                Commit::Script(script) => {
                    self.line.ask(Pending::Commit { is_transaction: false }, &script);
                }
                Commit::Transaction { push, script } => {
                    let pending = Pending::Commit { is_transaction: true };
                    self.line.ask_transaction(pending, &push, &script);
                }
            }
        }
    }

    /// Takes the reply to the oldest commit.
    pub(super) fn commit_answered(&mut self, committed: Committed) {
        self.sink_length = committed.sink;
        self.rejected_length = committed.rejected;
        self.sent -= 1;
        let prepared = self.queue.committed();
        self.pipeline.committed(prepared.as_slice(), committed.unseen);
        self.pipeline.counts.rejects_dropped += committed.dropped;
        self.pipeline.backoff.reset();
    }
}

/// Committed, or not.
impl Pipeline {
    /// Takes note of committed batches: only now are their fingerprints seen. `unseen` says how
    /// many of their items were, where Redis has judged them.
    pub(in crate::pipeline) fn committed(&mut self, all: &[Prepared], unseen: Option<u64>) {
        for Prepared { batch, .. } in all {
            self.suspicion.committed(batch.items().len());
        }
        for Prepared { batch, .. } in all.iter().filter(|prepared| prepared.is_last) {
            self.works.engine.committed(batch.position());
        }
        for rule in all.iter().flat_map(|prepared| prepared.batch.passed()).map(usize::from) {
            if rule >= self.passed.len() {
                self.passed.resize(rule + 1, 0);
            }
            self.passed[rule] += 1;
        }
        self.counts.add(all.iter().map(|prepared| &prepared.batch), unseen);
        self.unseen += unseen.unwrap_or(0);
    }

    /// Clears the oldest commit of suspicion if a connection was lost without it: connections break
    /// for another reason then.
    pub(in crate::pipeline) fn acquit(&mut self, failure: &RunError) {
        if failure.is_lost_connection() {
            self.suspicion.lost_otherwise();
        }
    }

    /// Drops what is judged and not committed, and waits until the filter threads have done all
    /// that they were told, so that the numbers at the end are whole.
    pub(in crate::pipeline) async fn settle_engine(&mut self, head: Head) -> Result<(), RunError> {
        self.abort(head).await?;
        self.works.engine.settled().await?;
        self.watch_fill();
        Ok(())
    }

    /// Aborts the batches that were judged and not committed, here and in the log: `head` is the
    /// last one committed, and the next batch follows it.
    pub(in crate::pipeline) async fn abort(&mut self, head: Head) -> Result<(), RunError> {
        self.works.engine.abort();
        match &self.works.storage {
            Some(storage) => {
                storage.call(move |store| store.cut(head)).await?.map_err(RunError::Log)
            }
            None => Ok(()),
        }
    }
}
