//! Engine: threads that read items and judge them. To judge items means to find the unseen ones.
//! Each shard of the filter has one thread as its owner, and only this thread uses the shard.
//!
//! Idle threads read the items of a batch in equal parts, and compute the fingerprints, which is
//! most of the work. They pass each key hash to the thread that owns its shard. Then each thread
//! judges the key hashes of its own shards. Batches are judged and returned in the order in which
//! they were submitted. Unseen keys are set in the filter after the batch is committed.

mod asking;
mod awaited;
mod batches;
mod error;
mod gauges;
mod handle;
mod in_flight;
mod owner;
mod parts;
mod pieces;
mod progress;
pub mod query;
mod restoring;
#[cfg(feature = "simulation")]
mod steps;
pub mod store;
mod worker;
mod works;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread::JoinHandle;

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
use owner::{Done, Job, Owner, Read};
pub use parts::Parts;
use progress::Progress;
#[cfg(feature = "simulation")]
pub use steps::Steps;
use urlseen_core::filter::{ForgettingFilter, Full, Gauge};
use urlseen_core::storage::Position;
use worker::{BuildWorker, Worker};
pub use works::{Event, Works, WorksError};

/// Maximum number of batches that are submitted and neither committed nor aborted.
pub(crate) const BATCHES_MAX: usize = 32;

/// Limit on the parts of question groups that are in progress. At this number, the engine accepts
/// no further group. The engine divides a group into one part for each thread that owns keys of the
/// group. A part is in progress until its additions are set in the filter.
pub(crate) const GROUPS_MAX: usize = 8;

/// Number of items that justify one more thread for reading a batch.
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

/// Engine with its threads. The task that submits batches holds this value.
#[derive(Debug)]
pub struct Engine {
    handle: Handle,
    /// True if the filter is in the memory of the threads, false if the filter is in Redis.
    is_here: bool,
    /// True if each batch keeps the fingerprints of its seen items.
    keeps_seen: bool,
    reads: Sender<Read>,
    threads: Vec<JoinHandle<()>>,
    done: mpsc::UnboundedReceiver<Done>,
    batches: Batches,
    asking: Asking,
    /// Error of a filter that had no room for a batch. That batch and all later ones are not
    /// judged.
    full: Option<Full>,
    /// Number of [`Job::Mark`] jobs that the threads have not reported as done yet.
    marks: usize,
}

impl Engine {
    /// Starts the threads, each of which maps the memory of its own shards. Returns when all
    /// threads are ready.
    pub fn start(parts: &Parts) -> Result<Self, StartError> {
        // A batch needs one job for each part and one for its commit. A group of questions needs
        // one for the answers and one for the additions.
        let most = BATCHES_MAX * (parts.threads + 1) + 2 * GROUPS_MAX;
        let (mut engine, workers) = Self::prepare(parts, || bounded(most));
        let (tell_ready, ready) = bounded(parts.threads);
        for (number, build) in workers.into_iter().enumerate() {
            let tell_ready = tell_ready.clone();
            let begin = move || {
                let (worker, gauge) = build().map_err(|it| drop(tell_ready.send(Err(it)))).ok()?;
                let _ = tell_ready.send(Ok(gauge));
                Some(worker)
            };
            let life = move || {
                if let Some(worker) = begin() {
                    worker.run();
                }
            };
            let thread = std::thread::Builder::new().name(format!("filter-{number}"));
            engine.threads.push(thread.spawn(life).map_err(StartError::Thread)?);
        }
        drop(tell_ready);
        engine.show(ready.iter().collect::<Result<_, _>>()?);
        Ok(engine)
    }

    /// Makes an engine, and for each of its threads a function that builds the thread's worker.
    /// `jobs` makes the queue of a thread.
    fn prepare(
        parts: &Parts,
        jobs: impl Fn() -> (Sender<Job>, Receiver<Job>),
    ) -> (Self, Vec<BuildWorker>) {
        let (tell, done) = mpsc::unbounded_channel();
        let tombstones = Arc::new(AtomicUsize::new(0));
        let (reads, to_read) = bounded(BATCHES_MAX * parts.threads);
        let (owners, todo): (Vec<_>, Vec<_>) = (0..parts.threads).map(|_| jobs()).unzip();
        let build = |(number, todo)| -> BuildWorker {
            let Parts { hasher, build, shared, items, threads } = parts.clone();
            let (owners, tombstones) = (owners.clone(), Arc::clone(&tombstones));
            let (tell, to_read) = (tell.clone(), to_read.clone());
            Box::new(move || {
                let filter = build(number, threads)?;
                let gauge = filter.gauge();
                let owner = Owner {
                    number,
                    hasher,
                    filter: ForgettingFilter::new(filter, tombstones),
                    shared,
                    reader: Reader::new(items),
                    owners,
                    tell,
                    awaited: Awaited::default(),
                    in_flight: InFlight::default(),
                    at: Position::START,
                };
                Ok((Worker { owner, todo, to_read }, gauge))
            })
        };
        let workers = todo.into_iter().enumerate().map(build).collect();
        let engine = Self {
            handle: Handle {
                hasher: parts.hasher,
                owners,
                gauges: Arc::new(Gauges::new(Vec::new(), tombstones)),
                #[cfg(feature = "simulation")]
                stepped: None,
            },
            is_here: parts.shared.is_none(),
            keeps_seen: false,
            reads,
            threads: Vec::new(),
            done,
            batches: Batches::default(),
            asking: Asking::default(),
            full: None,
            marks: 0,
        };
        (engine, workers)
    }

    /// Installs the gauges of all parts of the filter.
    fn show(&mut self, gauges: Vec<Arc<dyn Gauge>>) {
        let tombstones = Arc::clone(&self.handle.gauges.tombstones);
        self.handle.gauges = Arc::new(Gauges::new(gauges, tombstones));
    }

    /// Returns true if another batch may be submitted now.
    pub fn has_room(&self) -> bool {
        self.batches.has_room() && self.full.is_none()
    }

    /// Returns true if a batch was not judged because the filter has no room. [`Engine::judged`]
    /// returns this error after it has returned all judged batches.
    pub fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// Counts the batches that were submitted and not handed back.
    pub fn in_progress(&self) -> usize {
        self.batches.judging.len()
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
        self.handle.tell_all(|| Job::ReadAs(items));
    }

    /// Gives the engine a batch to judge.
    ///
    /// # Panics
    /// If there is no room ([`Engine::has_room`]).
    pub fn submit(&mut self, batch: Batch<Claimed>) {
        assert!(self.has_room(), "at most {BATCHES_MAX} batches are in the engine");
        let threads = self.handle.owners.len();
        let parts = batch.items().len().div_ceil(PART).clamp(1, threads);
        let number = self.batches.submit();
        let progress = Progress::new(number, batch, parts, threads, self.keeps_seen);
        let progress = Arc::new(progress);
        for part in 0..parts {
            // [`Engine::heard`] reports threads that have ended.
            let _ = self.reads.send(Read { progress: Arc::clone(&progress), part });
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

    /// Returns the next answers, or the oldest batch once it is judged. If answers were given
    /// before a batch was judged, the answers come first. Waits forever if there are no answers and
    /// no batch. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// The engine cannot continue.
    pub async fn heard(&mut self) -> Result<Heard, EngineError> {
        loop {
            if let Some(answers) = self.asking.hand_back() {
                return Ok(Heard::Answers(answers));
            }
            if let Some(found) = self.batches.hand_back() {
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

    /// Waits until the threads have done all their earlier jobs. After that, the gauges count every
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

    /// Records the commit of the oldest batch that was handed back. The threads set the unseen keys
    /// of that batch, and the filter is then at position `at`.
    ///
    /// # Panics
    /// If no batch was handed back.
    pub fn committed(&mut self, at: Position) {
        self.batches.commit();
        self.handle.tell_all(|| Job::Commit { at });
    }

    /// Counts the batches that were handed back and not committed.
    pub(crate) fn uncommitted(&self) -> usize {
        self.batches.uncommitted
    }

    /// Aborts the batches that were handed back and not committed. Their fingerprints are unseen
    /// again.
    ///
    /// # Panics
    /// If a batch is in progress: its judgement depends on the aborted batches.
    pub fn abort(&mut self) {
        self.batches.abort();
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

    /// Returns the gauges of the filter, which the threads keep up to date.
    pub fn gauges(&self) -> &Arc<Gauges> {
        &self.handle.gauges
    }

    /// Waits for the next result of a thread, and processes it.
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
    /// Ends the threads, even while others still hold a [`Handle`].
    fn drop(&mut self) {
        self.handle.tell_all(|| Job::End);
        self.handle.owners.clear();
        for thread in self.threads.drain(..) {
            // A panic has printed its message and was reported by `judged`.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod asking_tests;
#[cfg(test)]
mod growing_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod works_tests;
