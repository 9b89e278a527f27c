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
    jobs: Receiver<Job>,
    reads: Receiver<Job>,
    /// Part of a batch that is read when no other job is left.
    read: Option<Job>,
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
    /// Makes the receiving end of two queues.
    pub(super) fn new(jobs: Receiver<Job>, reads: Receiver<Job>) -> Self {
        Self { jobs, reads, read: None }
    }

    /// Takes the next job. Judging has priority over reading: items to judge were read before, so
    /// they have waited longer.
    pub(super) fn next(&mut self) -> Option<Job> {
        // The part is taken before the look at the other jobs. So all jobs that were given before
        // the part are seen, and done first.
        self.read = self.read.take().or_else(|| self.reads.try_recv().ok());
        self.jobs.try_recv().ok().or_else(|| self.read.take())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.reads.is_empty() && self.read.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use crossbeam_channel::bounded;

    use super::super::progress::Progress;
    use super::super::tests::batch;
    use super::*;

    const ROUNDS: usize = 200_000;

    /// A batch that is read before an earlier abort would be judged with the aborted keys.
    #[test]
    fn a_part_is_read_after_the_jobs_that_were_given_before_it() {
        let ((jobs, todo), (reads, to_read)) = (bounded(1), bounded(1));
        let progress = Arc::new(Progress::new(0, batch(&[]), 1, 1, false));
        thread::scope(|scope| {
            let mut inbox = Inbox::new(todo, to_read);
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    jobs.send(Job::Abort).unwrap();
                    reads.send(Job::Read { progress: Arc::clone(&progress), part: 0 }).unwrap();
                }
            });
            let (mut aborts, mut parts) = (0, 0);
            while parts < ROUNDS {
                match inbox.next() {
                    Some(Job::Abort) => aborts += 1,
                    Some(_) => parts += 1,
                    None => {}
                }
                assert!(parts <= aborts, "part {parts} overtook an abort");
            }
            assert!(inbox.is_empty());
        });
    }
}
