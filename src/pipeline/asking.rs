//! Processing of the filter's events, so that clients get answers in all phases of a run.

use std::future::Future;
use std::pin::pin;

use tracing::{debug, error};

use super::filter::Snapshots;
use super::queue::Prepared;
use super::{Pipeline, RunError};
use urlseen_engine::engine::{Event, WorksError};

impl Pipeline {
    /// Processes an event of the filter.
    pub(super) fn take(&mut self, event: Event) {
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
                self.board.counts().snapshots += 1;
                self.filter.snapshots.tell(finished);
            }
            Event::Snapshot(Err(error)) => {
                self.board.counts().snapshots_failed += 1;
                Snapshots::tell_none(&error);
            }
            Event::Footprint(footprint) => self.board.keep_footprint(footprint),
            Event::Generation(generation) => debug!("generation {} has begun", generation.get()),
            Event::Added | Event::Asked | Event::Swept => {}
        }
    }

    /// Waits until all accepted queries are answered.
    pub(super) async fn answer_all(&mut self) -> Result<(), RunError> {
        while self.filter.works.is_asked() {
            let event = self.filter.works.next(false).await?;
            self.take(event);
        }
        Ok(self.filter.works.do_extras().await?)
    }

    /// Waits until the queue has all batches that are now in the engine or on their way to the log.
    pub(super) async fn gather(&mut self) -> Result<(), RunError> {
        while self.filter.works.in_progress() > 0 {
            let event = self.filter.works.next(false).await?;
            self.take(event);
        }
        Ok(())
    }

    /// Does `work`, which does not use the filter, and answers queries at the same time.
    pub(super) async fn meanwhile<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<T, RunError> {
        let mut work = pin!(work);
        loop {
            self.filter.works.do_extras().await?;
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                event = self.filter.works.next(self.is_recovered) => self.take(event?),
            }
        }
    }
}

impl From<WorksError> for RunError {
    fn from(error: WorksError) -> Self {
        match error {
            WorksError::Engine(died) => died.into(),
            WorksError::Log(error) => Self::Log(error),
            WorksError::Mismatch(unfit) => Self::Mismatch(unfit),
        }
    }
}
