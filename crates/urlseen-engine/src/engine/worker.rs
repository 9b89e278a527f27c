//! Worker: an owner of shards, and the loop that does its jobs.

use std::sync::Arc;

use crossbeam_channel::{Receiver, select_biased};
use tokio::sync::mpsc;

use super::owner::{Done, Job, Owner, Read};
use urlseen_core::filter::{BuildError, Gauge};

/// Builds a worker, and the gauge of its part of the filter. The thread of the worker calls this
/// function, so that each thread maps the memory of its own shards.
pub(super) type BuildWorker =
    Box<dyn FnOnce() -> Result<(Worker, Arc<dyn Gauge>), BuildError> + Send>;

/// An owner of shards, and its jobs.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) owner: Owner,
    pub(super) todo: Receiver<Job>,
    pub(super) to_read: Receiver<Read>,
}

impl Worker {
    /// Does the jobs until the engine ends the thread.
    pub(super) fn run(mut self) {
        /// Reports a panic of the thread to the engine.
        struct Obituary(mpsc::UnboundedSender<Done>);
        impl Drop for Obituary {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    let _ = self.0.send(Done::Engine);
                }
            }
        }
        let _obituary = Obituary(self.owner.tell.clone());
        loop {
            // Judging has priority over reading. The items to judge have been read, so they have
            // waited longer.
            select_biased! {
                recv(self.todo) -> job => match job {
                    Ok(Job::End) | Err(_) => return,
                    Ok(job) => self.owner.work(job),
                },
                recv(self.to_read) -> read => match read {
                    Ok(read) => self.owner.read(read),
                    Err(_) => return,
                },
            }
        }
    }
}
