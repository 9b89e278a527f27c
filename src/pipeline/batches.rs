//! Batches between the engine and their commits.

use std::time::SystemTime;

use super::queue::Prepared;
use super::{Failure, Pipeline};
use crate::batch::{Batch, Judged};
use crate::rejects::reject;

impl Pipeline {
    /// Queues what the engine still judges: it was read before the connection failed.
    pub(super) async fn gather(&mut self) -> Result<(), Failure> {
        while self.in_progress() > 0 {
            let judged = self.store().engine.judged().await;
            self.take_judged(judged)?;
        }
        Ok(())
    }

    /// Drops what is judged and not committed, and waits until the filter threads have done all
    /// that they were told, so that the numbers at the end are whole.
    pub(super) async fn settle_engine(&mut self) -> Result<(), Failure> {
        let head = self.queue.as_ref().expect("a session has one").head();
        self.store().forget(head).map_err(Failure::Log)?;
        self.store().engine.settled().await?;
        self.watch_fullness();
        Ok(())
    }

    /// Logs a batch and queues it to be committed.
    pub(super) fn prepare(&mut self, judged: Batch<Judged>) -> Result<(), Failure> {
        let base = self.queue.as_ref().expect("batches are read in a session").next_base();
        let batch = self.store().append(base, judged).map_err(Failure::Log)?;
        let now = SystemTime::now();
        let rejects =
            batch.rejects().map(|(item, reason)| reject::to_json(item, reason, now)).collect();
        self.queue.as_mut().expect("it was there").push(Prepared { batch, rejects });
        Ok(())
    }

    /// Takes note of a committed batch: only now are its fingerprints seen.
    pub(super) fn committed(&mut self, prepared: &Prepared) {
        self.store().committed(&prepared.batch);
        self.tally.add(&prepared.batch);
    }
}
