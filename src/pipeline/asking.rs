//! Events of the filter, and answers to queries at all times of a run.

use std::future::Future;
use std::pin::pin;

use tracing::error;

use super::filter::Snapshots;
use super::queue::{Prepared, Queue};
use super::{Pipeline, RunError};
use urlseen_engine::engine::{Event, WorksError};

impl Pipeline {
    /// Takes an event of the filter. Ready batches are queued. Without a queue they were read for
    /// one that was given up.
    pub(super) fn take(
        &mut self,
        event: Result<Event, WorksError>,
        queue: Option<&mut Queue>,
    ) -> Result<(), RunError> {
        match (event?, queue) {
            (Event::Judged(batch), _) => self.filter.works.log(batch),
            (Event::Ready(batch), Some(queue)) => {
                queue.push(Prepared::new(&self.parts.protocol, batch, true));
            }
            (Event::Sifted(batch), Some(queue)) => self.queue_parts(batch, queue),
            (Event::Ready(_) | Event::Sifted(_), None) => self.note_aborted(1),
            (Event::Full(why), _) => {
                error!("{why}. What was judged before is committed, then the run ends");
            }
            (Event::SnapshotDue, _) => self.filter.snapshots.is_due = true,
            (Event::Snapshot(finished), _) => {
                self.board.counts().snapshots += 1;
                self.filter.snapshots.tell(finished);
            }
            (Event::NoSnapshot(error), _) => Snapshots::tell_none(&error),
            (Event::Footprint(footprint), _) => self.board.keep_footprint(footprint),
            (Event::Added | Event::Asked, _) => {}
        }
        Ok(())
    }

    /// Waits until all queries that were taken are answered.
    pub(super) async fn answer_all(
        &mut self,
        mut queue: Option<&mut Queue>,
    ) -> Result<(), RunError> {
        while self.filter.works.is_asked() {
            let event = self.filter.works.next(false).await;
            self.take(event, queue.as_deref_mut())?;
        }
        Ok(self.filter.works.do_extras().await?)
    }

    /// Does the same between two sessions.
    pub(super) async fn answer_known(&mut self) -> Result<(), RunError> {
        let mut known = self.known.take();
        let answered = self.answer_all(known.as_mut()).await;
        self.known = known;
        answered
    }

    /// Does `work`, which has no part in the filter, and answers queries meanwhile.
    pub(super) async fn meanwhile<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<T, RunError> {
        let mut work = pin!(work);
        loop {
            self.filter.works.do_extras().await?;
            // The filter is at the position of Redis then, as far as this run knows.
            let may_ask = self.known.is_some();
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                event = self.filter.works.next(may_ask) => {
                    let mut known = self.known.take();
                    let taken = self.take(event, known.as_mut());
                    self.known = known;
                    taken?;
                }
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
            WorksError::Mismatch(unfit) => Self::Mismatch(unfit),
        }
    }
}
