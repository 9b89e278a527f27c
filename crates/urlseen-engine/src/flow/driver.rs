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
use crate::engine::store::{Footprint, Reach};
use crate::engine::{EngineError, Event, Works, WorksError};
use crate::item::batch::{Batch, Judged};
use urlseen_core::filter::FillWatch;
use urlseen_core::storage::Checkpoint;

/// Most batches that are judged, or wait for the effect. Enough to keep all threads busy; twice as
/// many were 5 % slower, as the set of what is in flight no longer stayed in the processor's
/// caches.
const JUDGING_MAX: usize = 4;

/// Time between two looks at the filter and its folder; progress is told then.
const LOOK: Duration = Duration::from_millis(200);

/// Time between two records of the cursors. The log is synced for each.
const RECORD: Duration = Duration::from_secs(1);

/// A flow: its filter and its ends.
pub struct Flow<'a> {
    /// The filter, which judges nothing yet, and its queries.
    pub works: &'a mut Works,
    /// Pages of items that feed the flow.
    pub pages: Pages,
    /// Effect of a judged batch, before the log has it.
    pub effect: &'a mut dyn Effect,
    /// Observer of the fill, for a filter that may outgrow its size.
    pub fill: Option<FillWatch>,
    /// Remedy for a filter that is full, for messages.
    pub remedy: &'static str,
    /// Observer of the flow at work.
    pub audience: &'a mut dyn Audience,
}

/// Effect of a flow on the outside.
pub trait Effect {
    /// Acts on a judged batch, after the log has the one before.
    fn apply(&mut self, page: &Page, batch: &Batch<Judged>) -> io::Result<()>;

    /// Fails if no more effect is wanted. Called from time to time, as a flow in which nothing is
    /// unseen would not notice otherwise.
    fn check(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Flow without an effect.
impl Effect for () {
    fn apply(&mut self, _: &Page, _: &Batch<Judged>) -> io::Result<()> {
        Ok(())
    }
}

/// Observer of a flow at work.
pub trait Audience {
    /// Takes a message: the flow continues.
    fn say(&mut self, words: &str);

    /// Takes a malformed entry. If many are malformed at once, only the first of them come here.
    fn bad(&mut self, bad: &Bad);

    /// Takes the progress so far.
    fn progress(&mut self, progress: &Progress);

    /// Looks at the filter and the queries from time to time.
    fn look(&mut self, _works: &mut Works) {}

    /// Takes the new contents of the folder.
    fn footprint(&mut self, _footprint: Footprint) {}
}

/// Counts of items in a flow.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Count {
    /// Items read from the pages.
    pub read: u64,
    /// Unseen items, and those that are not to be checked.
    pub new: u64,
    /// Items that were seen before.
    pub seen: u64,
    /// Malformed entries and items.
    pub bad: u64,
}

/// Progress of a flow so far.
#[derive(Debug, Default)]
pub struct Progress {
    /// Counts of items so far.
    pub count: Count,
    /// Amount of the input that is read.
    pub read: u64,
    /// Amount of the whole input; 0 if unknown.
    pub expected: u64,
}

/// Reason that a flow broke off.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// The effect of a batch failed.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
    /// The filter or its folder failed.
    #[error(transparent)]
    Works(#[from] WorksError),
}

impl Flow<'_> {
    /// Runs until the feed ends, and leaves the folder at rest. If the feed fails, everything
    /// before that is settled first; the failure is returned beside the counts.
    ///
    /// # Panics
    /// If the filter is judging batches that were submitted before.
    pub async fn run(self) -> Result<(Count, Result<(), FeedError>), FlowError> {
        let progress = Progress { expected: self.pages.expected, ..Progress::default() };
        let cursors = Cursors::default();
        let (judging, judged) = (VecDeque::new(), VecDeque::new());
        let mut driver = Driver { flow: self, judging, judged, progress, cursors };
        let ended = driver.work().await?;
        driver.rest().await?;
        Ok((driver.progress.count, ended))
    }
}

/// Flow at work, with its pending pages.
struct Driver<'a> {
    flow: Flow<'a>,
    /// Pages whose items had no effect yet, oldest first.
    judging: VecDeque<Page>,
    /// Judged batches of the first of these pages.
    judged: VecDeque<Batch<Judged>>,
    progress: Progress,
    cursors: Cursors,
}

/// Cursors that the folder does not have yet.
#[derive(Default)]
struct Cursors {
    /// Latest cursor of each input.
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
            self.settle()?;
            if self.judged.is_empty() && self.flow.works.in_progress() == 0 {
                if let Some(why) = self.flow.works.full() {
                    return Err(WorksError::from(EngineError::Full(why.clone())).into());
                }
                if let Some(ended) = ended {
                    return Ok(ended);
                }
                // A filter is emptied only while no batch is judged.
                self.flow.works.do_extras().await?;
            }
            let Self { flow: Flow { works, pages, .. }, judging, .. } = self;
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
                event = works.next(true) => self.take(event?),
            }
        }
    }

    fn submit(&mut self, mut page: Page) {
        if let Some(place) = &page.resumed {
            let words = format!("an earlier import had {place}; this one goes on there");
            self.flow.audience.say(&words);
        }
        self.flow.works.engine.submit(Batch::new(std::mem::take(&mut page.items)));
        self.judging.push_back(page);
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Judged(batch) => self.judged.push_back(batch),
            Event::Ready(_) | Event::Sifted(_) => unreachable!("a flow has no crawl in Redis"),
            Event::SnapshotDue => {
                if let Some(storage) = &self.flow.works.storage {
                    storage.begin_snapshot(Reach::Alone);
                }
            }
            Event::NoSnapshot(error) => {
                let words = format!("no snapshot could be taken ({error}); the log grows on");
                self.flow.audience.say(&words);
            }
            Event::Footprint(footprint) => self.flow.audience.footprint(footprint),
            Event::Added | Event::Asked | Event::Full(_) | Event::Snapshot(_) => {}
        }
    }

    /// Takes the judged batches through the effect to the log, each once the log has the one
    /// before: a flow that is killed repeats the effect of one batch.
    fn settle(&mut self) -> Result<(), FlowError> {
        while self.flow.works.writing() == 0
            && let Some(batch) = self.judged.pop_front()
        {
            let page = self.judging.pop_front().expect("every batch was a page");
            self.flow.effect.apply(&page, &batch).map_err(FlowError::Output)?;
            self.count(&batch, page);
            self.flow.works.add(batch);
            self.record();
        }
        Ok(())
    }

    /// Counts a batch and its page, and names the malformed entries.
    fn count(&mut self, judged: &Batch<Judged>, page: Page) {
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
    }

    /// Records the cursors from time to time, after all before them is on the disk.
    fn record(&mut self) {
        let Cursors { latest, recorded } = &mut self.cursors;
        if recorded.is_some_and(|recorded| recorded.elapsed() < RECORD) {
            return;
        }
        *recorded = Some(Instant::now());
        if let (Some(storage), false) = (&self.flow.works.storage, latest.is_empty()) {
            storage.record_checkpoints(std::mem::take(latest).into_values().collect());
        }
    }

    /// Checks that the effect is still wanted, and tells how the flow goes.
    fn look(&mut self) -> Result<(), FlowError> {
        self.flow.effect.check().map_err(FlowError::Output)?;
        self.tell();
        Ok(())
    }

    fn tell(&mut self) {
        let Flow { works, fill, remedy, audience, .. } = &mut self.flow;
        let gauges = works.engine.gauges();
        let observed = fill.as_mut();
        let observed = observed.and_then(|it| it.observe(&gauges.keys(), || gauges.error_rate()));
        if let Some(crossing) = observed {
            audience.say(&format!("{crossing}. {remedy}"));
        }
        audience.progress(&self.progress);
        audience.look(works);
    }

    /// Answers the queries that were taken, and leaves the folder as the filter is.
    async fn rest(&mut self) -> Result<(), WorksError> {
        while self.flow.works.is_asked() {
            let event = self.flow.works.next(false).await?;
            self.take(event);
        }
        self.flow.works.engine.settled().await?;
        let cursors: Vec<_> = std::mem::take(&mut self.cursors.latest).into_values().collect();
        if let Some(storage) = &self.flow.works.storage {
            let rested = storage.call(move |store| (store.end_flow(&cursors), store.footprint()));
            let ((snapshot, rested), footprint) = rested.await?;
            if let Some(Err(error)) = snapshot {
                let words = format!("no snapshot could be taken ({error}); the log has it all");
                self.flow.audience.say(&words);
            }
            rested.map_err(WorksError::Log)?;
            self.flow.audience.footprint(footprint);
        }
        self.tell();
        Ok(())
    }
}
