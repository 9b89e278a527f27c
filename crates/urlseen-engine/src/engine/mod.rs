//! The engine: threads that read items and judge them, each the only owner of its shards.
//!
//! Every batch goes through two steps. Its items are read (fingerprints are most of the work) in
//! equal parts by whichever threads have time, which hand what they have read to those that have
//! its shards. Then each thread judges what falls into its own. Batches are judged in the order in
//! which they were submitted, and come out in that order. What is found unseen is only remembered
//! when the batch is said to be committed.

mod asking;
mod awaited;
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
pub mod store;
mod works;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, select_biased};
use tokio::sync::mpsc;

use crate::item::Reader;
use crate::item::batch::{Batch, Claimed, Findings, Judged, Sifted};
pub(crate) use asking::Answers;
pub use asking::{Answer, Question, Wanted};
use awaited::Awaited;
pub use error::{EngineError, StartError};
pub use gauges::Gauges;
pub use handle::Handle;
use in_flight::InFlight;
use owner::{Done, Job, Owner, Read};
pub use parts::Parts;
use progress::Progress;
use urlseen_core::filter::{ForgettingFilter, Full, KeyHasher};
use urlseen_core::storage::Position;
pub use works::{Event, Works, WorksError};

/// How many batches may be submitted and not yet committed or forgotten.
pub(crate) const BATCHES_MAX: usize = 32;

/// How many groups of questions may be asked and not yet answered and remembered.
pub(crate) const GROUPS_MAX: usize = 8;

/// How many items are worth another thread to read them.
const PART: usize = 256;

/// What an engine has to say.
#[derive(Debug)]
pub enum Heard {
    /// A batch is judged, by a filter that is here.
    Judged(Batch<Judged>),
    /// A batch was compared with what is remembered of a filter in Redis.
    Sifted(Batch<Sifted>),
    /// Questions are answered.
    Answers(Answers),
}

/// The engine, as seen by the one task that feeds it.
#[derive(Debug)]
pub struct Engine {
    hasher: KeyHasher,
    /// True if the threads hold the filter.
    is_here: bool,
    owners: Vec<Sender<Job>>,
    reads: Sender<Read>,
    threads: Vec<JoinHandle<()>>,
    done: mpsc::UnboundedReceiver<Done>,
    gauges: Arc<Gauges>,
    /// Batches submitted and not yet handed back, oldest first; `None` while they are judged.
    progress: VecDeque<Option<Batch<Findings>>>,
    /// The number of the batch at the front of `progress`.
    front: u64,
    /// Answers not handed back yet, in the order in which they were given.
    answers: VecDeque<Answers>,
    /// How many parts of groups of questions are not handed back.
    asking: usize,
    /// How many parts of groups were handed back and are not remembered.
    unremembered: usize,
    /// Batches handed back and neither committed nor forgotten.
    uncommitted: usize,
    /// Why a batch was not judged, if one was not for want of room; none is after it.
    full: Option<Full>,
    /// Threads that were told to say when they get so far, and have not yet.
    marks: usize,
}

impl Engine {
    /// Starts the threads; each maps the memory of its own shards. Returns once all are ready.
    pub fn start(parts: &Parts) -> Result<Self, StartError> {
        let (tell, done) = mpsc::unbounded_channel();
        let (tell_ready, ready) = crossbeam_channel::bounded(parts.threads);
        // Of a batch, a thread is told to judge all parts, and to commit; of a group, to answer
        // and to remember.
        let most = BATCHES_MAX * (parts.threads + 1) + 2 * GROUPS_MAX;
        let jobs = || crossbeam_channel::bounded(most);
        let tombstones = Arc::new(AtomicUsize::new(0));
        let (reads, to_read) = crossbeam_channel::bounded(BATCHES_MAX * parts.threads);
        let (owners, todo): (Vec<_>, Vec<_>) = (0..parts.threads).map(|_| jobs()).unzip();
        let mut engine = Self {
            hasher: parts.hasher,
            is_here: parts.shared.is_none(),
            owners,
            reads,
            threads: Vec::new(),
            done,
            gauges: Arc::new(Gauges::new(Vec::new(), Arc::clone(&tombstones))),
            progress: VecDeque::new(),
            front: 0,
            answers: VecDeque::new(),
            asking: 0,
            unremembered: 0,
            uncommitted: 0,
            full: None,
            marks: 0,
        };
        for (number, todo) in todo.into_iter().enumerate() {
            let (hasher, owners) = (parts.hasher, engine.owners.clone());
            let (build, shared) = (Arc::clone(&parts.build), parts.shared.clone());
            let reader = Reader::new(parts.items);
            let tombstones = Arc::clone(&tombstones);
            let (tell, tell_ready, to_read) = (tell.clone(), tell_ready.clone(), to_read.clone());
            let life = move || {
                let filter = build(number, owners.len());
                let filter = filter.map_err(|error| drop(tell_ready.send(Err(error))));
                let Ok(filter) = filter else { return };
                let _ = tell_ready.send(Ok(filter.gauge()));
                drop(tell_ready);
                let owner = Owner {
                    number,
                    hasher,
                    filter: ForgettingFilter::new(filter, tombstones),
                    shared,
                    reader,
                    owners,
                    tell,
                    awaited: Awaited::default(),
                    in_flight: InFlight::default(),
                    at: Position::START,
                };
                run(owner, &todo, &to_read);
            };
            let thread = std::thread::Builder::new().name(format!("filter-{number}"));
            engine.threads.push(thread.spawn(life).map_err(StartError::Thread)?);
        }
        drop(tell_ready);
        let gauges = ready.iter().collect::<Result<Vec<_>, _>>()?;
        engine.gauges = Arc::new(Gauges::new(gauges, tombstones));
        Ok(engine)
    }

    /// Whether another batch may be submitted now.
    pub fn has_room(&self) -> bool {
        self.progress.len() + self.uncommitted < BATCHES_MAX && self.full.is_none()
    }

    /// Whether a batch was not judged for want of room: [`Engine::judged`] says why behind the
    /// last one that was.
    pub fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// How many batches were submitted and not handed back yet.
    pub fn in_progress(&self) -> usize {
        self.progress.len()
    }

    /// Gives the engine a batch to judge.
    ///
    /// # Panics
    /// If there is no room ([`Engine::has_room`]).
    pub fn submit(&mut self, batch: Batch<Claimed>) {
        assert!(self.has_room(), "at most {BATCHES_MAX} batches are in the engine");
        let number = self.front + self.progress.len() as u64;
        let threads = self.owners.len();
        let parts = batch.items().len().div_ceil(PART).clamp(1, threads);
        let progress = Arc::new(Progress::new(number, batch, parts, threads));
        for part in 0..parts {
            // As with an owner that is gone.
            let _ = self.reads.send(Read { progress: Arc::clone(&progress), part });
        }
        self.progress.push_back(None);
    }

    /// The oldest batch that was submitted, once it is judged, where nothing was asked. Waits for
    /// ever if there is none. Nothing is lost when the future is dropped.
    pub async fn judged(&mut self) -> Result<Batch<Judged>, EngineError> {
        match self.heard().await? {
            Heard::Judged(judged) => Ok(judged),
            Heard::Sifted(_) => {
                unreachable!("who keeps no filter does not wait for what it judges")
            }
            Heard::Answers(_) => unreachable!("whoever asks listens for the answers"),
        }
    }

    /// Whatever comes first of the next answers and the oldest batch that was submitted, once it is
    /// judged: answers always come before batches that were judged after them. Waits for ever if
    /// there is neither. Nothing is lost when the future is dropped.
    pub async fn heard(&mut self) -> Result<Heard, EngineError> {
        loop {
            if let Some(answers) = self.answers.pop_front() {
                self.asking -= 1;
                self.unremembered += 1;
                return Ok(Heard::Answers(answers));
            }
            if let Some(found) = self.progress.pop_front_if(|front| front.is_some()).flatten() {
                self.front += 1;
                self.uncommitted += 1;
                return Ok(if self.is_here {
                    Heard::Judged(found.judged())
                } else {
                    Heard::Sifted(found.sifted())
                });
            }
            if let (true, 0, Some(full)) = (self.progress.is_empty(), self.asking, &self.full) {
                return Err(EngineError::Full(full.clone()));
            }
            self.hear().await?;
        }
    }

    /// Waits until the threads have done all that they were told so far, so that the gauges count
    /// every batch that was committed. Nothing is lost when the future is dropped.
    pub async fn settled(&mut self) -> Result<(), EngineError> {
        self.marks += self.owners.len();
        self.tell_all(|| Job::Mark);
        while self.marks > 0 {
            self.hear().await?;
        }
        Ok(())
    }

    /// The oldest batch handed back is committed, which brings the filter to `at`: from now on its
    /// fingerprints are seen.
    ///
    /// # Panics
    /// If there is none.
    pub fn committed(&mut self, at: Position) {
        self.uncommitted = self.uncommitted.checked_sub(1).expect("only what was judged commits");
        self.tell_all(|| Job::Commit { at });
    }

    /// How many batches were handed back and not committed.
    pub(crate) fn uncommitted(&self) -> usize {
        self.uncommitted
    }

    /// The batches handed back and not committed are dropped: their fingerprints are unseen
    /// again.
    ///
    /// # Panics
    /// If a batch is in progress: it was judged against those.
    pub fn abort(&mut self) {
        assert!(self.progress.is_empty(), "batches are forgotten from the last one back");
        self.uncommitted = 0;
        self.tell_all(|| Job::Abort);
    }

    /// Where the filter is in Redis: nothing is known to be seen any more.
    pub fn evict_seen(&mut self) {
        self.tell_all(|| Job::EvictSeen);
    }

    /// For others to look at the filter while it is worked with.
    pub fn handle(&self) -> Handle {
        let (owners, gauges) = (self.owners.clone(), Arc::clone(&self.gauges));
        Handle { hasher: self.hasher, owners, gauges }
    }

    /// How full each shard is; kept up to date by the threads.
    pub fn gauges(&self) -> &Arc<Gauges> {
        &self.gauges
    }

    /// Waits for the next answer of a thread, and takes note of it.
    async fn hear(&mut self) -> Result<(), EngineError> {
        let done = self.done.recv().await.ok_or(EngineError::Panicked)?;
        self.take_note(done)
    }

    fn take_note(&mut self, done: Done) -> Result<(), EngineError> {
        match done {
            Done::Engine => return Err(EngineError::Panicked),
            Done::Full { batch, why } => {
                self.full.get_or_insert(why);
                // Those before it are handed back still.
                if let Some(batch) = batch {
                    let before = usize::try_from(batch - self.front).unwrap_or(0);
                    self.progress.truncate(before);
                }
            }
            Done::Judged { number, batch } => {
                let place = usize::try_from(number - self.front).expect("a place in memory");
                match self.progress.get_mut(place) {
                    Some(progress) => *progress = Some(batch),
                    None => assert!(self.full.is_some(), "only what was submitted is judged"),
                }
            }
            Done::Answered(answers) => self.answers.push_back(answers),
            Done::Marked => self.marks -= 1,
        }
        Ok(())
    }

    fn tell_all(&self, job: impl Fn() -> Job) {
        (0..self.owners.len()).for_each(|owner| self.tell(owner, job()));
    }

    /// An owner that is gone has said so in `done`, which is where it is noticed.
    fn tell(&self, owner: usize, job: Job) {
        let _ = self.owners[owner].send(job);
    }
}

impl Drop for Engine {
    /// The threads end even while others still hold a [`Handle`].
    fn drop(&mut self) {
        self.tell_all(|| Job::End);
        self.owners.clear();
        for thread in self.threads.drain(..) {
            // A panic has printed its message and was reported by `judged`.
            let _ = thread.join();
        }
    }
}

/// The life of a filter thread.
fn run(mut owner: Owner, todo: &Receiver<Job>, to_read: &Receiver<Read>) {
    /// Says so when the thread unwinds.
    struct Obituary(mpsc::UnboundedSender<Done>);
    impl Drop for Obituary {
        fn drop(&mut self) {
            if std::thread::panicking() {
                let _ = self.0.send(Done::Engine);
            }
        }
    }
    let _obituary = Obituary(owner.tell.clone());
    loop {
        // What is read waits to be judged: that comes first.
        select_biased! {
            recv(todo) -> job => match job {
                Ok(Job::End) | Err(_) => return,
                Ok(job) => owner.work(job),
            },
            recv(to_read) -> read => match read {
                Ok(read) => owner.read(read),
                Err(_) => return,
            },
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
