//! Engine: reads items and judges them. To judge items means to find the unseen ones.
//!
//! ```text
//! submit -> read (any thread, in parts) -> judge (one at a time) -> heard ... log ... settle
//! ```
//!
//! Threads read the items of a batch in equal parts, and compute the fingerprints and key hashes,
//! which is most of the work. Then the judge, which has the whole filter, judges the key hashes.
//! Batches are judged and returned in the order in which they were submitted. Unseen keys are set
//! in the filter after the batch is committed.
//!
//! The judge has no thread of its own. A thread that has read looks whether the judge is free. A
//! short batch is read and judged by the task that submits it. Engines may share their threads
//! ([`Threads`]).

mod generations;
mod judge;
mod limiter;
pub mod query;
mod question;
mod queue;
mod reading;
mod request_rules;
#[cfg(feature = "simulation")]
mod steps;
pub mod store;
mod threads;
mod works;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Instant, SystemTime};

use tokio::sync::{mpsc, oneshot};

use crate::item::Options;
use crate::item::batch::{Batch, Claimed, Judged};
use generations::Clocks;
pub use generations::Doubt;
use judge::{Judge, SHORT};
use limiter::Limiter;
pub use question::{Answer, Question, Wanted};
pub(crate) use queue::Heard;
use queue::{Done, Queue};
use reading::{Readers, Reading};
pub use request_rules::RequestRules;
#[cfg(feature = "simulation")]
pub use steps::Steps;
pub use threads::{EngineError, StartError, Threads};
use urlseen_filter::Generation;
use urlseen_filter::expire_after::ExpireAfter;
use urlseen_filter::histogram::Histogram;
use urlseen_filter::{
    BuildError, FilterKind, ForgettingFilter, Full, Gauge, KeyHasher, Parameters, Recent,
    RedisFilterKeys, Verdict,
};
use urlseen_fingerprint::Fingerprint;
use urlseen_storage::{Logged, Moment};
pub use works::{Event, Works, WorksError};

/// Maximum number of batches that are submitted and neither committed nor aborted.
pub(crate) const BATCHES_MAX: usize = 32;

/// Maximum number of question groups in progress. At this number, the engine accepts no further
/// group. A group is in progress until its additions are set in the filter.
pub(crate) const GROUPS_MAX: usize = 8;

/// Maximum length of the items of a batch that the task itself reads.
const SHORT_BYTES: usize = 1 << 16;

/// Builds an empty filter.
type Build = dyn Fn() -> Result<Box<dyn FilterKind>, BuildError> + Send + Sync;

/// Everything that is needed to start an engine.
#[derive(Clone)]
pub struct Parts {
    hasher: KeyHasher,
    build: Arc<Build>,
    /// True if a client's addition is to be inserted when it is answered.
    inserts_at_once: bool,
    /// Time after which fingerprints of the filter pass again, if they expire.
    expire_after: Option<ExpireAfter>,
    /// Keys of the filter in Redis; `None` for a filter in memory.
    shared: Option<Arc<RedisFilterKeys>>,
    items: Options,
    threads: Threads,
}

impl Parts {
    /// Describes a filter in memory. The parameters must have a seed, if their kind has one.
    pub fn local(parameters: Parameters, items: Options, threads: Threads) -> Self {
        let (hasher, expire_after) = (parameters.hasher(), parameters.expire_after());
        let inserts_at_once = parameters.inserts_at_once();
        let build = Arc::new(move || parameters.build());
        Self { hasher, build, inserts_at_once, expire_after, shared: None, items, threads }
    }

    /// Describes a filter in Redis. Redis judges the keys. The judge only caches at most `recent`
    /// seen fingerprints.
    pub fn in_redis(
        shared: Arc<RedisFilterKeys>,
        hasher: KeyHasher,
        recent: usize,
        items: Options,
        threads: Threads,
    ) -> Self {
        let build = Arc::new(move || Ok(Box::new(Recent::new(recent)) as _));
        let (inserts_at_once, expire_after, shared) = (false, None, Some(shared));
        Self { hasher, build, inserts_at_once, expire_after, shared, items, threads }
    }
}

/// Handle with which other threads use a filter while the engine works. The judge does their steps
/// among its other ones. After the end of the engine, such steps are dropped without an answer.
#[derive(Debug, Clone)]
pub struct Handle {
    hasher: KeyHasher,
    queue: Arc<Queue>,
    /// Gauge of the filter. Its counts lag by at most one batch.
    pub gauge: Arc<dyn Gauge>,
}

impl Handle {
    /// Tests fingerprints, in their order, and sets nothing. Ignores batches that are not
    /// committed. Waits for the judge. Returns `None` if the engine has ended.
    pub fn test(&self, fingerprints: &[Fingerprint]) -> Option<Vec<Verdict>> {
        let key_hashes: Vec<_> = fingerprints.iter().map(|it| self.hasher.key_hash(it)).collect();
        self.queue.ask(move |judge| judge.test(&key_hashes))
    }
}

/// Engine. The task that submits batches holds this value.
#[derive(Debug)]
pub struct Engine {
    /// Handle with which other threads can read the filter while the engine works.
    pub handle: Handle,
    tombstones: Arc<AtomicUsize>,
    /// True if the filter is in memory, false if the filter is in Redis.
    pub(crate) is_here: bool,
    /// True if each batch that is submitted keeps the fingerprints of its seen items.
    pub keeps_seen: bool,
    done: mpsc::UnboundedReceiver<Done>,
    readers: Arc<Readers>,
    /// Times at which the batches were submitted that are not handed back, oldest first.
    judging: VecDeque<Instant>,
    /// Number of batches that were handed back and are neither committed nor aborted.
    pub(crate) uncommitted: usize,
    /// Durations from the submission of a batch until it is judged.
    pub judge_times: Histogram,
    /// Number of groups of questions whose added keys are not yet set in the filter.
    pub(crate) groups: usize,
    /// Error of a filter that had no room for a batch, which [`Engine::heard`] returns once. That
    /// batch and all later ones are not judged.
    pub full: Option<Full>,
    /// Time after which fingerprints of the filter pass again, if they expire.
    pub(crate) expire_after: Option<ExpireAfter>,
    /// Generation that began last; [`Generation::FOREVER`] if none has begun.
    pub(crate) generation: Generation,
    /// Token of the sweep that is not done yet.
    sweeping: Arc<()>,
    /// Reads the clocks of this machine.
    clocks: Clocks,
    /// Work of an engine without threads, before its start.
    #[cfg(feature = "simulation")]
    stepped: Option<crossbeam_channel::Receiver<threads::Work>>,
}

impl Engine {
    /// Makes an engine that works on the threads of `parts`.
    ///
    /// # Errors
    /// The filter cannot be built.
    pub fn start(parts: &Parts) -> Result<Self, StartError> {
        let Parts { hasher, build, inserts_at_once, expire_after, shared, items, threads } = parts;
        let mut filter = ForgettingFilter::new(build()?);
        let (gauge, tombstones) = (filter.kind().gauge(), filter.count());
        let (tell, done) = mpsc::unbounded_channel();
        let judge = Judge::new(filter, *hasher, *inserts_at_once, Limiter::new(items));
        let queue = Arc::new(Queue::new(judge, threads.line.clone(), threads.count, tell));
        let readers = Readers::new(items.clone(), *hasher, *expire_after, shared.clone());
        Ok(Self {
            handle: Handle { hasher: *hasher, queue, gauge },
            tombstones,
            is_here: shared.is_none(),
            keeps_seen: false,
            done,
            readers: Arc::new(readers),
            judging: VecDeque::new(),
            uncommitted: 0,
            judge_times: Histogram::default(),
            groups: 0,
            full: None,
            expire_after: *expire_after,
            generation: Generation::FOREVER,
            sweeping: Arc::default(),
            clocks: || (Moment::now(), SystemTime::now()),
            #[cfg(feature = "simulation")]
            stepped: None,
        })
    }

    /// Returns true if another batch may be submitted now.
    pub fn has_room(&self) -> bool {
        self.judging.len() + self.uncommitted < BATCHES_MAX && self.full.is_none()
    }

    /// Counts the batches that were submitted and not handed back.
    pub(crate) fn in_progress(&self) -> usize {
        self.judging.len()
    }

    /// Sets the options for reading the items of later batches.
    ///
    /// # Panics
    /// If a batch is in progress.
    pub fn read_as(&mut self, items: Options) {
        assert_eq!(self.in_progress(), 0, "a batch is read by the options of its submission");
        let limiter = Limiter::new(&items);
        self.handle.queue.add(move |judge| judge.limiter = limiter);
        let (hasher, shared) = (self.handle.hasher, self.readers.shared.clone());
        self.readers = Arc::new(Readers::new(items, hasher, self.expire_after, shared));
    }

    /// Gives the engine a batch to judge. Judges it at once if the batch is short and no other one
    /// waits.
    ///
    /// # Panics
    /// If there is no room ([`Engine::has_room`]).
    pub fn submit(&mut self, batch: Batch<Claimed>) {
        assert!(self.has_room(), "at most {BATCHES_MAX} batches are in the engine");
        self.judging.push_back(Instant::now());
        let queue = &self.handle.queue;
        let items = &batch.items;
        let is_short = items.len() <= SHORT && items.bytes_len() <= SHORT_BYTES;
        let reading = Reading::new(batch, queue.threads.max(1), self.keeps_seen, &self.readers);
        if !(is_short && queue.judge_now(&reading)) {
            queue.add_batch(Arc::new(reading));
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
            Heard::Answers(_) => unreachable!("this caller asks no questions"),
        }
    }

    /// Returns the next answers or the next batch, in the order in which they were judged. Waits
    /// forever if there are no answers and no batch. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// The engine cannot continue.
    pub(crate) async fn heard(&mut self) -> Result<Heard, EngineError> {
        loop {
            let done = self.done.recv().await.unwrap_or(Err(EngineError::Panicked));
            match &done {
                Err(EngineError::Full(full)) => {
                    self.judging.clear();
                    if self.full.is_some() {
                        continue;
                    }
                    self.full = Some(full.clone());
                }
                Ok(Heard::Judged(_)) => {
                    let since = self.judging.pop_front().expect("it was submitted");
                    self.judge_times.observe(since.elapsed());
                    self.uncommitted += 1;
                }
                Ok(Heard::Answers(_)) | Err(_) => {}
            }
            return done;
        }
    }

    /// Waits until the judge has done all earlier steps. After that, the gauge counts every
    /// committed batch. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// The engine cannot continue.
    pub async fn caught_up(&mut self) -> Result<(), EngineError> {
        let (tell, told) = oneshot::channel();
        self.handle.queue.add(move |_| {
            let _ = tell.send(());
        });
        told.await.map_err(|_| EngineError::Panicked)
    }

    /// Records the commit of the oldest batch that was handed back. The judge sets the unseen keys
    /// of that batch in their generation, and the filter is then at the end of the batch's record.
    ///
    /// # Panics
    /// If no batch was handed back.
    pub fn settle(&mut self, logged: Logged) {
        let left = self.uncommitted.checked_sub(1);
        self.uncommitted = left.expect("only judged batches commit");
        self.handle.queue.add_or_do(Judge::is_settling_short, move |judge| judge.settle(logged));
    }

    /// Aborts the batches that were handed back and not committed. Their fingerprints are unseen
    /// again.
    ///
    /// # Panics
    /// If a batch is in progress: its judgement depends on the aborted batches.
    pub fn abort(&mut self) {
        self.restoring();
        self.handle.queue.add(Judge::abort);
    }

    /// Lets the filter grow for this number of further keys, if there is room.
    pub(crate) fn expect(&mut self, keys: u64) {
        self.handle.queue.add(move |judge| judge.expect(keys));
    }

    /// Empties the cache of seen keys, for a filter in Redis.
    pub fn evict_seen(&mut self) {
        self.handle.queue.add(|judge| judge.filter.clear());
    }

    /// Counts the fingerprints that were forgotten and have not passed again.
    pub fn tombstones(&self) -> usize {
        self.tombstones.load(Ordering::Relaxed)
    }
}

impl Drop for Engine {
    /// Ends the judge, even while others still hold a [`Handle`], and returns the memory of the
    /// filter.
    fn drop(&mut self) {
        self.handle.queue.end();
    }
}

#[cfg(test)]
mod expiry_tests;
#[cfg(test)]
mod growing_tests;
#[cfg(test)]
mod limiter_tests;
#[cfg(test)]
mod queue_tests;
#[cfg(test)]
mod replay_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod threads_tests;
#[cfg(test)]
pub(crate) mod works_tests;
