//! Keeps the simulated clock from running ahead of the daemon's threads.
//!
//! As soon as the runtime has nothing to do, tokio moves a paused clock to the next timer. Before
//! that, the threads of the filter and of the folder must finish their jobs.

use std::cell::RefCell;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::thread;

thread_local! {
    /// Files with the states of the daemon's threads, provided by the system.
    static THREADS: RefCell<Vec<File>> = const { RefCell::new(Vec::new()) };
}

/// Starts a daemon, and finds the threads that it started.
pub(super) fn track<T>(start: impl FnOnce() -> T) -> T {
    let before = tasks();
    let started = start();
    let ours = tasks().into_iter().filter(|task| !before.contains(task));
    let states = ours.filter_map(|task| File::open(task.join("stat")).ok()).collect();
    THREADS.with_borrow_mut(|threads| *threads = states);
    started
}

/// Lists the threads of this process.
fn tasks() -> Vec<PathBuf> {
    let tasks = fs::read_dir("/proc/self/task").expect("a list of threads");
    tasks.filter_map(|task| Some(task.ok()?.path())).collect()
}

/// Waits until all threads sleep. It checks twice, because one thread may wake another.
pub(super) fn wait() {
    let mut quiet = 0;
    while quiet < 2 {
        if THREADS.with_borrow(|threads| threads.iter().all(sleeps)) {
            quiet += 1;
        } else {
            quiet = 0;
            thread::yield_now();
        }
    }
}

/// Returns true if a thread sleeps or has ended.
fn sleeps(stat: &File) -> bool {
    let mut bytes = [0; 64];
    let Ok(len) = stat.read_at(&mut bytes, 0) else { return true };
    let state =
        bytes[..len].iter().rposition(|&byte| byte == b')').and_then(|at| bytes.get(at + 2));
    !matches!(state, Some(b'R' | b'D'))
}
