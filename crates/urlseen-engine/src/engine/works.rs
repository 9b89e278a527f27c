//! A filter at work for a task that must not wait for threads or the disk.

use std::io;

use tracing::warn;

use super::query::{Extra, QueryDispatcher};
use super::store::{Footprint, MismatchError, Storage, StorageDied, Store, Stored};
use super::{Engine, EngineError, Heard};
use crate::item::batch::{Batch, Judged, Ready, Sifted};
use urlseen_core::filter::Full;
use urlseen_core::storage::descriptors::Waits;
use urlseen_core::storage::{Finished, Position};

/// The threads that judge, the thread of the folder, and the queries of clients.
#[derive(Debug)]
pub struct Works {
    /// Thread of the folder; `None` if the filter is in Redis, or is not kept.
    pub storage: Option<Storage>,
    /// The threads that judge.
    pub engine: Engine,
    /// Queries about single fingerprints.
    pub dispatcher: QueryDispatcher,
    /// Reason that nothing is judged any more, for want of room.
    full: Option<Full>,
}

/// Event of a filter at work.
#[derive(Debug)]
pub enum Event {
    /// A batch was judged. [`Works::log`] or [`Works::add`] takes it on.
    Judged(Batch<Judged>),
    /// The log has a batch of the crawl.
    Ready(Batch<Ready>),
    /// The log has the new keys of a batch of no crawl, and the filter gets them.
    Added,
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
    #[error("the storage folder cannot be written: {0}")]
    Log(io::Error),
    /// The filter cannot be emptied.
    #[error(transparent)]
    Mismatch(Box<MismatchError>),
}

impl Works {
    /// Joins the threads that judge, the thread of the folder, and the `dispatcher` of queries.
    pub fn new(engine: Engine, storage: Option<Storage>, dispatcher: QueryDispatcher) -> Self {
        Self { storage, engine, dispatcher, full: None }
    }

    /// Reason that nothing is judged any more, for want of room.
    pub fn full(&self) -> Option<&Full> {
        self.full.as_ref()
    }

    /// Returns true if there is room for another group of questions.
    pub fn has_room_to_ask(&self) -> bool {
        self.engine.has_room_to_ask()
    }

    /// Counts the batches that were submitted and are neither ready nor added.
    pub fn in_progress(&self) -> usize {
        let judging = if self.full.is_some() { 0 } else { self.engine.in_progress() };
        judging + self.writing()
    }

    /// Counts the batches that the log does not have yet.
    pub fn writing(&self) -> usize {
        self.storage.as_ref().map_or(0, Storage::batches)
    }

    /// Logs a batch of the crawl, which follows the last one.
    pub fn log(&mut self, batch: Batch<Judged>) {
        if let Some(storage) = &mut self.storage {
            storage.write(batch);
        }
    }

    /// Adds the new keys of a batch that belongs to no crawl: to the log, and then to the filter.
    pub fn add(&mut self, batch: Batch<Judged>) {
        match &mut self.storage {
            Some(storage) => storage.add(batch),
            None => self.engine.committed(Position::START),
        }
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
        // A filter is emptied once everything before that is answered.
        let may_ask = may_ask && self.has_room_to_ask() && !self.dispatcher.is_emptying();
        let is_heard = self.full.is_none() || self.engine.asking() > 0;
        let Self { storage, engine, dispatcher, full } = self;
        tokio::select! {
            biased;
            // Groups of questions are few, so this keeps nothing else waiting for long.
            query = dispatcher.next(), if may_ask => {
                dispatcher.hand_on(query, engine);
                Ok(Event::Asked)
            }
            heard = engine.heard(), if is_heard => match heard {
                Ok(Heard::Judged(batch)) => Ok(Event::Judged(batch)),
                Ok(Heard::Sifted(batch)) => Ok(Event::Sifted(batch)),
                Ok(Heard::Answers(answers)) => {
                    dispatcher.hand_over(answers, storage.as_mut(), engine);
                    Ok(Event::Asked)
                }
                Err(EngineError::Full(why)) => {
                    Ok(Event::Full(full.insert(why).clone()))
                }
                Err(died) => Err(died.into()),
            },
            stored = stored(storage.as_mut()) => Ok(match stored? {
                Stored::Batch(batch) => Event::Ready(batch),
                Stored::Added(at) => {
                    engine.committed(at);
                    Event::Added
                }
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

    /// Does what queries want beside answers. The filter is emptied once all that was asked before
    /// is answered; no batch may be judged then.
    ///
    /// # Errors
    /// The filter is lost, or cannot be emptied.
    pub async fn do_extras(&mut self) -> Result<(), WorksError> {
        while !(self.dispatcher.is_emptying() && self.is_asked())
            && let Some(waiting) = self.dispatcher.next_extra()
        {
            // The earlier additions are in the filter then.
            self.engine.settled().await?;
            let fill = self.engine.gauges().fill().counted();
            if waiting.extra() == Extra::Empty {
                self.empty().await?;
            }
            waiting.reply(fill);
        }
        Ok(())
    }

    /// Empties the filter, in memory and in the folder. Waits for file descriptors if there are
    /// none.
    async fn empty(&mut self) -> Result<(), WorksError> {
        let threads = self.engine.restoring();
        let Some(storage) = &self.storage else {
            threads.clear();
            return Ok(());
        };
        let unfit = |unfit| WorksError::Mismatch(Box::new(unfit));
        let head = storage.call(Store::empty).await?.map_err(unfit)?;
        let mut waits = Waits::default();
        while let Err(error) = storage.call(move |store| store.replace(head)).await? {
            if !error.is_for_want_of_descriptors() {
                return Err(unfit(error));
            }
            let wait = waits.grow();
            warn!("the filter cannot be emptied: {error}. Trying again in {} s", wait.as_secs());
            tokio::time::sleep(wait).await;
        }
        Ok(())
    }
}

async fn stored(storage: Option<&mut Storage>) -> Result<Stored, StorageDied> {
    match storage {
        Some(storage) => storage.stored().await,
        None => std::future::pending().await,
    }
}
