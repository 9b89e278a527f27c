//! The threads that judge, the thread of the folder, and the queries, combined for a task that must
//! not wait for them.

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use tracing::{debug, warn};

use super::generations::{Doubt, Generating, GenerationClock};
use super::query::{Extra, QueryDispatcher};
use super::store::{Footprint, MismatchError, Storage, Store, Stored, Write};
use super::{Engine, EngineError, Heard};
use crate::item::batch::{Batch, Judged, Ready, Sifted};
use urlseen_filter::Full;
use urlseen_filter::Generation;
use urlseen_filter::descriptors::Waits;
use urlseen_storage::{Finished, Logged, Moment, Restore as _, TimesOfDay};

/// The threads that judge, the thread of the folder, and the queries of clients.
#[derive(Debug)]
pub struct Works {
    /// Thread of the folder; `None` if the filter is in Redis, or has no folder.
    pub storage: Option<Storage>,
    /// The threads that judge.
    pub engine: Engine,
    /// Queries about single fingerprints.
    pub dispatcher: QueryDispatcher,
    /// Generations of the filter, if its fingerprints expire.
    generations: Option<Generating>,
}

/// Event of a filter at work.
#[derive(Debug)]
pub enum Event {
    /// A batch was judged. Pass it to [`Works::log`] or [`Works::add`].
    Judged(Batch<Judged>),
    /// A batch of the crawl is in the log.
    Ready(Batch<Ready>),
    /// The new keys of a batch that belongs to no crawl are in the log. The threads set these keys
    /// next.
    Added,
    /// A batch was compared with the cache of a filter in Redis.
    Sifted(Batch<Sifted>),
    /// The filter has no room for unseen items. No further batch is judged.
    Full(Full),
    /// A query was accepted or answered.
    Asked,
    /// It is time to begin a snapshot.
    SnapshotDue,
    /// A snapshot is finished, or has failed at its start or later.
    Snapshot(io::Result<Finished>),
    /// The contents of the folder have changed.
    Footprint(Footprint),
    /// The expiry of keys has gone on: slots were freed, or the next keys expire.
    Expired,
}

/// Reason why a filter cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum WorksError {
    /// The engine or the thread of the folder cannot continue.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The log cannot be written.
    #[error("the storage folder cannot be written: {0}")]
    Log(io::Error),
    /// The filter cannot be emptied.
    #[error(transparent)]
    Mismatch(Box<MismatchError>),
}

impl Works {
    /// Combines the threads that judge, the thread of the folder, and the `dispatcher` of queries.
    pub(crate) fn new(
        engine: Engine,
        storage: Option<Storage>,
        dispatcher: QueryDispatcher,
    ) -> Self {
        Self { storage, engine, dispatcher, generations: None }
    }

    /// Returns true if the expiry is still to begin ([`Works::begin_expiry`]).
    pub fn needs_time(&self) -> bool {
        self.engine.expire_after.is_some() && self.generations.is_none()
    }

    /// Begins the generation of the present time, if the fingerprints of the filter expire. Later
    /// generations then begin by themselves. The filter must be recovered. Ignores a second call.
    /// Returns the reason if the time since the last run does not count.
    ///
    /// `redis` is the time of day of Redis, if it is known.
    ///
    /// # Errors
    /// The log cannot be written, or its thread has ended.
    pub async fn begin_expiry(
        &mut self,
        redis: Option<SystemTime>,
    ) -> Result<Option<Doubt>, WorksError> {
        let Some(expire_after) = self.engine.expire_after.filter(|_| self.generations.is_none())
        else {
            return Ok(None);
        };
        let recorded = self.engine.handle.gauge.generations().map(|it| it.now).unwrap_or_default();
        let last = self.storage.as_ref().and_then(|storage| storage.timing);
        let (now, local) = (self.engine.clocks)();
        let times = TimesOfDay { local, redis };
        let (clock, timing, doubt) = GenerationClock::new(expire_after, recorded, last, times, now);
        let generation = clock.generation_at(now);
        if let Some(storage) = &self.storage {
            let begin = move |store: &mut Store| {
                // The next run must know of it before anything is let through.
                store.kept.folder.note(|notes| notes.timing = Some(timing))?;
                store.kept.journal()?.begin_generation(generation)
            };
            storage.call(begin).await?.map_err(WorksError::Log)?;
        }
        let generating = Generating::new(clock, generation, self.engine.clocks);
        self.engine.begin_generation(generation);
        // From now on, the gauge shows the generation.
        self.engine.caught_up().await?;
        self.generations = Some(generating);
        Ok(doubt)
    }

    /// Returns the moment at which the generation after that of the gauge begins. `None` if
    /// fingerprints do not expire, or if no generation has begun.
    pub fn next_generation(&self) -> Option<Moment> {
        let generations = self.generations.as_ref()?;
        let now = self.engine.handle.gauge.generations()?.now;
        Some(generations.clock.begin_of(now.later(1)))
    }

    /// Counts the submitted batches that are not yet in the log.
    pub fn in_progress(&self) -> usize {
        self.engine.in_progress() + self.writing()
    }

    /// Counts the batches that were passed to the log and are not written yet.
    pub(crate) fn writing(&self) -> usize {
        self.storage.as_ref().map_or(0, |storage| storage.batches)
    }

    /// Logs a batch of the crawl after the last logged batch.
    pub fn log(&mut self, batch: Batch<Judged>) {
        if let Some(storage) = &mut self.storage {
            storage.write(Write::Batch(batch));
        }
    }

    /// Adds the new keys of a batch that belongs to no crawl: first to the log, then to the filter.
    pub(crate) fn add(&mut self, batch: Batch<Judged>) {
        if let Some(storage) = &mut self.storage {
            storage.write(Write::Keys(batch));
        } else {
            let generation = self.engine.generation;
            self.engine.settle(Logged { generation, ..Logged::START });
        }
    }

    /// Returns true if a query waits for the threads or the log.
    pub fn is_asked(&self) -> bool {
        self.engine.groups > 0
    }

    /// Returns the next event, or waits forever if no event can come. Accepts new queries only if
    /// `may_ask` is true. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// The engine can no longer judge, or the thread of the folder can no longer log.
    pub async fn next(&mut self, may_ask: bool) -> Result<Event, WorksError> {
        // Before the filter is emptied, all earlier queries must be answered.
        let may_ask = may_ask && self.engine.has_room_to_ask() && !self.dispatcher.is_emptying();
        let Self { storage, engine, dispatcher, generations } = self;
        tokio::select! {
            biased;
            generating = Generating::due(generations.as_mut()) => {
                generating.look(storage.as_mut(), engine);
                Ok(Event::Expired)
            }
            // Groups of questions are rare, so they do not delay other events for long.
            query = dispatcher.next(), if may_ask => {
                dispatcher.hand_on(query, engine);
                Ok(Event::Asked)
            }
            heard = engine.heard() => match heard {
                Ok(Heard::Judged(batch)) if engine.is_here => Ok(Event::Judged(batch)),
                Ok(Heard::Judged(batch)) => Ok(Event::Sifted(batch.sifted())),
                Ok(Heard::Answers(answers)) => {
                    dispatcher.hand_over(answers, storage.as_mut(), engine);
                    Ok(Event::Asked)
                }
                Err(EngineError::Full(why)) => Ok(Event::Full(why)),
                Err(died) => Err(died.into()),
            },
            stored = stored(storage.as_mut()) => Ok(match stored? {
                Stored::Told(event) => event,
                Stored::Added(logged) => {
                    engine.settle(logged);
                    Event::Added
                }
                Stored::Answers(answers, logged) => {
                    dispatcher.finish(answers, Some(logged), engine);
                    Event::Asked
                }
                Stored::Generation(generation) => {
                    engine.begin_generation(generation);
                    Event::Expired
                }
                Stored::Failed(error) => return Err(WorksError::Log(error)),
            }),
        }
    }

    /// Carries out the further requests of queries whose questions are answered. The filter is
    /// emptied only after all earlier questions are answered. No batch may be in progress then.
    ///
    /// # Errors
    /// A thread has ended, or the filter cannot be emptied.
    pub async fn do_extras(&mut self) -> Result<(), WorksError> {
        while !(self.dispatcher.is_emptying() && self.is_asked())
            && let Some(waiting) = self.dispatcher.extras.pop_front()
        {
            // Waits until the filter contains the earlier additions.
            self.engine.caught_up().await?;
            let fill = self.engine.handle.gauge.fill().counted();
            if waiting.extra == Extra::Empty {
                self.empty().await?;
            }
            waiting.reply(fill);
        }
        Ok(())
    }

    /// Empties the filter, in memory and in the folder. Waits for a free file descriptor if the
    /// process has none.
    async fn empty(&mut self) -> Result<(), WorksError> {
        let mut threads = self.engine.restoring();
        let Some(storage) = &self.storage else {
            threads.clear();
            return Ok(());
        };
        let unfit = |unfit| WorksError::Mismatch(Box::new(unfit));
        let head = storage.call(|store| store.kept.journal().map(|it| it.position().head)).await?;
        let head = head.map_err(|error| unfit(error.into()))?;
        let mut waits = Waits::default();
        while let Err(error) = storage.call(move |store| store.replace(head, true)).await? {
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

async fn stored(storage: Option<&mut Storage>) -> Result<Stored, EngineError> {
    match storage {
        Some(storage) => storage.stored().await,
        None => std::future::pending().await,
    }
}

impl Engine {
    /// Begins a generation. The log already has its begin.
    pub(crate) fn begin_generation(&mut self, generation: Generation) {
        debug!("generation {} has begun", generation.get());
        self.generation = generation;
        self.handle.queue.add(move |judge| judge.filter.kind().begin_generation(generation));
    }

    /// Makes the judge free some slots of expired keys, unless it still has to do so.
    pub(crate) fn sweep(&mut self) {
        if Arc::strong_count(&self.sweeping) == 1 {
            let token = Arc::clone(&self.sweeping);
            self.handle.queue.add(move |judge| {
                if let Some(ages) = judge.filter.kind().ages() {
                    ages.sweep();
                }
                drop(token);
            });
        }
    }
}
