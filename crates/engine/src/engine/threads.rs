//! Threads that read and judge, and the errors at their start and during their work.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Sender, unbounded};
use tokio::sync::oneshot;

use super::queue::Queue;
use urlseen_filter::{BuildError, Full};

/// Entry of the line from which threads take work.
pub(super) enum Work {
    /// Queue of a filter that has work.
    Queue(Arc<Queue>),
    /// Work of a task that must not be held up.
    Job(Box<dyn FnOnce() + Send>),
}

/// Threads that any number of engines share. Each thread takes the next queue that has work, from
/// any engine. The threads end when the engines and the clones of this value are gone.
#[derive(Debug, Clone)]
pub struct Threads {
    /// Work that waits for a thread. A queue stands there at most once for each thread and each
    /// task that uses its judge, and a task has at most one job there.
    pub(super) line: Sender<Work>,
    /// Number of threads; 0 if a simulation does the work.
    pub(super) count: usize,
}

impl Threads {
    /// Maximum number of threads.
    pub const MAX: usize = 64;

    /// Starts `count` threads, or as many as there are processors if `count` is 0, but at most
    /// [`Self::MAX`].
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(count: usize) -> Result<Self, StartError> {
        let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let count = count_of(count, processors);
        let (line, works) = unbounded::<Work>();
        for number in 0..count {
            let works = works.clone();
            let life = move || {
                for work in works {
                    work.begin();
                }
            };
            let thread = thread::Builder::new().name(format!("filter-{number}"));
            thread.spawn(life).map_err(StartError::Thread)?;
        }
        Ok(Self { line, count })
    }

    /// Runs `job` on the next free thread, and waits for its result.
    ///
    /// # Errors
    /// The job panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, EngineError> {
        let (reply, replied) = oneshot::channel();
        let job = move || drop(reply.send(job()));
        let _ = self.line.send(Work::Job(Box::new(job)));
        replied.await.map_err(|_| EngineError::Panicked)
    }

    /// Returns no threads: a simulation does the work.
    #[cfg(feature = "simulation")]
    pub fn none() -> Self {
        Self { line: unbounded().0, count: 0 }
    }
}

impl Work {
    /// Does some of the work. Returns true if there was any. A panic of a job ends only the job.
    pub(super) fn begin(self) -> bool {
        match self {
            Self::Queue(queue) => queue.turn(),
            Self::Job(job) => catch_unwind(AssertUnwindSafe(job)).is_ok(),
        }
    }
}

/// Returns the number of threads to start if `wanted` threads are wanted.
fn count_of(wanted: usize, processors: usize) -> usize {
    if wanted == 0 { processors } else { wanted }.min(Threads::MAX)
}

/// Reason why an engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The filter cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A thread could not be started.
    #[error("no thread could be started: {0}; is the limit on processes (ulimit -u) too low?")]
    Thread(std::io::Error),
}

/// Reason why an engine cannot continue.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EngineError {
    /// A reader or the judge panicked. The filter may be wrong.
    #[error(
        "a filter thread panicked (see its message above). Items that were not committed stay \
         where they are. Start again, and please report the message"
    )]
    Panicked,
    /// The thread of the storage folder panicked.
    #[error(
        "the thread of the storage folder panicked (see its message above). Start again, and \
         please report the message"
    )]
    StoragePanicked,
    /// The filter has no room for the unseen keys of a batch. Nothing of the batch is committed.
    #[error("{0}; items that were not committed stay where they are")]
    Full(Full),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_as_many_as_processors_unless_set() {
        assert_eq!([1, 2, 8, 256].map(|processors| count_of(0, processors)), [1, 2, 8, 64]);
        assert_eq!([1, 5, 64].map(|wanted| count_of(wanted, 2)), [1, 5, 64]);
    }
}
