//! Engine and folder without threads, for a simulation: the caller does their jobs, one by one.

use std::sync::{Arc, Mutex, PoisonError};

use super::owner::Job;
use super::query::QueryDispatcher;
use super::store::{Keeper, Local, Storage};
use super::worker::Worker;
use super::{Engine, Parts, StartError, Works};

/// Jobs of an engine and of its folder. A simulation decides when each job is done.
#[derive(Debug)]
pub struct Steps {
    worker: SharedWorker,
    keeper: Option<Keeper>,
}

/// The only worker of an engine without threads. Clones are the same worker.
#[derive(Debug, Clone)]
pub(super) struct SharedWorker(Arc<Mutex<Worker>>);

impl SharedWorker {
    /// Does the oldest job. Returns false if there is no job.
    fn step(&self) -> bool {
        let mut worker = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Judging has priority, as on a thread.
        if let Ok(job) = worker.todo.try_recv() {
            if !matches!(job, Job::End) {
                worker.owner.work(job);
            }
            return true;
        }
        let read = worker.to_read.try_recv();
        let is_there = read.is_ok();
        if let Ok(read) = read {
            worker.owner.read(read);
        }
        is_there
    }

    /// Does all waiting jobs.
    pub(super) fn finish(&self) {
        while self.step() {}
    }
}

impl Engine {
    /// Makes an engine without threads. [`Local::step`] returns its jobs.
    ///
    /// # Errors
    /// The filter cannot be built.
    pub fn stepped(parts: Parts) -> Result<Self, StartError> {
        // The caller does the jobs, so it cannot wait for room in the queue.
        let parts = Parts { threads: 1, ..parts };
        let (mut engine, workers) = Self::prepare(&parts, crossbeam_channel::unbounded);
        for build in workers {
            let (worker, gauge) = build()?;
            engine.handle.stepped = Some(SharedWorker(Arc::new(Mutex::new(worker))));
            engine.show(vec![gauge]);
        }
        Ok(engine)
    }
}

impl Local {
    /// Starts the work of an [`Engine::stepped`], like [`Local::work`]. Returns the jobs of the
    /// engine and of the folder, which get no thread.
    ///
    /// # Panics
    /// If the engine has threads.
    pub fn step(self, dispatcher: QueryDispatcher) -> (Works, Steps) {
        let (storage, keeper) = self.store.map(Storage::new).unzip();
        let worker = self.engine.handle.stepped.clone().expect("the engine has no threads");
        (Works::new(self.engine, storage, dispatcher), Steps { worker, keeper })
    }
}

impl Steps {
    /// Does the oldest job of the engine. Returns false if the engine has no job.
    pub fn judge(&self) -> bool {
        self.worker.step()
    }

    /// Does the jobs that wait for the folder. The writes of these jobs share a sync. Returns false
    /// if no job waits.
    pub fn store(&mut self) -> bool {
        self.keeper.as_mut().is_some_and(Keeper::step)
    }

    /// Checks the folder, as its thread does several times a second.
    pub fn look(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            keeper.look();
        }
    }
}

impl Keeper {
    /// Does the waiting jobs. Returns false if there are no jobs.
    fn step(&mut self) -> bool {
        let Ok(job) = self.todo.try_recv() else { return false };
        self.work(job);
        true
    }
}
