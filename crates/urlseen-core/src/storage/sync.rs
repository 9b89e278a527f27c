//! Seeing to it that the log is on the disk: before each commit, each second, or for a snapshot.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender};

use super::disk::{DiskDir, DiskFile};
use super::lock::Shared;
use super::requests::Requests;

/// How often a log is synced that is synced at intervals.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);

/// What other threads may do with the log: see to it that it is on the disk.
#[derive(Debug, Clone)]
pub struct LogHandle(Arc<Unsynced>);

impl LogHandle {
    pub(super) fn new(unsynced: &Arc<Unsynced>) -> Self {
        Self(Arc::clone(unsynced))
    }

    /// The log is on the disk at least up to record `number` when this returns.
    pub(crate) fn sync_to(&self, number: u64) -> io::Result<()> {
        self.0.sync_to(number)
    }
}

/// What of a log may not be on the disk yet. Nobody waits for the state's lock longer than it takes
/// to look: it is not held while the disk works.
#[derive(Debug)]
pub(super) struct Unsynced {
    /// Open as long as the log is: what was written must not wait for a file descriptor.
    dir: Box<dyn DiskDir>,
    shared: Arc<Shared>,
    requests: Requests,
    state: Mutex<State>,
    /// Held while the disk works, so that it is asked once for all who wait.
    turn: Mutex<()>,
    /// The first failure. What a disk failed to take it may forget, and claim to have later on; so
    /// from then on nothing is written any more.
    failure: OnceLock<String>,
}

#[derive(Debug)]
struct State {
    /// The number of the last record that was written, and the last known to be on the disk.
    written: u64,
    synced: u64,
    /// Files that may have more in memory than on the disk, oldest first; the last is written to.
    files: Vec<Arc<dyn DiskFile>>,
    /// How many files were made, and how many of those the directory has on the disk.
    made: u64,
    made_synced: u64,
}

impl Unsynced {
    /// A log that is on the disk up to record `number`, and goes on in `file`.
    pub(super) fn new(
        dir: Box<dyn DiskDir>,
        shared: Arc<Shared>,
        requests: Requests,
        number: u64,
        file: &Arc<dyn DiskFile>,
    ) -> Self {
        let files = vec![Arc::clone(file)];
        // Whether the file was made just now is not known here.
        let (made, made_synced) = (1, 0);
        let state = State { written: number, synced: number, files, made, made_synced };
        let (turn, failure) = (Mutex::default(), OnceLock::new());
        Self { dir, shared, requests, state: Mutex::new(state), turn, failure }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails if anything failed before.
    pub(super) fn check(&self) -> io::Result<()> {
        self.failure.get().map_or(Ok(()), |failure| {
            Err(io::Error::other(format!(
                "nothing is written to the log any more since this failed: {failure}; start again"
            )))
        })
    }

    /// From now on, nothing is written any more.
    pub(super) fn poison(&self, error: &io::Error) {
        let _ = self.failure.set(error.to_string());
    }

    /// The same, for a result that may be a failure.
    pub(super) fn poison_if<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|error| self.poison(error))
    }

    /// Record `number` was written.
    pub(super) fn wrote(&self, number: u64) {
        self.state().written = number;
    }

    /// The log goes on in a new file.
    pub(super) fn rolled(&self, file: &Arc<dyn DiskFile>) {
        let mut state = self.state();
        state.files.push(Arc::clone(file));
        state.made += 1;
    }

    /// Records behind `number` were cut off, on the disk; the log goes on in `file`.
    pub(super) fn cut(&self, number: u64, file: &Arc<dyn DiskFile>) {
        // Whoever is syncing would take what was cut for what comes in its place.
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.state();
        state.written = number;
        state.synced = state.synced.min(number);
        state.files.push(Arc::clone(file));
        state.made += 1;
    }

    /// All that was written when this was called is on the disk when it returns.
    pub(super) fn sync(&self) -> io::Result<()> {
        let written = self.state().written;
        self.sync_to(written)
    }

    /// The log is on the disk at least up to record `number` when this returns.
    pub(super) fn sync_to(&self, number: u64) -> io::Result<()> {
        self.check()?;
        if self.state().synced >= number {
            return Ok(());
        }
        let _answer = self.requests.begin("a sync of the log");
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever had the turn before may have failed, or done it.
        self.check()?;
        let (files, written, made, made_synced) = {
            let state = self.state();
            if state.synced >= number {
                return Ok(());
            }
            if state.written < number {
                let written = state.written;
                let missing = format!("the log has no record {number}, it ends with {written}");
                return Err(io::Error::other(missing));
            }
            (state.files.clone(), state.written, state.made, state.made_synced)
        };
        let work = || {
            files.iter().try_for_each(|file| file.sync())?;
            if made > made_synced {
                self.dir.sync()?;
            }
            // What is on the disk counts only where the next start finds it.
            self.shared.hold.check()
        };
        self.poison_if(work())?;
        let mut state = self.state();
        state.synced = written;
        state.made_synced = made;
        // Only the last of them can have been written to meanwhile.
        state.files.drain(..files.len() - 1);
        Ok(())
    }
}

/// A thread that syncs a log at intervals.
#[derive(Debug)]
pub(super) struct Syncing {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Syncing {
    pub(super) fn start(unsynced: Arc<Unsynced>, interval: Duration) -> io::Result<Self> {
        let (stop, stopped) = crossbeam_channel::bounded::<()>(0);
        let life = move || {
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                if unsynced.sync().is_err() {
                    // The next record is refused, with the reason.
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("log-sync".to_owned()).spawn(life)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Syncing {
    /// Returns true if the thread has ended: by a failed sync, or by a panic.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Syncing {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It does not panic, and if it did, its message was printed.
            let _ = thread.join();
        }
    }
}
