//! Engine and folder without threads, for a simulation: the caller does their jobs, one by one.

use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_channel::Receiver;

use super::Works;
use super::owner::{Job, Owner, Read};
use super::store::StorageSteps;

/// Jobs of an engine and of its folder. A simulation decides when each of them is done.
#[derive(Debug)]
pub struct Steps {
    owner: OwnerSteps,
    storage: Option<StorageSteps>,
}

/// An owner without a thread, and its jobs. Clones are the same owner.
#[derive(Debug, Clone)]
pub(super) struct OwnerSteps(Arc<Mutex<Seat>>);

#[derive(Debug)]
struct Seat {
    owner: Owner,
    todo: Receiver<Job>,
    to_read: Receiver<Read>,
}

impl OwnerSteps {
    pub(super) fn new(owner: Owner, todo: Receiver<Job>, to_read: Receiver<Read>) -> Self {
        Self(Arc::new(Mutex::new(Seat { owner, todo, to_read })))
    }

    /// Does the oldest job. Returns false if there is no job.
    fn step(&self) -> bool {
        let mut seat = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Judging has priority, as on a thread.
        if let Ok(job) = seat.todo.try_recv() {
            if !matches!(job, Job::End) {
                seat.owner.work(job);
            }
            return true;
        }
        let read = seat.to_read.try_recv();
        let is_there = read.is_ok();
        if let Ok(read) = read {
            seat.owner.read(read);
        }
        is_there
    }

    /// Does all waiting jobs of the owner.
    pub(super) fn finish(&self) {
        while self.step() {}
    }
}

impl Steps {
    /// Does the oldest job of the engine. Returns false if the engine has no job.
    pub fn judge(&self) -> bool {
        self.owner.step()
    }

    /// Does the jobs that wait for the folder. The writes of these jobs share a sync. Returns false
    /// if no job waits.
    pub fn store(&mut self) -> bool {
        self.storage.as_mut().is_some_and(StorageSteps::step)
    }

    /// Checks the folder, as its thread does several times a second.
    pub fn look(&mut self) {
        if let Some(storage) = &mut self.storage {
            storage.look();
        }
    }
}

impl Works {
    /// Returns the jobs of an engine without threads, once.
    pub fn steps(&mut self) -> Option<Steps> {
        let owner = self.engine.handle.stepped.clone()?;
        let storage = self.storage.as_mut().and_then(super::store::Storage::take_steps);
        Some(Steps { owner, storage })
    }
}
