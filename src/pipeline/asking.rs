//! Answering those who ask, whatever else a run does.

use std::future::Future;
use std::pin::pin;

use tracing::error;

use super::queue::Queue;
use super::{Pipeline, RunError};
use urlseen_engine::engine::{Event, WorksError};

impl Pipeline {
    /// Tells of what has happened to the filter and its folder.
    pub(super) fn tell(&mut self, event: Event) {
        match event {
            Event::Judged(_) | Event::Ready(_) | Event::Sifted(_) | Event::Added | Event::Asked => {
            }
            Event::Full(why) => {
                error!("{why}. What was judged before is committed, then the run ends");
            }
            Event::SnapshotDue => self.is_snapshot_due = true,
            Event::Snapshot(finished) => self.tell_snapshot(finished),
            Event::NoSnapshot(error) => Self::tell_no_snapshot(&error),
            Event::Footprint(footprint) => self.keep_footprint(footprint),
        }
    }

    /// Waits until all that was asked is answered.
    pub(super) async fn answer_all(
        &mut self,
        mut queue: Option<&mut Queue>,
    ) -> Result<(), RunError> {
        while self.works.is_asked() {
            let event = self.works.next(false).await;
            self.take(event, queue.as_deref_mut())?;
        }
        Ok(self.works.do_extras().await?)
    }

    /// The same between two sessions.
    pub(super) async fn answer_known(&mut self) -> Result<(), RunError> {
        let mut known = self.known.take();
        let answered = self.answer_all(known.as_mut()).await;
        self.known = known;
        answered
    }

    /// Does `work`, which has no part in the filter, and answers those who ask meanwhile.
    pub(super) async fn meanwhile<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<T, RunError> {
        let mut work = pin!(work);
        loop {
            self.works.do_extras().await?;
            // The filter stands where Redis stands then, as far as this run knows.
            let may_ask = self.known.is_some();
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                event = self.works.next(may_ask) => {
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
