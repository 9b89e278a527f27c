//! Threads that do the jobs of owners.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Sender, unbounded};

use super::StartError;
use super::worker::Worker;
use crate::config::THREADS_MAX;

/// Threads that any number of engines share. Each thread takes the next worker that has jobs, from
/// any engine. The threads end when the engines and the clones of this value are gone.
#[derive(Debug, Clone)]
pub struct Threads {
    /// Workers that have jobs, and are waiting for a thread.
    pub(super) due: Sender<Arc<Worker>>,
    /// Number of owners to which an engine gives its shards.
    pub(super) owners: usize,
}

impl Threads {
    /// Starts `count` threads, or as many as there are processors if `count` is 0, but at most 64.
    /// The shards of an engine have as many owners.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(count: usize) -> Result<Self, StartError> {
        let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let count = count_of(count, processors);
        let (due, workers) = unbounded::<Arc<Worker>>();
        for number in 0..count {
            let workers = workers.clone();
            let life = move || workers.iter().for_each(|worker| worker.run());
            let thread = thread::Builder::new().name(format!("filter-{number}"));
            thread.spawn(life).map_err(StartError::Thread)?;
        }
        Ok(Self { due, owners: count })
    }

    /// Returns the same threads for one of several engines that work at the same time. The engines
    /// together have about as many owners as there are threads.
    #[must_use]
    pub fn for_one_of(&self, engines: usize) -> Self {
        Self { owners: (self.owners / engines).max(1), ..self.clone() }
    }

    /// Returns no threads: a simulation does the jobs.
    #[cfg(feature = "simulation")]
    pub fn none() -> Self {
        Self { due: unbounded().0, owners: 1 }
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

    #[test]
    fn engines_share_the_threads_equally_and_each_has_an_owner() {
        let threads = Threads::start(4).unwrap();
        assert_eq!([1, 2, 3, 4, 64].map(|it| threads.for_one_of(it).owners), [4, 2, 1, 1, 1]);
    }
}
