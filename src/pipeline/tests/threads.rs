//! Threads of the simulated daemon. The seed decides the order of their jobs.
//!
//! As soon as the runtime has nothing to do, tokio moves the paused clock to the next timer. Before
//! that, [`work`] does the jobs of the threads. It can leave some of them until after that timer.

use std::cell::RefCell;

use tokio::time::Instant;

use super::world::World;
use urlseen_engine::engine::Steps;
use urlseen_storage::{FolderRequest, Requests};

/// Threads of the daemon that runs.
struct Threads {
    steps: Steps,
    world: World,
    /// Requests to the disk, if there is a folder.
    requests: Option<Requests>,
    /// Number of the request that a hanging disk does not answer.
    hanging: Option<u64>,
}

thread_local! {
    static THREADS: RefCell<Option<Threads>> = const { RefCell::new(None) };
}

/// Takes over the threads of a daemon that starts.
pub(super) fn start(steps: Steps, requests: Option<Requests>, world: World) {
    THREADS.set(Some(Threads { steps, world, requests, hanging: None }));
}

/// Ends the threads. If the daemon was not killed, they do their last jobs before.
pub(super) fn end(is_killed: bool) {
    if let Some(Threads { mut steps, .. }) = THREADS.take()
        && !is_killed
    {
        while steps.judge() || steps.store() {}
    }
}

/// Does jobs until none is left, or until the seed decides that the remaining jobs wait.
pub(super) fn work() {
    THREADS.with_borrow_mut(|threads| {
        let Some(threads) = threads else { return };
        let has_disk = threads.has_disk();
        let Threads { steps, world, .. } = threads;
        while let Some(judges_first) = world.next_job() {
            let is_done = judges_first && steps.judge()
                || has_disk && steps.store()
                || !judges_first && steps.judge();
            if !is_done {
                return;
            }
            world.count();
        }
    });
}

/// Checks the folder, as the storage thread of a real daemon does several times a second.
pub(super) fn look() {
    THREADS.with_borrow_mut(|threads| {
        if let Some(threads) = threads
            && threads.has_disk()
        {
            threads.steps.look();
        }
    });
}

impl Threads {
    /// Returns true unless the disk hangs. Records the request that a hanging disk does not answer.
    fn has_disk(&mut self) -> bool {
        let has_disk = self.world.has_disk();
        let Some(requests) = &self.requests else { return has_disk };
        let now = Instant::now().into_std();
        match (has_disk, self.hanging) {
            (true, Some(number)) => {
                requests.answered(number, now);
                self.hanging = None;
            }
            (false, None) => {
                let request = FolderRequest { what: "a simulated request", since: now };
                self.hanging = Some(requests.note(request));
            }
            _ => {}
        }
        has_disk
    }
}
