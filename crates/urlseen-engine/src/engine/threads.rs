//! Threads that read and judge.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Sender, unbounded};

use super::StartError;
use super::queue::Queue;
use crate::config::THREADS_MAX;

/// Threads that any number of engines share. Each thread takes the next queue that has work, from
/// any engine. The threads end when the engines and the clones of this value are gone.
#[derive(Debug, Clone)]
pub struct Threads {
    /// Queues that wait for a thread. A queue stands there at most once for each thread and each
    /// task that uses its judge.
    pub(super) line: Sender<Arc<Queue>>,
    /// Number of threads; 0 if a simulation does the work.
    pub(super) count: usize,
}

impl Threads {
    /// Starts `count` threads, or as many as there are processors if `count` is 0, but at most 64.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(count: usize) -> Result<Self, StartError> {
        let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let count = count_of(count, processors);
        let (line, queues) = unbounded::<Arc<Queue>>();
        for number in 0..count {
            let queues = queues.clone();
            let life = move || {
                for queue in queues {
                    queue.turn();
                }
            };
            let thread = thread::Builder::new().name(format!("filter-{number}"));
            thread.spawn(life).map_err(StartError::Thread)?;
        }
        Ok(Self { line, count })
    }

    /// Returns no threads: a simulation does the work.
    #[cfg(feature = "simulation")]
    pub fn none() -> Self {
        Self { line: unbounded().0, count: 0 }
    }
}

/// Returns the number of threads to start if `wanted` threads are wanted.
fn count_of(wanted: usize, processors: usize) -> usize {
    if wanted == 0 { processors } else { wanted }.min(THREADS_MAX)
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
