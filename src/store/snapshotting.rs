//! A snapshot under way, on a thread of its own, while the engine works on.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::engine::Handle;
use crate::filter::ShardId;
use crate::state::{Finished, LogHandle, Retention, SnapshotWriter};

/// How long the thread rests after each shard, as a multiple of what the shard took: a snapshot is
/// to be hardly felt.
const REST: u32 = 9;

/// A thread that copies the shards one by one and writes them down.
#[derive(Debug)]
pub(super) struct Snapshotting {
    stop: Arc<AtomicBool>,
    /// Until it is joined.
    thread: Option<JoinHandle<io::Result<Option<Finished>>>>,
}

impl Snapshotting {
    /// Begins; `writer` has begun a file for it.
    pub(super) fn begin(
        filter: Handle,
        writer: SnapshotWriter,
        log: LogHandle,
        retention: Retention,
    ) -> io::Result<Self> {
        let stop = Arc::<AtomicBool>::default();
        let life = {
            let stop = Arc::clone(&stop);
            move || write(&filter, writer, &log, &retention, &stop)
        };
        let thread = std::thread::Builder::new().name("snapshot".to_owned()).spawn(life)?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Whether nothing more is done.
    pub(super) fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the end; `None` if it was stopped or the engine is gone.
    pub(super) fn join(mut self) -> io::Result<Option<Finished>> {
        let thread = self.thread.take().expect("joined once");
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
    }
}

impl Drop for Snapshotting {
    /// Stops it between two shards; what was written is removed.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.stop.store(true, Ordering::Relaxed);
            thread.thread().unpark();
            // Nobody waits for the result any more.
            let _ = thread.join();
        }
    }
}

fn write(
    filter: &Handle,
    mut writer: SnapshotWriter,
    log: &LogHandle,
    retention: &Retention,
    stop: &AtomicBool,
) -> io::Result<Option<Finished>> {
    let mut memory = Vec::new();
    for shard in ShardId::all() {
        let begun = Instant::now();
        let Some(copied) = filter.copy(shard, memory) else { return Ok(None) };
        writer.write(shard, copied.count, copied.at, &copied.bytes)?;
        memory = copied.bytes;
        rest_until(begun.elapsed() * REST, stop);
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
    }
    writer.finish(log, retention).map(Some)
}

/// Rests for so long, or until it is to stop.
fn rest_until(rest: Duration, stop: &AtomicBool) {
    let until = Instant::now() + rest;
    while !stop.load(Ordering::Relaxed) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::park_timeout(left);
    }
}
