//! Batches between the engine and their commits.

use std::time::SystemTime;

use super::queue::Prepared;
use super::{Pipeline, RunError};
use crate::crawl::protocol::Rejects;
use urlseen_core::redis::reject::bounded::most_made;
use urlseen_core::redis::reject::{self, Written};
use urlseen_core::storage::Head;
use urlseen_engine::item::batch::{Batch, Ready, Sifted};

impl Pipeline {
    /// Queues what is still judged or logged: it was read before the connection failed.
    pub(super) async fn gather(&mut self) -> Result<(), RunError> {
        while self.works.in_progress() > 0 {
            let event = self.works.next(false).await;
            self.take(event)?;
        }
        Ok(())
    }

    /// Drops what is judged and not committed, and waits until the filter threads have done all
    /// that they were told, so that the numbers at the end are whole.
    pub(super) async fn settle_engine(&mut self, head: Head) -> Result<(), RunError> {
        self.abort(head).await?;
        self.works.engine.settled().await?;
        self.watch_fill();
        Ok(())
    }

    /// Aborts the batches that were judged and not committed, here and in the log: `head` is the
    /// last one committed, and the next batch follows it.
    pub(super) async fn abort(&mut self, head: Head) -> Result<(), RunError> {
        self.works.engine.abort();
        match &self.works.storage {
            Some(storage) => {
                storage.call(move |store| store.cut(head)).await?.map_err(RunError::Log)
            }
            None => Ok(()),
        }
    }

    /// Queues a batch that Redis judges: in parts, where that would take too long at once.
    pub(super) fn queue_parts(&mut self, batch: Batch<Sifted>) {
        let most = self.parts.protocol.most_judged().unwrap_or(usize::MAX);
        let mut parts = batch.parts(most).into_iter();
        while let (Some(part), Some(queue)) = (parts.next(), &self.queue) {
            let ready = part.after(queue.next_base());
            self.queue_up(ready, parts.len() == 0);
        }
    }

    /// Queues a batch to be committed. What was read for a queue that was given up is dropped.
    pub(super) fn queue_up(&mut self, batch: Batch<Ready>, is_last: bool) {
        match &mut self.queue {
            Some(queue) => {
                let rejects = rejects(&batch);
                queue.push(Prepared { batch, rejects, is_last });
            }
            None => self.note_aborted(1),
        }
    }

    /// A connection was lost while the oldest commit was on its way.
    pub(super) fn suspect(&mut self) {
        if let Some(oldest) = self.queue.as_ref().and_then(|queue| queue.get(0)) {
            self.suspicion.lost(oldest.batch.head());
        }
    }

    /// Clears the oldest commit of suspicion if a connection was lost without it: connections break
    /// for another reason then.
    pub(super) fn acquit(&mut self, failure: &RunError) {
        if failure.is_lost_connection() {
            self.suspicion.lost_otherwise();
        }
    }

    /// Takes note of committed batches: only now are their fingerprints seen. `unseen` says how
    /// many of their items were, where Redis has judged them.
    pub(super) fn committed(&mut self, all: &[Prepared], unseen: Option<u64>) {
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
}

/// What is kept of the items of a batch that could not be read.
fn rejects(batch: &Batch<Ready>) -> Rejects {
    let now = SystemTime::now();
    let mut rejects = Rejects::default();
    for (place, (item, reason)) in batch.rejected_at().zip(batch.rejects()) {
        let most = most_made(item.len()).min(batch.most());
        let Written { json, is_oversize } = reject::write(item, reason, now, most);
        if is_oversize {
            rejects.oversize.push((place, json));
        } else {
            rejects.whole.push(json);
        }
    }
    rejects
}
