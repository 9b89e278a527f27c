//! Batches between the engine and their commits.

use std::time::SystemTime;

use super::queue::Prepared;
use super::{Pipeline, RunError};
use crate::crawl::protocol::Rejects;
use urlseen_core::redis::reject::bounded::most_made;
use urlseen_core::redis::reject::{self, Written};
use urlseen_engine::item::batch::{Batch, Judged, Logged};

impl Pipeline {
    /// Queues what the engine still judges: it was read before the connection failed.
    pub(super) async fn gather(&mut self) -> Result<(), RunError> {
        while self.in_progress() > 0 {
            let heard = self.store().engine.heard().await;
            self.take_heard(heard)?;
        }
        Ok(())
    }

    /// Drops what is judged and not committed, and waits until the filter threads have done all
    /// that they were told, so that the numbers at the end are whole.
    pub(super) async fn settle_engine(&mut self) -> Result<(), RunError> {
        let head = self.queue.as_ref().expect("a session has one").head();
        self.store().abort(head).map_err(RunError::Log)?;
        self.store().engine.settled().await?;
        self.watch_fill();
        Ok(())
    }

    /// Logs a batch and queues it to be committed: in parts, where Redis judges it and that would
    /// take too long at once.
    pub(super) fn prepare(&mut self, judged: Batch<Judged>) -> Result<(), RunError> {
        let mut parts = match self.parts.protocol.most_judged() {
            Some(most) => judged.parts(most).into_iter(),
            None => vec![judged].into_iter(),
        };
        while let Some(part) = parts.next() {
            let base = self.queue.as_ref().expect("batches are read in a session").next_base();
            let batch = self.store().append(base, part).map_err(RunError::Log)?;
            let rejects = rejects(&batch);
            let is_last = parts.len() == 0;
            let queue = self.queue.as_mut().expect("it was there");
            queue.push(Prepared { batch, rejects, is_last });
        }
        Ok(())
    }

    /// A connection was lost while the oldest commit was on its way.
    pub(super) fn suspect(&mut self) {
        if let Some(oldest) = self.queue.as_ref().and_then(|queue| queue.get(0)) {
            self.suspicion.lost(oldest.batch.proof().head());
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
            self.store().committed(batch);
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
fn rejects(batch: &Logged) -> Rejects {
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
