//! The driver: one loop for all that goes through a local filter without a crawl in Redis.
//!
//! ```text
//! feed -> engine -> effect -> log -> filter     queries -> engine -> log -> answers, filter
//! ```
//!
//! A pipe feeds lines, and its effect is to print them; an import feeds digests and has no effect;
//! a run without a source feeds nothing and has queries. The effect comes before the log, and the
//! log before the filter: a flow that is killed repeats the effect of one batch, and misses none.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::time::{Duration, Instant};

use tokio::time::MissedTickBehavior;

use super::feed::{Bad, FeedError, Page, Pages};
use crate::engine::Heard;
use crate::engine::query::{QueryDispatcher, QueryError};
use crate::engine::store::Local;
use crate::item::batch::{Batch, Judged};
use urlseen_core::filter::FillWatch;
use urlseen_core::storage::Checkpoint;

/// Batches that are being judged. Enough to keep all threads busy; twice as many were 5 % slower,
/// as the set of what is in flight no longer stayed in the processor's caches.
const JUDGING_MAX: usize = 4;

/// Time between two looks at the filter and its folder; progress is told then.
const LOOK: Duration = Duration::from_millis(200);

/// Time between two records of the cursors. The log is synced for each.
const RECORD: Duration = Duration::from_secs(1);

/// A flow: its filter and its ends.
pub struct Flow<'a> {
    /// The filter, which judges nothing yet.
    pub store: &'a mut Local,
    /// Pages that feed it.
    pub pages: Pages,
    /// Effect of a judged batch, before the log has it.
    pub effect: &'a mut dyn Effect,
    /// Queries of clients. A dispatcher without an asker has none.
    pub dispatcher: &'a mut QueryDispatcher,
    /// Observer of the fill, for a filter that may outgrow its size.
    pub fill: Option<FillWatch>,
    /// Remedy for a filter that is full, for messages.
    pub remedy: &'static str,
    /// Observer of the work.
    pub audience: &'a mut dyn Audience,
}

/// Effect of a flow on the outside.
pub trait Effect {
    /// Acts on a judged batch. Its items count as seen only after this.
    fn apply(&mut self, batch: &Batch<Judged>) -> io::Result<()>;

    /// Fails if no more effect is wanted. Called from time to time, as a flow in which nothing is
    /// unseen would not notice otherwise.
    fn check(&self) -> io::Result<()> {
        Ok(())
    }
}

/// No effect.
impl Effect for () {
    fn apply(&mut self, _: &Batch<Judged>) -> io::Result<()> {
        Ok(())
    }
}

/// Observer of a flow.
pub trait Audience {
    /// Takes a message: the flow continues.
    fn say(&mut self, words: &str);

    /// Takes a malformed entry. If many are malformed at once, only the first of them come here.
    fn bad(&mut self, bad: &Bad);

    /// Takes the progress so far.
    fn progress(&mut self, progress: &Progress);

    /// Looks at the filter and the queries from time to time.
    fn look(&mut self, _store: &Local, _dispatcher: &mut QueryDispatcher) {}
}

/// Counts of a flow.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Count {
    /// Items read.
    pub read: u64,
    /// Unseen items, and those that are not to be checked.
    pub new: u64,
    /// Items seen before.
    pub seen: u64,
    /// Malformed entries and items.
    pub bad: u64,
}

/// Progress of a flow.
#[derive(Debug, Default)]
pub struct Progress {
    /// Counts so far.
    pub count: Count,
    /// Amount of the input that is read.
    pub read: u64,
    /// Amount of the whole input; 0 if unknown.
    pub expected: u64,
}

/// Reason that a flow broke off.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// The effect failed.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
    /// The filter or its folder failed.
    #[error(transparent)]
    Store(#[from] QueryError),
}

impl Flow<'_> {
    /// Runs until the feed ends, and leaves the folder at rest. If the feed fails, everything
    /// before that is settled first; the failure is returned beside the counts.
    ///
    /// # Panics
    /// If the store is judging batches that were submitted before.
    pub async fn run(self) -> Result<(Count, Result<(), FeedError>), FlowError> {
        let progress = Progress { expected: self.pages.expected, ..Progress::default() };
        let cursors = Cursors::default();
        let mut driver = Driver { flow: self, judging: VecDeque::new(), progress, cursors };
        let ended = driver.work().await?;
        driver.rest().await?;
        Ok((driver.progress.count, ended))
    }
}

/// A flow at work.
struct Driver<'a> {
    flow: Flow<'a>,
    /// Pages whose items are being judged, oldest first.
    judging: VecDeque<Page>,
    progress: Progress,
    cursors: Cursors,
}

/// Cursors that the folder does not have yet.
#[derive(Default)]
struct Cursors {
    /// By their input.
    latest: BTreeMap<String, Checkpoint>,
    /// Time of the last record.
    recorded: Option<Instant>,
}

impl Driver<'_> {
    async fn work(&mut self) -> Result<Result<(), FeedError>, FlowError> {
        let mut ended = None;
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if self.judging.is_empty() {
                if let Some(ended) = ended {
                    return Ok(ended);
                }
                // A filter is emptied only while no batch is judged.
                let Flow { store, dispatcher, .. } = &mut self.flow;
                if dispatcher.has_extras() {
                    dispatcher.do_extras(store).await?;
                }
            }
            let Self { flow: Flow { store, pages, dispatcher, .. }, judging, .. } = self;
            let engine = &mut store.engine;
            let (may_ask, is_asked) = (engine.has_room_to_ask(), engine.asking() > 0);
            tokio::select! {
                biased;
                _ = look.tick() => self.look()?,
                page = pages.receiver.recv(), if ended.is_none() && judging.len() < JUDGING_MAX => {
                    match page {
                        None => ended = Some(Ok(())),
                        Some(Err(error)) => ended = Some(Err(error)),
                        Some(Ok(page)) => self.submit(page),
                    }
                }
                heard = engine.heard(), if is_asked || !judging.is_empty() => {
                    match heard.map_err(QueryError::from)? {
                        Heard::Judged(judged) => self.settle(&judged)?,
                        Heard::Sifted(_) => unreachable!("a filter in Redis has no flow"),
                        Heard::Answers(answers) => {
                            dispatcher.answered(answers, store).map_err(QueryError::Log)?;
                        }
                    }
                }
                query = dispatcher.next(), if may_ask => dispatcher.hand_on(query, engine),
            }
        }
    }

    fn submit(&mut self, mut page: Page) {
        if let Some(place) = &page.resumed {
            let words = format!("an earlier import had {place}; this one goes on there");
            self.flow.audience.say(&words);
        }
        self.flow.store.engine.submit(Batch::new(std::mem::take(&mut page.items)));
        self.judging.push_back(page);
    }

    /// Takes a judged batch through effect and log to the filter.
    fn settle(&mut self, judged: &Batch<Judged>) -> Result<(), FlowError> {
        let page = self.judging.pop_front().expect("every batch was a page");
        self.flow.effect.apply(judged).map_err(FlowError::Output)?;
        self.flow.store.add(judged).map_err(QueryError::Log)?;
        self.tend();
        for (index, (_, reason)) in judged.rejected_at().zip(judged.rejects()) {
            let (source, reason) = (page.place(index).to_string(), reason.to_string());
            self.flow.audience.bad(&Bad { source, offset: None, line: None, reason });
        }
        page.bad.iter().for_each(|bad| self.flow.audience.bad(bad));
        let number = |count: usize| count as u64;
        let (read, new) = (number(judged.items().len()), number(judged.onward_len()));
        let rejected = number(judged.rejects().len());
        let Progress { count, read: input, .. } = &mut self.progress;
        count.read += read;
        count.new += new;
        count.seen += read - new - rejected;
        count.bad += rejected + page.bad_count;
        *input = page.read;
        if let Some(cursor) = page.cursor {
            self.cursors.latest.insert(cursor.source.clone(), cursor);
        }
        if self.cursors.recorded.is_none_or(|recorded| recorded.elapsed() >= RECORD) {
            self.record()?;
        }
        Ok(())
    }

    /// Records the cursors, after all before them is on the disk.
    fn record(&mut self) -> Result<(), QueryError> {
        let cursors: Vec<_> = std::mem::take(&mut self.cursors.latest).into_values().collect();
        if !cursors.is_empty() {
            self.flow.store.record_checkpoints(&cursors)?;
        }
        self.cursors.recorded = Some(Instant::now());
        Ok(())
    }

    /// Looks after the filter and its folder, and tells how the flow goes.
    fn look(&mut self) -> Result<(), FlowError> {
        self.flow.effect.check().map_err(FlowError::Output)?;
        self.flow.store.check().map_err(QueryError::Log)?;
        self.tend();
        self.tell();
        Ok(())
    }

    fn tend(&mut self) {
        if let Some(error) = self.flow.store.tend() {
            let words = format!("no snapshot could be taken ({error}); the log grows on");
            self.flow.audience.say(&words);
        }
    }

    fn tell(&mut self) {
        let Flow { store, dispatcher, fill, remedy, audience, .. } = &mut self.flow;
        let keys = store.engine.gauges().keys();
        if let Some(crossing) = fill.as_mut().and_then(|fill| fill.observe(&keys)) {
            audience.say(&format!("{crossing}. {remedy}"));
        }
        audience.progress(&self.progress);
        audience.look(store, dispatcher);
    }

    /// Answers what was asked, and leaves the folder as the filter is.
    async fn rest(&mut self) -> Result<(), QueryError> {
        self.flow.dispatcher.drain(self.flow.store).await?;
        self.flow.store.engine.settled().await?;
        if let Some(Err(error)) = self.flow.store.wait_for_snapshot() {
            let words = format!("no snapshot could be taken ({error}); the log has it all");
            self.flow.audience.say(&words);
        }
        self.record()?;
        self.flow.store.rest_as_it_is()?;
        self.tell();
        Ok(())
    }
}
