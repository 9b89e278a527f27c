//! Engine and folder without threads, for a simulation: the caller does their work, step by step.

use crossbeam_channel::{Receiver, unbounded};

use super::query::QueryDispatcher;
use super::store::{Local, Storage, StorageThread};
use super::threads::Work;
use super::{Clocks, Engine, Parts, StartError, Threads, Works};

/// Work of an engine and of its folder. A simulation decides when each step is done.
#[derive(Debug)]
pub struct Steps {
    line: Receiver<Work>,
    thread: Option<StorageThread>,
}

impl Engine {
    /// Makes an engine without threads, with simulated clocks. [`Local::step`] returns its work.
    ///
    /// # Errors
    /// The filter cannot be built.
    pub fn stepped(parts: &Parts, clocks: Clocks) -> Result<Self, StartError> {
        let (line, stepped) = unbounded();
        let threads = Threads { line, count: 0 };
        let mut engine = Self::start(&Parts { threads, ..parts.clone() })?;
        (engine.clocks, engine.stepped) = (clocks, Some(stepped));
        Ok(engine)
    }
}

impl Local {
    /// Starts the work of an [`Engine::stepped`], like [`Local::work`]. Returns the work of the
    /// engine and of the folder, which get no thread.
    ///
    /// # Panics
    /// If the engine has threads.
    pub fn step(mut self, dispatcher: QueryDispatcher) -> (Works, Steps) {
        let (storage, thread) = self.store.map(Storage::new).unzip();
        let line = self.engine.stepped.take().expect("the engine has no threads");
        (Works::new(self.engine, storage, dispatcher), Steps { line, thread })
    }
}

impl Steps {
    /// Reads a part of a batch, or does a step of the judge. Returns false if there is nothing to
    /// do.
    pub fn judge(&self) -> bool {
        self.line.try_iter().any(Work::begin)
    }

    /// Does the jobs that wait for the folder. The writes of these jobs share a sync. Returns false
    /// if no job waits.
    pub fn store(&mut self) -> bool {
        self.thread.as_mut().is_some_and(StorageThread::step)
    }

    /// Checks the folder, as its thread does several times a second.
    pub fn look(&mut self) {
        if let Some(thread) = &mut self.thread {
            thread.look();
        }
    }
}

impl StorageThread {
    /// Does the waiting jobs. Returns false if there are no jobs.
    fn step(&mut self) -> bool {
        let Ok(job) = self.todo.try_recv() else { return false };
        self.work(job);
        true
    }
}
