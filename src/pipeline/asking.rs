//! Answering those who ask, whatever else a run does.

use std::future::Future;
use std::pin::pin;

use super::{Pipeline, RunError};
use urlseen_engine::engine::query::QueryError;
use urlseen_engine::engine::{EngineError, Heard};

impl Pipeline {
    /// Whether somebody who asks may be heard now: the filter stands where Redis stands, as far as
    /// this run knows, and the engine has room.
    pub(super) fn may_ask(&self) -> bool {
        self.queue.is_some() && self.store.as_ref().is_some_and(|it| it.engine.has_room_to_ask())
    }

    /// Whether the engine has something to say.
    pub(super) fn is_hearing(&self) -> bool {
        self.is_judging() || self.is_asking()
    }

    fn is_asking(&self) -> bool {
        self.store.as_ref().is_some_and(|store| store.engine.asking() > 0)
    }

    /// Takes what the engine has to say.
    pub(super) fn take_heard(&mut self, heard: Result<Heard, EngineError>) -> Result<(), RunError> {
        match heard {
            Ok(Heard::Judged(judged)) => self.take_judged(Ok(judged)),
            Ok(Heard::Answers(answers)) => {
                let store = self.store.as_mut().expect("its engine was heard");
                self.dispatcher.answered(answers, store).map_err(RunError::Log)
            }
            Err(died) => self.take_judged(Err(died)),
        }
    }

    /// Waits until all that was asked is answered.
    pub(super) async fn answer_all(&mut self) -> Result<(), RunError> {
        while self.is_asking() {
            let heard = self.store().engine.heard().await;
            self.take_heard(heard)?;
        }
        self.do_extras().await
    }

    /// Does what is wanted beside answers.
    pub(super) async fn do_extras(&mut self) -> Result<(), RunError> {
        if self.dispatcher.has_extras() {
            let store = self.store.as_mut().expect("somebody asked its engine");
            self.dispatcher.do_extras(store).await?;
        }
        Ok(())
    }

    /// Does `work`, which has no part in the filter, and answers those who ask meanwhile.
    pub(super) async fn meanwhile<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<T, RunError> {
        let mut work = pin!(work);
        loop {
            self.do_extras().await?;
            let (may_ask, is_asking) = (self.may_ask(), self.is_asking());
            let Some(store) = &mut self.store else { return Ok(work.await) };
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                query = self.dispatcher.next(), if may_ask => {
                    self.dispatcher.hand_on(query, &mut store.engine);
                }
                heard = store.engine.heard(), if is_asking => self.take_heard(heard)?,
            }
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
