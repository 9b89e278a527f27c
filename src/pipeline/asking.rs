//! Answering those who ask, whatever else a run does.

use std::future::Future;
use std::pin::pin;

use tracing::error;

use super::{Pipeline, RunError};
use urlseen_engine::engine::query::QueryError;
use urlseen_engine::engine::{Event, WorksError};

impl Pipeline {
    /// Whether somebody who asks may be heard now: the filter stands where Redis stands, as far as
    /// this run knows.
    pub(super) fn may_ask(&self) -> bool {
        self.queue.is_some()
    }

    /// Takes what has happened to the filter and its batches.
    pub(super) fn take(&mut self, event: Result<Event, WorksError>) -> Result<(), RunError> {
        match event? {
            Event::Ready(batch) => self.queue_up(batch, true),
            Event::Sifted(batch) => self.queue_parts(batch),
            Event::Full(why) => {
                error!("{why}. What was judged before is committed, then the run ends");
            }
            Event::Asked => {}
            Event::SnapshotDue => self.is_snapshot_due = true,
            Event::Snapshot(finished) => self.tell_snapshot(finished),
            Event::NoSnapshot(error) => Self::tell_no_snapshot(&error),
            Event::Footprint(footprint) => self.keep_footprint(footprint),
        }
        Ok(())
    }

    /// Waits until all that was asked is answered.
    pub(super) async fn answer_all(&mut self) -> Result<(), RunError> {
        while self.works.is_asked() {
            let event = self.works.next(false).await;
            self.take(event)?;
        }
        Ok(self.works.count().await?)
    }

    /// Does `work`, which has no part in the filter, and answers those who ask meanwhile.
    pub(super) async fn meanwhile<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<T, RunError> {
        let mut work = pin!(work);
        loop {
            self.works.count().await?;
            let may_ask = self.may_ask();
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                event = self.works.next(may_ask) => self.take(event)?,
            }
        }
    }
}

impl From<WorksError> for RunError {
    fn from(error: WorksError) -> Self {
        match error {
            WorksError::Engine(died) => died.into(),
            WorksError::Storage(died) => died.into(),
            WorksError::Log(error) => Self::Log(error),
        }
    }
}

impl From<QueryError> for RunError {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Engine(died) => died.into(),
            QueryError::Log(error) => Self::Log(error),
            QueryError::Mismatch(unfit) => Self::Mismatch(unfit),
        }
    }
}
