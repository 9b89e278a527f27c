//! A filter at work for a task that must not wait for threads or the disk.

use std::io;

use super::query::QueryDispatcher;
use super::store::{Footprint, Storage, StorageDied, Stored};
use super::{Engine, EngineError, Heard};
use crate::item::batch::{Batch, Ready, Sifted};
use urlseen_core::filter::redisbloom::AddError;
use urlseen_core::storage::Finished;

/// The threads that judge, the thread that keeps the filter, and whoever asks.
#[derive(Debug)]
pub struct Works {
    /// What keeps the filter; nothing where Redis has it.
    pub storage: Option<Storage>,
    /// What judges.
    pub engine: Engine,
    /// Who asks about single fingerprints.
    pub dispatcher: QueryDispatcher,
    /// The filter has no room for what is unseen; what was judged before that is ready.
    is_full: bool,
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// A batch was judged, and the log has it.
    Ready(Batch<Ready>),
    /// A batch was compared with what is remembered of a filter in Redis.
    Sifted(Batch<Sifted>),
    /// The filter has no room for what is unseen. Nothing is judged any more.
    Full(AddError),
    /// Somebody who asks was answered, or is about to be.
    Asked,
    /// A snapshot should be begun.
    SnapshotDue,
    /// A snapshot is finished.
    Snapshot(Finished),
    /// No snapshot could be taken.
    NoSnapshot(io::Error),
    /// What the folder holds now.
    Footprint(Footprint),
}

/// Why a filter works no more.
#[derive(Debug, thiserror::Error)]
pub enum WorksError {
    /// The engine cannot go on.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// What keeps the filter is gone.
    #[error(transparent)]
    Storage(#[from] StorageDied),
    /// What is judged cannot be written down.
    #[error("the log cannot be written: {0}")]
    Log(io::Error),
}

impl Works {
    /// What judges by a filter that `storage` keeps, and answers whoever asks at the `dispatcher`.
    pub fn new(engine: Engine, storage: Option<Storage>, dispatcher: QueryDispatcher) -> Self {
        Self { storage, engine, dispatcher, is_full: false }
    }

    /// Whether nothing is judged any more, as there is no room.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Whether another group of questions may be asked now.
    pub fn has_room_to_ask(&self) -> bool {
        self.engine.has_room_to_ask()
    }

    /// How many batches are on their way: judged, or being judged, and not ready.
    pub fn in_progress(&self) -> usize {
        let writing = self.storage.as_ref().map_or(0, Storage::batches);
        if self.is_full { writing } else { self.engine.in_progress() + writing }
    }

    /// Whether somebody who asks waits for the threads or the log.
    pub fn is_asked(&self) -> bool {
        self.engine.asking() > 0 || self.storage.as_ref().is_some_and(|it| it.answers() > 0)
    }

    /// Waits until something happens, for ever if nothing can. New questions are taken only if they
    /// may be. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// Where nothing can be judged, or written down, any more.
    pub async fn next(&mut self, may_ask: bool) -> Result<Event, WorksError> {
        let may_ask = may_ask && self.has_room_to_ask();
        let is_heard = !self.is_full || self.engine.asking() > 0;
        let Self { storage, engine, dispatcher, is_full } = self;
        loop {
            tokio::select! {
                biased;
                // Groups of questions are few, so this keeps nothing else waiting for long.
                query = dispatcher.next(), if may_ask => {
                    dispatcher.hand_on(query, engine);
                    return Ok(Event::Asked);
                }
                heard = engine.heard(), if is_heard => match (heard, &mut *storage) {
                    (Ok(Heard::Judged(batch)), Some(storage)) => storage.write(batch),
                    (Ok(Heard::Answers(answers)), Some(storage)) => {
                        dispatcher.hand_over(answers, storage, engine);
                        return Ok(Event::Asked);
                    }
                    (Ok(Heard::Sifted(batch)), _) => return Ok(Event::Sifted(batch)),
                    (Ok(Heard::Judged(_) | Heard::Answers(_)), None) => {
                        unreachable!("a filter that is here is kept")
                    }
                    (Err(EngineError::Full(why)), _) => {
                        *is_full = true;
                        return Ok(Event::Full(why));
                    }
                    (Err(died), _) => return Err(died.into()),
                },
                stored = stored(storage.as_mut()) => return Ok(match stored? {
                    Stored::Batch(batch) => Event::Ready(batch),
                    Stored::Answers(recorded) => {
                        dispatcher.recorded(recorded, engine);
                        Event::Asked
                    }
                    Stored::SnapshotDue => Event::SnapshotDue,
                    Stored::Snapshot(finished) => Event::Snapshot(finished),
                    Stored::NoSnapshot(error) => Event::NoSnapshot(error),
                    Stored::Footprint(footprint) => Event::Footprint(footprint),
                    Stored::Failed(error) => return Err(WorksError::Log(error)),
                }),
            }
        }
    }

    /// Replies to those who want to know how much the filter holds.
    ///
    /// # Errors
    /// Where a thread of the filter is gone.
    pub async fn count(&mut self) -> Result<(), EngineError> {
        self.dispatcher.count(&mut self.engine).await
    }
}

async fn stored(storage: Option<&mut Storage>) -> Result<Stored, StorageDied> {
    match storage {
        Some(storage) => storage.stored().await,
        None => std::future::pending().await,
    }
}
