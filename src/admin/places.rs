//! Places for the connections that are served at the same time at an address.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::AbortHandle;

/// Flag that is set while the daemon works on the request of a connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Busy(Arc<AtomicBool>);

/// Guard that keeps a connection busy until it is dropped.
pub(super) struct Working<'a>(&'a Busy);

impl Busy {
    pub(super) fn begin(&self) -> Working<'_> {
        self.0.store(true, Ordering::Relaxed);
        Working(self)
    }

    fn is_busy(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Relaxed);
    }
}

/// Connections in the order in which they were accepted. All except the busy ones wait for their
/// client, and such a connection gives its place to a new one.
pub(super) struct Places {
    most: usize,
    taken: VecDeque<(AbortHandle, Busy)>,
}

impl Places {
    pub(super) fn new(most: usize) -> Self {
        Self { most, taken: VecDeque::new() }
    }

    /// Takes a place for a connection. If all are taken, ends the oldest idle connection. Only one
    /// check runs at a time, so at most one connection is busy.
    pub(super) fn take(&mut self, task: AbortHandle, busy: Busy) {
        self.taken.retain(|(task, _)| !task.is_finished());
        if self.taken.len() >= self.most {
            let idle = self.taken.iter().position(|(_, busy)| !busy.is_busy());
            if let Some((task, _)) = self.taken.remove(idle.unwrap_or(0)) {
                task.abort();
            }
        }
        self.taken.push_back((task, busy));
    }
}
