//! Syncing of the log: before each commit, each second, or at the end of a snapshot.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender};

use super::disk::DiskFile;
use super::lock::Hold;
use super::requests::LOG_SYNC;

/// Time between two syncs at intervals.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);

/// Files of a log that may not be synced yet. No thread holds the lock of `state` while the disk
/// works.
#[derive(Debug)]
pub(super) struct Unsynced {
    pub(super) hold: Arc<Hold>,
    state: Mutex<SyncState>,
    /// Locked while the disk works, so that one sync serves all threads that wait.
    turn: Mutex<()>,
    /// First failure. After a failed sync, a disk may lose the data and still report success later.
    /// So the log takes no more records after the failure.
    failure: OnceLock<String>,
}

#[derive(Debug)]
pub(super) struct SyncState {
    /// Numbers of the last written record, and of the last record that is known to be on the disk.
    pub(super) written: u64,
    pub(super) synced: u64,
    /// Files that are possibly not synced yet, oldest first. The log appends to the last file.
    pub(super) files: Vec<Arc<dyn DiskFile>>,
    /// True if the name of the first file may not be synced yet. Those of the others are not.
    is_unnamed: bool,
}

impl Unsynced {
    /// Creates the state of a log that continues in `file`. Up to record `number`, the log is on
    /// the disk.
    pub(super) fn new(hold: Arc<Hold>, number: u64, file: &Arc<dyn DiskFile>) -> Self {
        let files = vec![Arc::clone(file)];
        // The file may be new, so the directory counts as not synced.
        let state = SyncState { written: number, synced: number, files, is_unnamed: true };
        let (turn, failure) = (Mutex::default(), OnceLock::new());
        Self { hold, state: Mutex::new(state), turn, failure }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, SyncState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the first failure as an error.
    pub(super) fn check(&self) -> io::Result<()> {
        self.failure.get().map_or(Ok(()), |failure| {
            Err(io::Error::other(format!(
                "the log takes no more records after this failure: {failure}; start again"
            )))
        })
    }

    /// Records the error of a result: the log takes no more records from then on.
    pub(super) fn poison_if<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|error| drop(self.failure.set(error.to_string())))
    }

    /// Notes that the disk has no records after `number` any more, and that the log continues in
    /// `file`.
    pub(super) fn cut(&self, number: u64, file: &Arc<dyn DiskFile>) {
        // This waits for a running sync. Otherwise that sync would count new records as synced,
        // because they reuse the numbers of records that were cut off.
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.state();
        state.written = number;
        state.synced = state.synced.min(number);
        state.files.push(Arc::clone(file));
    }

    /// Syncs all records written so far.
    pub(super) fn sync(&self) -> io::Result<()> {
        let written = self.state().written;
        self.sync_to(written)
    }

    /// Syncs the log at least up to record `number`.
    pub(super) fn sync_to(&self, number: u64) -> io::Result<()> {
        self.check()?;
        if self.state().synced >= number {
            return Ok(());
        }
        let _answer = self.hold.dir.requests().begin(LOG_SYNC);
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // The thread that had the turn before may have failed, or synced this record.
        self.check()?;
        let (files, written, is_unnamed) = {
            let state = self.state();
            if state.synced >= number {
                return Ok(());
            }
            if state.written < number {
                let written = state.written;
                let missing =
                    format!("the log has no record {number}; its last record is {written}");
                return Err(io::Error::other(missing));
            }
            (state.files.clone(), state.written, state.is_unnamed || state.files.len() > 1)
        };
        let work = || {
            files.iter().try_for_each(|file| file.sync())?;
            if is_unnamed {
                self.hold.dir.sync()?;
            }
            // Synced data counts only if the next start finds it.
            self.hold.check()
        };
        self.poison_if(work())?;
        let mut state = self.state();
        state.synced = written;
        state.is_unnamed = false;
        // Only the last file can have grown meanwhile.
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

    /// Returns true if the thread has ended, because of a failed sync or a panic.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Syncing {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // The thread is not expected to panic. After a panic, its message is already printed.
            let _ = thread.join();
        }
    }
}
