//! Snapshot that a thread writes while the filter is in use.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::LiveFilter;
use crate::storage::prune::Retention;
use crate::storage::snapshot_writer::{Finished, SnapshotWriter};

/// Time that the thread rests after each piece, as a multiple of the time that the piece took. The
/// rest keeps the filter fast during a snapshot.
const REST: u32 = 9;

/// Pace of the snapshot's thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Pace {
    /// The thread rests after each piece.
    Easy,
    /// The thread does not rest, because a caller waits for it.
    Hurry,
    /// The thread ends early.
    Stop,
}

/// Result of a snapshot's thread; `None` if the filter does not exist any more.
type Ended = io::Result<Option<Finished>>;

/// Snapshot under way: a thread copies the shards one by one and writes them.
#[derive(Debug)]
pub(super) struct Snapshotting<F> {
    pace: Arc<AtomicU8>,
    /// The thread; `None` once it is joined.
    thread: Option<JoinHandle<Ended>>,
    /// In a simulation, the work instead of the thread.
    work: Option<Work<F>>,
}

/// Work of the snapshot's thread.
#[derive(Debug)]
struct Work<F> {
    filter: F,
    /// The writer has begun a file for the snapshot.
    writer: SnapshotWriter,
    retention: Retention,
    pace: Arc<AtomicU8>,
}

impl<F: LiveFilter> Snapshotting<F> {
    /// Starts the thread. `writer` must have begun a file for the snapshot.
    pub(super) fn begin(
        filter: F,
        writer: SnapshotWriter,
        retention: Retention,
    ) -> io::Result<Self> {
        let pace = Arc::new(AtomicU8::new(Pace::Easy as u8));
        let work = Work { filter, writer, retention, pace: Arc::clone(&pace) };
        #[cfg(feature = "simulation")]
        if work.filter.is_stepped() {
            pace.store(Pace::Hurry as u8, Ordering::Relaxed);
            return Ok(Self { pace, thread: None, work: Some(work) });
        }
        let thread = std::thread::Builder::new().name("snapshot".to_owned());
        let thread = Some(thread.spawn(move || work.run())?);
        Ok(Self { pace, thread, work: None })
    }

    /// Returns true if the thread has ended.
    pub(super) fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Hurries the thread and waits for its end. Returns `None` if the filter does not exist any
    /// more.
    pub(super) fn join(mut self) -> Ended {
        if let Some(work) = self.work.take() {
            return work.run();
        }
        let thread = self.thread.take().expect("joined once");
        self.set(Pace::Hurry, &thread);
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
    }
}

impl<F> Snapshotting<F> {
    fn set(&self, pace: Pace, thread: &JoinHandle<Ended>) {
        self.pace.store(pace as u8, Ordering::Relaxed);
        thread.thread().unpark();
    }
}

impl<F> Drop for Snapshotting<F> {
    /// Stops the thread between two pieces, and removes the unfinished file.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.set(Pace::Stop, &thread);
            // No caller reads the result any more.
            let _ = thread.join();
        }
    }
}

impl<F: LiveFilter> Work<F> {
    fn run(mut self) -> Ended {
        let (mut buffer, mut begun) = (Vec::new(), Instant::now());
        let pace = &self.pace;
        let mut pause = || {
            rest(begun.elapsed() * REST, pace);
            begun = Instant::now();
            if is(Pace::Stop, pace) { Err(io::Error::other("stopped")) } else { Ok(()) }
        };
        for shard in self.writer.sections.shards() {
            let Some(copied) = self.filter.copy(shard, buffer) else { return Ok(None) };
            let written = self.writer.sections.write(shard, copied.at, &*copied.blob, &mut pause);
            // No caller reads the result any more.
            if is(Pace::Stop, pace) {
                return Ok(None);
            }
            written?;
            self.writer.sections.tombstones(shard, &copied.tombstones);
            buffer = copied.blob.into_buffer();
        }
        let Some((counts, at)) = self.filter.copy_counts() else { return Ok(None) };
        self.writer.sections.counts(&counts, at)?;
        self.writer.finish(&self.retention).map(Some)
    }
}

/// Rests for a time, at most until the pace changes.
fn rest(time: Duration, pace: &AtomicU8) {
    let until = Instant::now() + time;
    while is(Pace::Easy, pace) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::park_timeout(left);
    }
}

fn is(wanted: Pace, pace: &AtomicU8) -> bool {
    pace.load(Ordering::Relaxed) == wanted as u8
}
