//! Worker: an owner of shards with its jobs, which any thread may do.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::Sender;

use super::mailbox::Inbox;
use super::owner::{Done, Job, Owner};

/// Maximum number of jobs that a thread does before other workers have their turn.
const TURN: usize = 8;

/// An owner of shards with its jobs. One thread at a time does the jobs.
#[derive(Debug)]
pub(super) struct Worker {
    /// The owner. `None` before its start, while it is lent, and after its end.
    desk: Mutex<Option<Desk>>,
    /// True from the time when the worker gets in line until a thread finds no more jobs.
    is_due: AtomicBool,
    /// Line of the workers that have jobs.
    due: Sender<Arc<Worker>>,
}

#[derive(Debug)]
struct Desk {
    owner: Box<Owner>,
    inbox: Inbox,
}

/// Result of one step of a worker.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The worker has done a job.
    Done,
    /// No job waits for the worker.
    Idle,
    /// The owner is lent or has ended.
    Away,
}

/// An owner that another thread uses. The owner does its jobs again when this value is dropped.
#[derive(Debug)]
pub(super) struct Lent {
    worker: Arc<Worker>,
    desk: Option<Desk>,
}

impl Worker {
    /// Makes a worker that lines up in `due`, and has no owner yet.
    pub(super) fn new(due: Sender<Arc<Self>>) -> Self {
        Self { desk: Mutex::default(), is_due: AtomicBool::new(false), due }
    }

    /// Gives the worker its owner.
    pub(super) fn begin(&self, owner: Owner, inbox: Inbox) {
        *self.desk() = Some(Desk { owner: Box::new(owner), inbox });
    }

    /// Lines up for a thread, unless the worker is already in line or at work.
    pub(super) fn call(self: &Arc<Self>) {
        if !self.is_due.swap(true, SeqCst) {
            self.line_up();
        }
    }

    fn line_up(self: &Arc<Self>) {
        // Without threads, a simulation does the jobs.
        let _ = self.due.send(Arc::clone(self));
    }

    /// Does some of the waiting jobs.
    pub(super) fn run(self: &Arc<Self>) {
        for _ in 0..TURN {
            match self.step() {
                Step::Done => {}
                // The owner has ended, or its borrower will line the worker up.
                Step::Away => return,
                Step::Idle => {
                    self.is_due.store(false, SeqCst);
                    // A job may have come after the last look, when the worker was still due.
                    if self.is_idle() || self.is_due.swap(true, SeqCst) {
                        return;
                    }
                }
            }
        }
        self.line_up();
    }

    /// Does the next job, on the thread of the caller.
    pub(super) fn step(self: &Arc<Self>) -> Step {
        let mut place = self.desk();
        let Some(Desk { owner, inbox }) = &mut *place else { return Step::Away };
        match inbox.next() {
            None => Step::Idle,
            Some(Job::End) => {
                *place = None;
                Step::Away
            }
            Some(Job::Lend { to }) => {
                let lent = Lent { worker: Arc::clone(self), desk: place.take() };
                drop(place);
                let _ = to.send(lent);
                Step::Away
            }
            Some(job) => {
                if catch_unwind(AssertUnwindSafe(|| owner.work(job))).is_err() {
                    let _ = owner.tell.send(Done::Engine);
                    *place = None;
                }
                Step::Done
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.desk().as_ref().is_none_or(|desk| desk.inbox.is_empty())
    }

    fn desk(&self) -> MutexGuard<'_, Option<Desk>> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lent {
    /// Gives access to the owner.
    pub(super) fn owner(&mut self) -> &mut Owner {
        &mut self.desk.as_mut().expect("only a drop takes the owner").owner
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        *self.worker.desk() = self.desk.take();
        self.worker.line_up();
    }
}
