//! Thread of a folder, which writes the log. Only this thread waits for the disk.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::{Footprint, Reach, Store};
use crate::engine::question::Answers;
use crate::engine::{BATCHES_MAX, EngineError, Event, GROUPS_MAX};
use crate::item::batch::{Batch, Judged};
use urlseen_filter::Generation;
use urlseen_filter::Lifetimes;
use urlseen_fingerprint::Fingerprint;
use urlseen_storage::{Change, Checkpoint, Logged, Requests, Timing};

/// Time between two checks of the folder.
const LOOK: Duration = Duration::from_secs(1);

/// Maximum number of records that share a sync.
const GROUP: usize = BATCHES_MAX + GROUPS_MAX;

/// Handle of the thread that has the folder of a filter. The thread does its jobs in order.
#[derive(Debug)]
pub struct Storage {
    /// Path of the storage folder.
    pub dir: PathBuf,
    /// Requests to the folder's disk that are still without an answer.
    pub requests: Requests,
    /// Times that the clocks showed at the start of the last run.
    pub(in crate::engine) timing: Option<Timing>,
    jobs: Option<Sender<Job>>,
    stored: mpsc::UnboundedReceiver<Stored>,
    /// Number of batches that are not written yet.
    pub(in crate::engine) batches: usize,
    thread: Option<JoinHandle<Store>>,
}

/// Event of the folder's thread.
#[derive(Debug)]
pub enum Stored {
    /// Event that the thread itself tells the task.
    Told(Event),
    /// The log has the new keys of a batch that belongs to no crawl, and ends here.
    Added(Logged),
    /// The log has the changes of these answers, and ends here.
    Answers(Answers, Logged),
    /// The log has the start of a generation.
    Generation(Generation),
    /// The log can no longer be written, or the next start would not find the log.
    Failed(io::Error),
}

/// Entry that is to be written to the log.
#[derive(Debug)]
pub(in crate::engine) enum Write {
    /// A batch of the crawl, which follows the last logged batch.
    Batch(Batch<Judged>),
    /// The new keys of a batch that belongs to no crawl.
    Keys(Batch<Judged>),
    /// Answers to questions, and their changes in order. The changes do not depend on commits.
    Changes(Answers, Vec<(Change, Fingerprint)>),
    /// Start of a generation, to which all later entries belong.
    Generation(Generation),
}

/// Job of the folder's thread.
pub(in crate::engine) enum Job {
    Write(Box<Write>),
    Do(Box<dyn FnOnce(&mut StorageThread) + Send>),
}

impl Storage {
    /// Starts the thread of a folder.
    pub(super) fn start(store: Store) -> io::Result<Self> {
        let (mut storage, worker) = Self::new(store);
        let thread = std::thread::Builder::new().name("storage".to_owned());
        storage.thread = Some(thread.spawn(move || worker.run())?);
        Ok(storage)
    }

    /// Returns the handle of a thread that is not started yet, and the state of that thread.
    pub(in crate::engine) fn new(store: Store) -> (Self, StorageThread) {
        let (jobs, todo) = channel();
        let (tell, stored) = mpsc::unbounded_channel();
        let folder = &store.kept.folder;
        let storage = Self {
            dir: folder.dir().to_owned(),
            requests: folder.requests().clone(),
            timing: folder.notes.timing,
            jobs: Some(jobs),
            stored,
            batches: 0,
            thread: None,
        };
        (
            storage,
            StorageThread { store, todo, tell, shown: None, has_news: true, is_due_told: false },
        )
    }

    /// Writes to the log, after all earlier writes. An event tells when the log has it.
    pub(in crate::engine) fn write(&mut self, write: Write) {
        self.batches += usize::from(matches!(write, Write::Batch(_) | Write::Keys(_)));
        self.tell(Job::Write(Box::new(write)));
    }

    /// Records the progress of imports, after all earlier writes are on the disk.
    pub(crate) fn record_checkpoints(&self, checkpoints: Vec<Checkpoint>) {
        self.work(move |worker| {
            if let Err(error) = worker.store.record_checkpoints(&checkpoints) {
                worker.say(Stored::Failed(error));
            }
        });
    }

    /// Begins a snapshot, if it is time for one.
    pub fn begin_snapshot(&self, reach: Reach) {
        self.work(move |worker| worker.begin_snapshot(reach));
    }

    /// Runs `work` on the thread, after all earlier jobs. The thread runs it even if the future is
    /// dropped.
    pub fn call<T, Work>(
        &self,
        work: Work,
    ) -> impl Future<Output = Result<T, EngineError>> + use<T, Work>
    where
        T: Send + 'static,
        Work: FnOnce(&mut Store) -> T + Send + 'static,
    {
        let (tell, told) = oneshot::channel();
        self.work(move |worker| drop(tell.send(work(&mut worker.store))));
        async { told.await.map_err(|_| EngineError::StoragePanicked) }
    }

    /// Returns the next event. Nothing is lost when the future is dropped.
    pub(crate) async fn stored(&mut self) -> Result<Stored, EngineError> {
        let stored = self.stored.recv().await.ok_or(EngineError::StoragePanicked)?;
        let is_batch = matches!(stored, Stored::Told(Event::Ready(_)) | Stored::Added(_));
        self.batches -= usize::from(is_batch);
        Ok(stored)
    }

    fn work(&self, work: impl FnOnce(&mut StorageThread) + Send + 'static) {
        self.tell(Job::Do(Box::new(work)));
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

impl Store {
    /// Writes batches and changes to the log, in their order. When the call returns, all of them
    /// are written, and are on the disk if the policy demands a sync.
    fn write(&mut self, writes: Vec<Write>) -> io::Result<Vec<Stored>> {
        let mut group = self.kept.journal()?.group();
        let mut ends = Vec::new();
        for write in &writes {
            match write {
                Write::Batch(batch) => {
                    self.at = None;
                    let found = &batch.findings;
                    group.append(&found.added, &found.lifetimes, &found.counted)?;
                }
                Write::Keys(batch) => {
                    let found = &batch.findings;
                    group.change(Change::Add, &found.added, &found.lifetimes)?;
                }
                Write::Changes(_, changes) => {
                    for run in changes.chunk_by(|(one, _), (next, _)| one == next) {
                        let fingerprints: Vec<_> = run.iter().map(|(_, it)| it.clone()).collect();
                        group.change(run[0].0, &fingerprints, &Lifetimes::default())?;
                    }
                }
                Write::Generation(generation) => group.begin_generation(*generation)?,
            }
            ends.push(group.logged());
        }
        let mut records = group.finish()?.into_iter();
        let stored = writes.into_iter().zip(ends).map(|(write, end)| match write {
            Write::Batch(batch) => {
                let record = records.next().expect("a record for each batch");
                Stored::Told(Event::Ready(batch.logged(&record)))
            }
            Write::Keys(_) => Stored::Added(end),
            Write::Changes(answers, _) => Stored::Answers(answers, end),
            Write::Generation(generation) => Stored::Generation(generation),
        });
        Ok(stored.collect())
    }
}

/// State of the folder's thread.
#[derive(Debug)]
pub(in crate::engine) struct StorageThread {
    store: Store,
    pub(in crate::engine) todo: Receiver<Job>,
    tell: mpsc::UnboundedSender<Stored>,
    /// Last report about the contents of the folder.
    shown: Option<Footprint>,
    /// True if the folder may have changed since the last report.
    has_news: bool,
    /// True if the thread has reported that it is time for a snapshot.
    is_due_told: bool,
}

impl StorageThread {
    /// Does the jobs until the handle is dropped.
    fn run(mut self) -> Store {
        let mut look = Instant::now() + LOOK;
        loop {
            // This channel does not spin before it waits. Crossbeam's channels do, which takes
            // processor time from other threads.
            match self.todo.recv_timeout(look.saturating_duration_since(Instant::now())) {
                Ok(job) => self.work(job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.store,
            }
            if look <= Instant::now() {
                self.look();
                look = Instant::now() + LOOK;
            }
        }
    }

    /// Does a job, and then the jobs that already wait. Consecutive write jobs share a sync.
    pub(in crate::engine) fn work(&mut self, first: Job) {
        let (mut writes, mut next) = (Vec::new(), Some(first));
        while let Some(job) = next.take() {
            match job {
                Job::Write(write) => writes.push(*write),
                Job::Do(work) => {
                    self.write(std::mem::take(&mut writes));
                    work(self);
                }
            }
            if writes.len() < GROUP {
                next = self.todo.try_recv().ok();
            }
        }
        self.write(writes);
    }

    fn write(&mut self, writes: Vec<Write>) {
        self.has_news = true;
        if writes.is_empty() {
            return;
        }
        match self.store.write(writes) {
            Ok(stored) => stored.into_iter().for_each(|stored| self.say(stored)),
            Err(error) => self.say(Stored::Failed(error)),
        }
        self.tell_due();
    }

    fn begin_snapshot(&mut self, reach: Reach) {
        // If it does not begin now, it is reported again, even if it is due again at the next look.
        self.is_due_told = false;
        if let Err(error) = self.store.begin_due_snapshot(reach) {
            self.say(Stored::Told(Event::Snapshot(Err(error))));
        }
    }

    /// Reports once that a snapshot is due.
    fn tell_due(&mut self) {
        let is_due = self.store.kept.wants_snapshot();
        if is_due && !self.is_due_told {
            self.say(Stored::Told(Event::SnapshotDue));
        }
        self.is_due_told = is_due;
    }

    /// Checks the folder, and reports a change of its contents.
    pub(in crate::engine) fn look(&mut self) {
        // Before a recovery, there is no log to check.
        if let Ok(journal) = self.store.kept.journal()
            && let Err(error) = journal.check()
        {
            self.say(Stored::Failed(error));
        }
        if let Some(finished) = self.store.kept.ended_snapshot(false) {
            self.has_news = true;
            self.say(Stored::Told(Event::Snapshot(finished)));
        }
        self.tell_due();
        if std::mem::take(&mut self.has_news) {
            let footprint = self.store.kept.footprint();
            if self.shown.as_ref() != Some(&footprint) {
                self.shown = Some(footprint.clone());
                self.say(Stored::Told(Event::Footprint(footprint)));
            }
        }
    }

    /// Reports an event. Ignores a dropped receiver.
    fn say(&self, stored: Stored) {
        let _ = self.tell.send(stored);
    }
}
