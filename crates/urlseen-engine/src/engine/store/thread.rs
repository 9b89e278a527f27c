//! Thread of a folder. Only this thread waits for the disk.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::{self, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout_at;

use super::{Change, Footprint, Store, Write, Written};
use crate::engine::asking::Answers;
use crate::engine::{BATCHES_MAX, GROUPS_MAX};
use crate::item::batch::{Batch, Judged, Ready};
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::storage::{Checkpoint, Finished, Moment, Position, Requests};

/// Time between two checks of the folder.
const LOOK: Duration = Duration::from_millis(200);

/// Maximum number of records that share a sync.
const GROUP: usize = BATCHES_MAX + GROUPS_MAX;

/// Handle of the thread that has the folder of a filter. The thread does its jobs in order.
#[derive(Debug)]
pub struct Storage {
    jobs: Option<mpsc::UnboundedSender<Job>>,
    stored: mpsc::UnboundedReceiver<Stored>,
    /// Batches that are not written yet.
    batches: usize,
    /// Answers whose changes are not written yet.
    answers: usize,
    dir: PathBuf,
    requests: Requests,
    thread: Option<JoinHandle<()>>,
    /// The state of the thread and its jobs, in a simulation.
    #[cfg(feature = "simulation")]
    steps: Option<StorageSteps>,
}

/// Event of the folder's thread.
#[derive(Debug)]
pub enum Stored {
    /// A batch of the crawl is in the log.
    Batch(Batch<Ready>),
    /// The new keys of a batch that belongs to no crawl are in the log, whose end is at this
    /// position.
    Added(Position),
    /// The changes of some answers are in the log.
    Answers(Recorded),
    /// The log is so long that it is time for a snapshot.
    SnapshotDue,
    /// A snapshot is finished.
    Snapshot(Finished),
    /// A snapshot could not be begun or finished.
    NoSnapshot(io::Error),
    /// The contents of the folder have changed.
    Footprint(Footprint),
    /// The log can no longer be written, or the next start would not find the log.
    Failed(io::Error),
}

/// Age of the oldest state to which the folder must allow a recovery after a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The moment that Redis reports; `None` to keep everything.
    To(Option<Moment>),
    /// The age that a filter without a source needs.
    Alone,
}

/// Answers whose changes are in the log.
#[derive(Debug)]
pub struct Recorded {
    pub(crate) answers: Answers,
    pub(crate) at: Position,
}

enum Job {
    Write(Write<Answers>),
    Checkpoints(Vec<Checkpoint>),
    Do(Box<dyn FnOnce(&mut Store) + Send>),
    Snapshot(Reach),
}

/// The thread has panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the thread of the storage folder panicked (see its message above). Start again, and please \
     report the message"
)]
pub struct StorageDied;

impl Storage {
    pub(super) fn start(store: Store) -> io::Result<Self> {
        let (jobs, mut todo) = mpsc::unbounded_channel();
        let (tell, stored) = mpsc::unbounded_channel();
        let (dir, requests) =
            (store.kept.folder().dir().to_owned(), store.kept.folder().requests().clone());
        let mut storage = Self {
            jobs: Some(jobs),
            stored,
            batches: 0,
            answers: 0,
            dir,
            requests,
            thread: None,
            #[cfg(feature = "simulation")]
            steps: None,
        };
        #[cfg(feature = "simulation")]
        let is_stepped = store.is_stepped();
        let keeper = Keeper { store, tell, shown: None, has_news: true, is_due_told: false };
        #[cfg(feature = "simulation")]
        if is_stepped {
            storage.steps = Some(StorageSteps { keeper, todo });
            return Ok(storage);
        }
        let runtime = runtime::Builder::new_current_thread().enable_time().build()?;
        let thread = std::thread::Builder::new().name("storage".to_owned());
        storage.thread = Some(thread.spawn(move || keeper.live(&mut todo, &runtime))?);
        Ok(storage)
    }

    /// Returns the jobs of a folder without a thread, once.
    #[cfg(feature = "simulation")]
    pub(in crate::engine) fn take_steps(&mut self) -> Option<StorageSteps> {
        self.steps.take()
    }

    /// Returns the path of the storage folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the requests that the folder's disk has not answered.
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Counts the batches that are not written yet.
    pub fn batches(&self) -> usize {
        self.batches
    }

    /// Counts the answers whose changes are not written yet.
    pub fn answers(&self) -> usize {
        self.answers
    }

    /// Logs a batch of the crawl after the last logged batch.
    pub fn write(&mut self, batch: Batch<Judged>) {
        self.batches += 1;
        self.tell(Job::Write(Write::Batch(batch)));
    }

    /// Logs the new keys of a batch that belongs to no crawl.
    pub fn add(&mut self, batch: Batch<Judged>) {
        self.batches += 1;
        self.tell(Job::Write(Write::Keys(batch)));
    }

    /// Records the progress of imports, after all earlier writes are on the disk.
    pub fn record_checkpoints(&self, checkpoints: Vec<Checkpoint>) {
        self.tell(Job::Checkpoints(checkpoints));
    }

    /// Logs the changes of answers of the engine.
    pub(crate) fn record(&mut self, answers: Answers, changes: Vec<(Change, Fingerprint)>) {
        self.answers += 1;
        self.tell(Job::Write(Write::Changes(answers, changes)));
    }

    /// Begins a snapshot, if it is time for one.
    pub fn begin_snapshot(&self, reach: Reach) {
        self.tell(Job::Snapshot(reach));
    }

    /// Runs `work` on the thread, after all earlier jobs. The thread runs it even if the future is
    /// dropped.
    pub fn call<T, Work>(
        &self,
        work: Work,
    ) -> impl Future<Output = Result<T, StorageDied>> + use<T, Work>
    where
        T: Send + 'static,
        Work: FnOnce(&mut Store) -> T + Send + 'static,
    {
        let (tell, told) = oneshot::channel();
        self.tell(Job::Do(Box::new(move |store| drop(tell.send(work(store))))));
        async { told.await.map_err(|_| StorageDied) }
    }

    /// Returns the next event. Nothing is lost when the future is dropped.
    pub async fn stored(&mut self) -> Result<Stored, StorageDied> {
        let stored = self.stored.recv().await.ok_or(StorageDied)?;
        match stored {
            Stored::Batch(_) | Stored::Added(_) => self.batches -= 1,
            Stored::Answers(_) => self.answers -= 1,
            _ => {}
        }
        Ok(stored)
    }

    /// Gives the thread a job. If the thread has ended, [`Storage::stored`] reports that.
    fn tell(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic has printed its message, and `stored` reported it.
            let _ = thread.join();
        }
    }
}

/// A folder without a thread, and its jobs.
#[cfg(feature = "simulation")]
#[derive(Debug)]
pub(in crate::engine) struct StorageSteps {
    keeper: Keeper,
    todo: mpsc::UnboundedReceiver<Job>,
}

#[cfg(feature = "simulation")]
impl StorageSteps {
    /// Does the jobs that wait. Returns false if there are none.
    pub(in crate::engine) fn step(&mut self) -> bool {
        let Ok(job) = self.todo.try_recv() else { return false };
        self.keeper.work(job, &mut self.todo);
        true
    }

    /// Checks the folder, as the thread does several times a second.
    pub(in crate::engine) fn look(&mut self) {
        self.keeper.look();
    }
}

/// State of the folder's thread.
#[derive(Debug)]
struct Keeper {
    store: Store,
    tell: mpsc::UnboundedSender<Stored>,
    /// Contents of the folder that were last reported.
    shown: Option<Footprint>,
    /// True if the folder may have changed since the last report.
    has_news: bool,
    /// True if the thread has reported that it is time for a snapshot.
    is_due_told: bool,
}

impl Keeper {
    fn live(mut self, todo: &mut mpsc::UnboundedReceiver<Job>, runtime: &Runtime) {
        let mut look = Instant::now() + LOOK;
        loop {
            // This channel does not spin before it waits. Crossbeam's channels do, which takes
            // processor time from other threads.
            match runtime.block_on(async { timeout_at(look.into(), todo.recv()).await }) {
                Ok(Some(job)) => self.work(job, todo),
                Ok(None) => return,
                Err(_) => {}
            }
            if look <= Instant::now() {
                self.look();
                look = Instant::now() + LOOK;
            }
        }
    }

    /// Does a job, and then the jobs that already wait. Writes without another job between them
    /// share a sync.
    fn work(&mut self, first: Job, todo: &mut mpsc::UnboundedReceiver<Job>) {
        let (mut writes, mut next) = (Vec::new(), Some(first));
        while let Some(job) = next.take() {
            match job {
                Job::Write(write) => writes.push(write),
                Job::Do(work) => {
                    self.write(&mut writes);
                    work(&mut self.store);
                }
                Job::Checkpoints(checkpoints) => {
                    self.write(&mut writes);
                    if let Err(error) = self.store.record_checkpoints(&checkpoints) {
                        self.say(Stored::Failed(error));
                    }
                }
                Job::Snapshot(reach) => {
                    self.write(&mut writes);
                    self.begin_snapshot(reach);
                }
            }
            if writes.len() < GROUP {
                next = todo.try_recv().ok();
            }
        }
        self.write(&mut writes);
    }

    fn write(&mut self, writes: &mut Vec<Write<Answers>>) {
        self.has_news = true;
        if writes.is_empty() {
            return;
        }
        match self.store.write(writes.drain(..)) {
            Ok(written) => {
                for written in written {
                    self.say(match written {
                        Written::Batch(batch) => Stored::Batch(batch),
                        Written::Keys(at) => Stored::Added(at),
                        Written::Changes(answers, at) => Stored::Answers(Recorded { answers, at }),
                    });
                }
            }
            Err(error) => self.say(Stored::Failed(error)),
        }
        self.tell_due();
    }

    fn begin_snapshot(&mut self, reach: Reach) {
        let horizon = match reach {
            Reach::To(horizon) => horizon,
            Reach::Alone => self.store.kept.horizon(),
        };
        if self.store.kept.wants_snapshot()
            && let Err(error) = self.store.kept.begin_snapshot(horizon)
        {
            self.say(Stored::NoSnapshot(error));
        }
    }

    /// Reports once that a snapshot is due.
    fn tell_due(&mut self) {
        let is_due = self.store.kept.wants_snapshot();
        if is_due && !self.is_due_told {
            self.say(Stored::SnapshotDue);
        }
        self.is_due_told = is_due;
    }

    /// Checks the folder, and reports a change of its contents.
    fn look(&mut self) {
        if let Err(error) = self.store.kept.check() {
            self.say(Stored::Failed(error));
        }
        if let Some(finished) = self.store.kept.finished_snapshot() {
            self.has_news = true;
            self.say(finished.map_or_else(Stored::NoSnapshot, Stored::Snapshot));
        }
        self.tell_due();
        if std::mem::take(&mut self.has_news) {
            let footprint = self.store.footprint();
            if self.shown.as_ref() != Some(&footprint) {
                self.shown = Some(footprint.clone());
                self.say(Stored::Footprint(footprint));
            }
        }
    }

    /// Reports an event. Ignores a dropped receiver.
    fn say(&self, stored: Stored) {
        let _ = self.tell.send(stored);
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Write(_) => "Write",
            Self::Checkpoints(_) => "Checkpoints",
            Self::Do(_) => "Do",
            Self::Snapshot(_) => "Snapshot",
        })
    }
}
