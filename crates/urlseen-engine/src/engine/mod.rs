//! Engine: reads items and judges them. To judge items means to find the unseen ones. Each shard of
//! the filter has an owner, and only the owner uses the shard.
//!
//! The owners read the items of a batch in equal parts, and compute the fingerprints, which is most
//! of the work. They pass each key hash to the owner of its shard. Then each owner judges the key
//! hashes of its own shards. Batches are judged and returned in the order in which they were
//! submitted. Unseen keys are set in the filter after the batch is committed.
//!
//! An owner has no thread of its own. It lines up for a thread while it has jobs, and one thread at
//! a time does them. Engines may share their threads ([`Threads`]).

mod asking;
mod awaited;
mod batches;
mod error;
mod gauges;
mod generating;
mod handle;
mod in_flight;
mod limiter;
mod mailbox;
mod owner;
mod parts;
mod progress;
pub mod query;
mod restoring;
#[cfg(feature = "simulation")]
mod steps;
pub mod store;
mod threads;
mod worker;
mod works;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use crossbeam_channel::{Receiver, Sender, bounded};
use tokio::sync::mpsc;

use crate::item::batch::{Batch, Claimed, Judged, Sifted};
use crate::item::{Options, Reader};
pub(crate) use asking::Answers;
use asking::Asking;
pub use asking::{Answer, Question, Wanted};
use awaited::Awaited;
use batches::Batches;
pub use error::{EngineError, StartError};
pub use gauges::Gauges;
pub use handle::Handle;
use in_flight::InFlight;
use limiter::Limiter;
use mailbox::{Inbox, Mailbox};
use owner::{Done, Job, Owner};
pub use parts::Parts;
use progress::Progress;
#[cfg(feature = "simulation")]
pub use steps::Steps;
pub use threads::Threads;
use urlseen_core::filter::expire_after::ExpireAfter;
use urlseen_core::filter::generation::Generation;
use urlseen_core::filter::{ForgettingFilter, Full};
use urlseen_core::storage::{Clocks, Histogram, Logged, Position};
use worker::Worker;
pub use works::{Event, Works, WorksError};

/// Maximum number of batches that are submitted and neither committed nor aborted.
pub(crate) const BATCHES_MAX: usize = 32;

/// Limit on the parts of question groups that are in progress. At this number, the engine accepts
/// no further group. The engine divides a group into one part for each owner of keys of the group.
/// A part is in progress until its additions are set in the filter.
pub(crate) const GROUPS_MAX: usize = 8;

/// Number of items that justify one more owner for reading a batch.
const PART: usize = 256;

/// Result that the engine returns to the task that submits batches.
#[derive(Debug)]
pub enum Heard {
    /// A batch is judged by a filter in memory.
    Judged(Batch<Judged>),
    /// A batch was compared with the cache of a filter in Redis.
    Sifted(Batch<Sifted>),
    /// Questions are answered.
    Answers(Answers),
}

/// Engine with its owners. The task that submits batches holds this value.
#[derive(Debug)]
pub struct Engine {
    handle: Handle,
    /// True if the filter is in the memory of the owners, false if the filter is in Redis.
    is_here: bool,
    /// True if each batch keeps the fingerprints of its seen items.
    keeps_seen: bool,
    done: mpsc::UnboundedReceiver<Done>,
    /// Channel that is closed after the end of all owners.
    ended: Receiver<Infallible>,
    /// Number of the owner that reads next. The owners read in turn.
    reader: usize,
    batches: Batches,
    /// Limits on unseen items, if there are any.
    limiter: Option<Limiter>,
    asking: Asking,
    /// Error of a filter that had no room for a batch. That batch and all later ones are not
    /// judged.
    full: Option<Full>,
    /// Time after which fingerprints of the filter pass again, if they expire.
    pub(crate) expire_after: Option<ExpireAfter>,
    /// Generation that began last.
    generation: Generation,
    /// Token of the [`Job::Sweep`] jobs that are not done yet.
    sweeping: Arc<()>,
    /// Reads the clocks of this machine.
    clocks: fn() -> Clocks,
    /// Number of [`Job::Mark`] jobs that the owners have not reported as done yet.
    marks: usize,
}

impl Engine {
    /// Makes an engine whose owners work on the threads of `parts`.
    ///
    /// # Errors
    /// The filter cannot be built.
    pub fn start(parts: &Parts) -> Result<Self, StartError> {
        // A batch needs one job for each part and one for its commit. A group of questions needs
        // one for the answers and one for the additions. At most one generation begins at a time,
        // and one sweep is under way.
        let most = BATCHES_MAX * (parts.threads.owners + 1) + 2 * GROUPS_MAX + 2;
        Self::with_inboxes(parts, || bounded(most))
    }

    /// Makes an engine. `queue` makes a queue for the jobs of an owner.
    fn with_inboxes(
        parts: &Parts,
        queue: impl Fn() -> (Sender<Job>, Receiver<Job>),
    ) -> Result<Self, StartError> {
        let Parts { hasher, build, expire_after, shared, items, threads } = parts;
        let filters = (0..threads.owners).map(|number| build(number, threads.owners));
        let filters: Vec<_> = filters.collect::<Result<_, _>>()?;
        let gauges = filters.iter().map(|filter| filter.gauge()).collect();
        let tombstones = Arc::new(AtomicUsize::new(0));
        let (tell, done) = mpsc::unbounded_channel();
        let (alive, ended) = bounded(0);
        let mailbox = |_| {
            let ((jobs, todo), (reads, to_read)) = (queue(), queue());
            let worker = Arc::new(Worker::new(threads.due.clone()));
            (Mailbox { jobs, reads, worker }, Inbox::new(todo, to_read))
        };
        let (owners, inboxes): (Vec<_>, Vec<_>) = (0..threads.owners).map(mailbox).unzip();
        for (number, (filter, inbox)) in filters.into_iter().zip(inboxes).enumerate() {
            let owner = Owner {
                number,
                hasher: *hasher,
                filter: ForgettingFilter::new(filter, Arc::clone(&tombstones)),
                shared: shared.clone(),
                reader: Reader::new(*items).expiring(*expire_after),
                owners: owners.clone(),
                tell: tell.clone(),
                _alive: alive.clone(),
                awaited: Awaited::default(),
                in_flight: InFlight::default(),
                next_batch: 0,
                at: Position::START,
            };
            owners[number].worker.begin(owner, inbox);
        }
        Ok(Self {
            handle: Handle {
                hasher: *hasher,
                owners,
                gauges: Arc::new(Gauges::new(gauges, tombstones)),
                counts: Arc::default(),
                #[cfg(feature = "simulation")]
                stepped: None,
            },
            is_here: shared.is_none(),
            keeps_seen: false,
            done,
            ended,
            reader: 0,
            batches: Batches::default(),
            limiter: Limiter::new(*items),
            asking: Asking::default(),
            full: None,
            expire_after: *expire_after,
            generation: Generation::FOREVER,
            sweeping: Arc::default(),
            clocks: Clocks::now,
            marks: 0,
        })
    }

    /// Returns true if another batch may be submitted now.
    pub fn has_room(&self) -> bool {
        self.batches.has_room() && self.full.is_none()
    }

    /// Counts the batches that were submitted and not handed back.
    pub fn in_progress(&self) -> usize {
        self.batches.judging.len()
    }

    /// Returns the durations from the submission of a batch until it is judged.
    pub fn judge_times(&self) -> Histogram {
        self.batches.times
    }

    /// Makes each later batch keep the fingerprints of its seen items.
    pub fn keep_seen(&mut self) {
        self.keeps_seen = true;
    }

    /// Sets the options for reading the items of later batches.
    ///
    /// # Panics
    /// If a batch is in progress.
    pub fn read_as(&mut self, items: Options) {
        assert_eq!(self.in_progress(), 0, "a batch is read by the options of its submission");
        self.limiter = Limiter::new(items);
        self.handle.tell_all(|| Job::ReadAs(items));
    }

    /// Gives the engine a batch to judge.
    ///
    /// # Panics
    /// If there is no room ([`Engine::has_room`]).
    pub fn submit(&mut self, batch: Batch<Claimed>) {
        assert!(self.has_room(), "at most {BATCHES_MAX} batches are in the engine");
        let owners = self.handle.owners.len();
        let parts = batch.items().len().div_ceil(PART).clamp(1, owners);
        let number = self.batches.submit();
        let progress = Arc::new(Progress::new(number, batch, parts, owners, self.keeps_seen));
        for part in 0..parts {
            self.handle.tell(self.reader, Job::Read { progress: Arc::clone(&progress), part });
            self.reader = (self.reader + 1) % owners;
        }
    }

    /// Returns the oldest batch once it is judged, for a caller that asks no questions. Waits
    /// forever if there is no batch. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// The engine cannot continue.
    pub async fn judged(&mut self) -> Result<Batch<Judged>, EngineError> {
        match self.heard().await? {
            Heard::Judged(judged) => Ok(judged),
            Heard::Sifted(_) => unreachable!("this caller has a filter in memory"),
            Heard::Answers(_) => unreachable!("this caller asks no questions"),
        }
    }

    /// Returns the next answers, or the oldest batch once it is judged, in the order in which each
    /// owner answered and judged. Waits forever if there are no answers and
    /// no batch. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// The engine cannot continue.
    pub async fn heard(&mut self) -> Result<Heard, EngineError> {
        loop {
            if let Some(answers) = self.asking.hand_back(&self.batches) {
                return Ok(Heard::Answers(answers));
            }
            if let Some(found) = self.hand_back() {
                return Ok(if self.is_here {
                    Heard::Judged(found.judged())
                } else {
                    Heard::Sifted(found.sifted())
                });
            }
            if let Some(full) = &self.full
                && self.in_progress() + self.asking() == 0
            {
                return Err(EngineError::Full(full.clone()));
            }
            self.hear().await?;
        }
    }

    /// Waits until the owners have done all their earlier jobs. After that, the gauges count every
    /// committed batch. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// The engine cannot continue.
    pub async fn settled(&mut self) -> Result<(), EngineError> {
        self.mark();
        while self.marks > 0 {
            self.hear().await?;
        }
        Ok(())
    }

    fn mark(&mut self) {
        self.marks += self.handle.owners.len();
        self.handle.tell_all(|| Job::Mark);
    }

    /// Records the commit of the oldest batch that was handed back. The owners set the unseen keys
    /// of that batch in their generation, and the filter is then at the end of the batch's record.
    ///
    /// # Panics
    /// If no batch was handed back.
    pub fn committed(&mut self, logged: Logged) {
        let over_limit = self.commit_counts(logged.at);
        self.handle.tell_all(|| Job::Commit { logged, over_limit: over_limit.clone() });
    }

    /// Counts the batches that were handed back and not committed.
    pub(crate) fn uncommitted(&self) -> usize {
        self.batches.uncommitted.len()
    }

    /// Aborts the batches that were handed back and not committed. Their fingerprints are unseen
    /// again.
    ///
    /// # Panics
    /// If a batch is in progress: its judgement depends on the aborted batches.
    pub fn abort(&mut self) {
        self.drop_uncommitted();
        self.handle.tell_all(|| Job::Abort);
    }

    /// Empties the cache of seen keys, for a filter in Redis.
    pub fn evict_seen(&mut self) {
        self.handle.tell_all(|| Job::EvictSeen);
    }

    /// Returns a handle with which other threads can read the filter while the engine works.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Returns the gauges of the filter, which the owners keep up to date.
    pub fn gauges(&self) -> &Arc<Gauges> {
        &self.handle.gauges
    }

    /// Waits for the next result of an owner, and processes it.
    async fn hear(&mut self) -> Result<(), EngineError> {
        let done = self.done.recv().await.ok_or(EngineError::Panicked)?;
        self.note(done)
    }

    fn note(&mut self, done: Done) -> Result<(), EngineError> {
        match done {
            Done::Engine => return Err(EngineError::Panicked),
            Done::Full { batch, why } => {
                self.full.get_or_insert(why);
                if let Some(number) = batch {
                    self.batches.drop_from(number);
                }
            }
            Done::Judged { number, batch } => self.batches.judged(number, batch),
            Done::Answered(answers) => self.asking.answers.push_back(answers),
            Done::Marked => self.marks -= 1,
        }
        Ok(())
    }
}

impl Drop for Engine {
    /// Ends the owners, even while others still hold a [`Handle`], and waits until they have
    /// returned the memory of the filter.
    fn drop(&mut self) {
        self.handle.tell_all(|| Job::End);
        self.handle.wait(&self.ended);
    }
}

#[cfg(test)]
mod asking_tests;
#[cfg(test)]
mod expiry_tests;
#[cfg(test)]
mod growing_tests;
#[cfg(test)]
mod limiter_tests;
#[cfg(test)]
mod replay_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod threads_tests;
#[cfg(test)]
pub(crate) mod works_tests;
