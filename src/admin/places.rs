//! Limit on the number of connections that the endpoint serves at one listen address.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::task::AbortHandle;

/// Lock that is held while the daemon works on the request of a connection.
pub(super) type Busy = Arc<Mutex<()>>;

/// Connections to one listen address, in the order in which they were accepted. If no place is
/// free, a new connection takes the place of an idle one.
pub(super) struct Places {
    most: usize,
    taken: VecDeque<(AbortHandle, Busy)>,
}

impl Places {
    pub(super) fn new(most: usize) -> Self {
        Self { most, taken: VecDeque::new() }
    }

    /// Takes a place for a connection. If no place is free, ends the oldest idle connection. Only
    /// one check of items runs at a time, so at most one connection is busy.
    pub(super) fn take(&mut self, task: AbortHandle, busy: Busy) {
        self.taken.retain(|(task, _)| !task.is_finished());
        if self.taken.len() >= self.most {
            let idle = self.taken.iter().position(|(_, busy)| busy.try_lock().is_ok());
            if let Some((task, _)) = self.taken.remove(idle.unwrap_or(0)) {
                task.abort();
            }
        }
        self.taken.push_back((task, busy));
    }
}
