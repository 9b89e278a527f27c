//! Mailbox, through which all threads give jobs to an owner.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};

use super::owner::Job;
use super::worker::Worker;

/// Gives jobs to an owner. Clones lead to the same owner.
#[derive(Debug, Clone)]
pub(super) struct Mailbox {
    pub(super) jobs: Sender<Job>,
    /// Parts of batches to read. They wait until no other job is left.
    pub(super) reads: Sender<Job>,
    pub(super) worker: Arc<Worker>,
}

/// Receiving end of a mailbox.
#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) jobs: Receiver<Job>,
    pub(super) reads: Receiver<Job>,
}

impl Mailbox {
    /// Gives the owner a job. Waits while the owner has too many jobs. Returns `None` if the owner
    /// has ended; the engine reports that, too.
    pub(super) fn tell(&self, job: Job) -> Option<()> {
        let jobs = if matches!(job, Job::Read { .. }) { &self.reads } else { &self.jobs };
        jobs.send(job).ok()?;
        self.worker.call();
        Some(())
    }
}

impl Inbox {
    /// Takes the next job. Judging has priority over reading: items to judge were read before, so
    /// they have waited longer.
    pub(super) fn next(&self) -> Option<Job> {
        self.jobs.try_recv().or_else(|_| self.reads.try_recv()).ok()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.reads.is_empty()
    }
}
