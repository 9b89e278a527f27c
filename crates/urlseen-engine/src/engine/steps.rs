//! Engine and folder without threads, for a simulation: the caller does their jobs, one by one.

use std::sync::Arc;

use super::query::QueryDispatcher;
use super::store::{Keeper, Local, Storage};
use super::worker::{Step, Worker};
use super::{Engine, Parts, StartError, Works};
use urlseen_core::storage::Clocks;

/// Jobs of an engine and of its folder. A simulation decides when each job is done.
#[derive(Debug)]
pub struct Steps {
    worker: Arc<Worker>,
    keeper: Option<Keeper>,
}

impl Worker {
    /// Does all waiting jobs.
    pub(super) fn step_all(self: &Arc<Self>) {
        while self.step() == Step::Done {}
    }
}

impl Engine {
    /// Makes an engine without threads, with simulated clocks. [`Local::step`] returns its jobs.
    ///
    /// # Errors
    /// The filter cannot be built.
    pub fn stepped(parts: &Parts, clocks: fn() -> Clocks) -> Result<Self, StartError> {
        // The caller does the jobs, so it cannot wait for room in the queue.
        let mut engine = Self::with_inboxes(parts, crossbeam_channel::unbounded)?;
        engine.clocks = clocks;
        engine.handle.stepped = engine.handle.owners.first().map(|only| Arc::clone(&only.worker));
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
        self.worker.step() == Step::Done
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
