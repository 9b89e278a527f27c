//! Snapshot that a thread writes while the filter is in use.

use std::io;
use std::thread::JoinHandle;
use std::time::Instant;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use crate::clock::Moment;
use crate::journal::Journal;
use crate::prune::Retention;
use crate::restore::LiveFilter;
use crate::snapshot_writer::{Finished, SnapshotWriter};

/// Time that the thread rests after each piece, as a multiple of the time that the piece took. The
/// rest keeps the filter fast during a snapshot.
const REST: u32 = 9;

/// Result of a snapshot's thread; `None` if the filter does not exist any more.
type Ended = io::Result<Option<Finished>>;

/// Snapshot under way: a thread copies the shards one by one and writes them.
#[derive(Debug)]
pub(super) struct Snapshotting<F> {
    /// Tells the thread to rest no more. The thread stops between two pieces if this is dropped.
    hurry: Option<Sender<()>>,
    /// The thread; `None` once it is joined.
    thread: Option<JoinHandle<Ended>>,
    /// In a simulation, the work instead of the thread.
    work: Option<SnapshotWork<F>>,
}

/// Work of the snapshot's thread.
#[derive(Debug)]
struct SnapshotWork<F> {
    filter: F,
    /// The writer has begun a file for the snapshot.
    writer: SnapshotWriter,
    retention: Retention,
    hurry: Receiver<()>,
}

impl<F: LiveFilter> Snapshotting<F> {
    /// Starts the thread. `writer` must have begun a file for the snapshot.
    pub(super) fn begin(
        filter: F,
        writer: SnapshotWriter,
        retention: Retention,
    ) -> io::Result<Self> {
        let (sender, hurry) = crossbeam_channel::bounded(1);
        let work = SnapshotWork { filter, writer, retention, hurry };
        let hurry = Some(sender);
        #[cfg(feature = "simulation")]
        if work.filter.is_stepped() {
            return Ok(Self { hurry, thread: None, work: Some(work) });
        }
        let thread = std::thread::Builder::new().name("snapshot".to_owned());
        let thread = Some(thread.spawn(move || work.run())?);
        Ok(Self { hurry, thread, work: None })
    }

    /// Returns true if the thread has ended.
    pub(super) fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Hurries the thread and waits for its end. Returns `None` if the filter does not exist any
    /// more.
    pub(super) fn join(mut self) -> Ended {
        if let Some(hurry) = &self.hurry {
            // If the thread has ended, there is nothing to hurry.
            let _ = hurry.try_send(());
        }
        if let Some(work) = self.work.take() {
            return work.run();
        }
        let thread = self.thread.take().expect("joined once");
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
    }
}

impl<F> Drop for Snapshotting<F> {
    /// Stops the thread between two pieces, and removes the unfinished file.
    fn drop(&mut self) {
        self.hurry = None;
        if let Some(thread) = self.thread.take() {
            // No caller reads the result any more.
            let _ = thread.join();
        }
    }
}

impl<F: LiveFilter> SnapshotWork<F> {
    fn run(mut self) -> Ended {
        let (mut begun, mut rests) = (Instant::now(), true);
        let mut pause = || {
            if rests {
                match self.hurry.recv_timeout(begun.elapsed() * REST) {
                    Ok(()) => rests = false,
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("stopped")),
                }
            }
            begun = Instant::now();
            Ok(())
        };
        if !self.writer.sections.copy(&self.filter, None, &mut pause)? {
            return Ok(None);
        }
        self.writer.finish(&self.retention, Moment::now()).map(Some)
    }
}

impl Journal {
    /// Begins a snapshot, after the end of the one before. The caller must [roll](Journal::roll)
    /// the log before it writes the first shard, so that the older files of the log can be pruned.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn snapshot_writer(&self) -> io::Result<SnapshotWriter> {
        SnapshotWriter::new(&self.begun, &self.unsynced)
    }
}
