//! A filter at work for a task that must not wait for threads or the disk.

use std::io;

use super::query::QueryDispatcher;
use super::store::{Footprint, Storage, StorageDied, Stored};
use super::{Engine, EngineError, Heard};
use crate::item::batch::{Batch, Ready, Sifted};
use urlseen_core::filter::Full;
use urlseen_core::storage::Finished;

/// The threads that judge, the thread of the folder, and the queries of clients.
#[derive(Debug)]
pub struct Works {
    /// Thread of the folder; `None` if the filter is in Redis.
    pub storage: Option<Storage>,
    /// Threads that judge.
    pub engine: Engine,
    /// Queries about single fingerprints.
    pub dispatcher: QueryDispatcher,
    /// True once the filter has no room for unseen items.
    is_full: bool,
}

/// Event of a filter at work.
#[derive(Debug)]
pub enum Event {
    /// A batch was judged, and the log has it.
    Ready(Batch<Ready>),
    /// A batch was compared with the cache of a filter in Redis.
    Sifted(Batch<Sifted>),
    /// The filter has no room for unseen items. Nothing is judged any more.
    Full(Full),
    /// A query was taken, or answered.
    Asked,
    /// A snapshot should be begun.
    SnapshotDue,
    /// A snapshot is finished.
    Snapshot(Finished),
    /// No snapshot could be taken.
    NoSnapshot(io::Error),
    /// New contents of the folder.
    Footprint(Footprint),
}

/// Reason that a filter cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum WorksError {
    /// The engine cannot go on.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The thread of the folder is gone.
    #[error(transparent)]
    Storage(#[from] StorageDied),
    /// The log cannot be written.
    #[error("the log cannot be written: {0}")]
    Log(io::Error),
}

impl Works {
    /// Joins the threads that judge, the thread of the folder, and the `dispatcher` of queries.
    pub fn new(engine: Engine, storage: Option<Storage>, dispatcher: QueryDispatcher) -> Self {
        Self { storage, engine, dispatcher, is_full: false }
    }

    /// Returns true if nothing is judged any more, for want of room.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Returns true if there is room for another group of questions.
    pub fn has_room_to_ask(&self) -> bool {
        self.engine.has_room_to_ask()
    }

    /// Counts the batches that were submitted and are not ready.
    pub fn in_progress(&self) -> usize {
        let writing = self.storage.as_ref().map_or(0, Storage::batches);
        if self.is_full { writing } else { self.engine.in_progress() + writing }
    }

    /// Returns true if a query waits for the threads or the log.
    pub fn is_asked(&self) -> bool {
        self.engine.asking() > 0 || self.storage.as_ref().is_some_and(|it| it.answers() > 0)
    }

    /// Returns the next event; waits for ever if there can be none. Takes new queries only if
    /// `may_ask`. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// Nothing can be judged, or logged, any more.
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

    /// Replies to the queries for the number of keys.
    ///
    /// # Errors
    /// A thread of the filter is gone.
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
