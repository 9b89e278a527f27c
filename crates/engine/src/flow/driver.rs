//! The driver: one loop for every flow of items through a local filter, except a crawl in Redis.
//!
//! ```text
//! feed -> engine -> effect -> log -> filter     queries -> engine -> log -> answers, filter
//! ```
//!
//! A pipe feeds lines, and its effect is to print them. An import feeds digests and has no effect.
//! A run without a source feeds nothing and answers queries. The driver first carries out the
//! effect of a batch. Then the log gets the new keys of the batch, and after that the filter gets
//! them. So after a kill, the effect of at most one batch is repeated, and no effect is missed.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::time::{Duration, Instant};

use tokio::time::MissedTickBehavior;

use super::feed::{Bad, FeedError, Page, Pages};
use crate::engine::store::{Footprint, Reach};
use crate::engine::{EngineError, Event, Works, WorksError};
use crate::item::batch::{Batch, Judged};
use urlseen_filter::FillWatch;
use urlseen_storage::Checkpoint;

/// Maximum number of batches that the engine is judging or that wait for their effect. Four batches
/// keep all threads busy. Eight were 5 % slower, because the in-flight set no longer fitted into
/// the processor's caches.
const JUDGING_MAX: usize = 4;

/// Maximum number of batches of an import that the log does not have yet.
const WRITING_MAX: usize = 3;

/// Time between two checks of the filter and its folder. Each check also reports the progress.
const LOOK: Duration = Duration::from_millis(200);

/// Time between two records of the cursors. Each record also syncs the log.
const RECORD: Duration = Duration::from_secs(1);

/// A flow: its filter, its feed, its effect and its observer.
pub struct Flow<'a> {
    /// The engine and the storage, and the queries of clients. No batch is in progress at the
    /// start.
    pub works: &'a mut Works,
    /// Pages of items to judge.
    pub pages: Pages,
    /// Effect of each judged batch, before the log has its keys. `None` for an import: its keys
    /// differ from each other.
    pub effect: Option<&'a mut dyn Effect>,
    /// Watch on the fill of the filter; `None` if no warning about the fill is wanted.
    pub fill: Option<FillWatch>,
    /// Remedy for a full filter, as the last sentence of warnings about the fill.
    pub remedy: &'static str,
    /// Receiver of messages and progress.
    pub audience: &'a mut dyn Audience,
}

/// Effect of a flow on the outside.
pub trait Effect {
    /// Acts on a judged batch. Is called after the log has the previous batch.
    fn apply(&mut self, page: &Page, batch: &Batch<Judged>) -> io::Result<()>;

    /// Fails if no more output is wanted, for example because the reader of the output is gone. The
    /// driver calls this function from time to time, because a flow without unseen items writes no
    /// output.
    fn check(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Observer of a flow at work.
pub trait Audience {
    /// Receives a message about a problem that does not end the flow.
    fn say(&mut self, words: &str);

    /// Receives a malformed entry of the input. If a page has many malformed entries, the observer
    /// receives only the first ones. Items that cannot be read are a matter of the effect.
    fn bad(&mut self, bad: &Bad);

    /// Receives the progress since the start.
    fn progress(&mut self, progress: &Progress);

    /// Inspects the filter and the queries. The driver calls this function from time to time.
    fn look(&mut self, _works: &mut Works) {}

    /// Receives a new summary of the folder's contents.
    fn footprint(&mut self, _footprint: Footprint) {}
}

/// Counts of items in a flow.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Count {
    /// Number of items that were judged.
    pub read: u64,
    /// Number of unseen items and of items that are exempt from the filter.
    pub new: u64,
    /// Number of items that were seen before.
    pub seen: u64,
    /// Number of malformed entries and items.
    pub bad: u64,
}

/// Progress of a flow since its start.
#[derive(Debug, Default)]
pub struct Progress {
    /// Counts of items since the start.
    pub count: Count,
    /// Amount of the input that was read, in the unit of `expected`.
    pub read: u64,
    /// Amount of the whole input: bytes or members of a set; 0 if unknown.
    pub expected: u64,
}

/// Error that ends a flow before the end of its feed.
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
    /// Runs until the feed ends and the keys of all its batches are in the filter. Then ends the
    /// work on the folder. If the feed fails, the pages before the failure are processed as usual,
    /// and the failure is returned together with the counts.
    ///
    /// # Panics
    /// If the engine still judges batches that were submitted before the call.
    pub async fn run(self) -> Result<(Count, Result<(), FeedError>), FlowError> {
        let progress = Progress { expected: self.pages.expected, ..Progress::default() };
        let cursors = Cursors::default();
        let (judging, judged) = (VecDeque::new(), VecDeque::new());
        if let Some(doubt) = self.works.begin_expiry(None).await? {
            self.audience.say(&doubt.to_string());
        }
        let mut driver = Driver { flow: self, judging, judged, progress, cursors };
        let ended = driver.work().await?;
        driver.rest().await?;
        Ok((driver.progress.count, ended))
    }
}

/// Running flow, with its pages in progress.
struct Driver<'a> {
    flow: Flow<'a>,
    /// Submitted pages whose effect has not happened yet, oldest first.
    judging: VecDeque<Page>,
    /// Judged batches whose effect has not happened yet. The batches belong to the first pages of
    /// `judging`.
    judged: VecDeque<Batch<Judged>>,
    progress: Progress,
    cursors: Cursors,
}

/// Cursors that are not recorded in the folder yet.
#[derive(Default)]
struct Cursors {
    /// Latest cursor of each input, by the name of the input.
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
            self.carry_out()?;
            if self.judged.is_empty() && self.flow.works.in_progress() == 0 {
                if let Some(why) = &self.flow.works.engine.full {
                    return Err(WorksError::from(EngineError::Full(why.clone())).into());
                }
                if let Some(ended) = ended {
                    return Ok(ended);
                }
                // The filter may be emptied only while no batch is in progress.
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
            let words = format!("an earlier import has read {place}; this import continues there");
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
            Event::Snapshot(Err(error)) => {
                let words = format!("no snapshot could be taken ({error}); the log keeps growing");
                self.flow.audience.say(&words);
            }
            Event::Footprint(footprint) => self.flow.audience.footprint(footprint),
            Event::Added
            | Event::Asked
            | Event::Full(_)
            | Event::Snapshot(Ok(_))
            | Event::Expired => {}
        }
    }

    /// Carries out the effects of the judged batches and passes the batches to the log. The effect
    /// of a batch waits until the log has the previous batch. So after a kill, at most one effect
    /// is repeated.
    fn carry_out(&mut self) -> Result<(), FlowError> {
        let writing_max = if self.flow.effect.is_some() { 1 } else { WRITING_MAX };
        while self.flow.works.writing() < writing_max
            && let Some(batch) = self.judged.pop_front()
        {
            let page = self.judging.pop_front().expect("every batch comes from a page");
            match &mut self.flow.effect {
                Some(effect) => effect.apply(&page, &batch).map_err(FlowError::Output)?,
                None => self.expect_more(&page, batch.findings.onward.len()),
            }
            self.count(&batch, page);
            self.flow.works.add(batch);
            self.record();
        }
        Ok(())
    }

    /// Lets the filter grow at once for all keys of an import whose first page had this number of
    /// new keys.
    fn expect_more(&mut self, first: &Page, new: usize) {
        let left = self.progress.expected.saturating_sub(first.read);
        if self.progress.read == 0 && first.read > 0 {
            let more = new as u128 * u128::from(left) / u128::from(first.read);
            self.flow.works.engine.expect(u64::try_from(more).unwrap_or(u64::MAX));
        }
    }

    /// Counts a batch and its page, and reports the malformed entries.
    fn count(&mut self, judged: &Batch<Judged>, page: Page) {
        page.bad.iter().for_each(|bad| self.flow.audience.bad(bad));
        let number = |count: usize| count as u64;
        let (read, new) = (number(judged.items.len()), number(judged.findings.onward.len()));
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

    /// Records the cursors in the folder, if the last record is at least [`RECORD`] ago. The
    /// storage syncs the log before each record.
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

    /// Fails if no more output is wanted, and otherwise reports the progress.
    fn look(&mut self) -> Result<(), FlowError> {
        let checked = self.flow.effect.as_ref().map_or(Ok(()), |effect| effect.check());
        checked.map_err(FlowError::Output)?;
        self.tell();
        Ok(())
    }

    fn tell(&mut self) {
        let Flow { works, fill, remedy, audience, .. } = &mut self.flow;
        let gauge = &works.engine.handle.gauge;
        let keys = gauge.fill().counted;
        let observed = fill.as_mut().and_then(|it| it.observe(keys, || gauge.error_rate()));
        if let Some(crossing) = observed {
            audience.say(&format!("{crossing}. {remedy}"));
        }
        audience.progress(&self.progress);
        audience.look(works);
    }

    /// Answers the queries that were already accepted, records the cursors, and closes the log with
    /// all its records on the disk.
    async fn rest(&mut self) -> Result<(), WorksError> {
        while self.flow.works.is_asked() {
            let event = self.flow.works.next(false).await?;
            self.take(event);
        }
        self.flow.works.engine.caught_up().await?;
        let cursors: Vec<_> = std::mem::take(&mut self.cursors.latest).into_values().collect();
        if let Some(storage) = &self.flow.works.storage {
            let rested =
                storage.call(move |store| (store.end_flow(&cursors), store.kept.footprint()));
            let ((snapshot, rested), footprint) = rested.await?;
            if let Some(Err(error)) = snapshot {
                let words = format!("no snapshot could be taken ({error}); the log has all keys");
                self.flow.audience.say(&words);
            }
            rested.map_err(WorksError::Log)?;
            self.flow.audience.footprint(footprint);
        }
        self.tell();
        Ok(())
    }
}
