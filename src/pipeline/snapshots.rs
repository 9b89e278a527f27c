//! Snapshots of the filter while a crawl runs.

use indicatif::BinaryBytes;
use tracing::{debug, info, warn};

use super::Pipeline;
use urlseen_core::storage::{Finished, Moment};

impl Pipeline {
    /// Begins a snapshot where one is due, which reaches back as far as Redis may come back,
    /// according to what it said of itself when it was asked.
    pub(super) fn learn_persistence(&mut self, info: &str, asked: Moment) {
        let horizon = self.persistence.horizon(info, asked);
        if !self.store().wants_snapshot() {
            return;
        }
        match self.store().begin_snapshot(horizon) {
            Ok(()) => debug!("a snapshot is begun"),
            Err(error) => warn!("no snapshot could be begun ({error}); the log grows on"),
        }
    }

    /// Tells what became of the last snapshot.
    pub(super) fn tell_snapshot(&mut self) {
        match self.store().finished_snapshot() {
            None => {}
            Some(Ok(finished)) => {
                self.counts.snapshots += 1;
                let Finished { name, bytes, cut_by_bytes, .. } = finished;
                info!("{name} is on the disk ({})", BinaryBytes(bytes));
                if cut_by_bytes && !std::mem::replace(&mut self.told_cut, true) {
                    warn!(
                        "storage.horizon_bytes cuts how far the storage folder goes back: should \
                         Redis come back with data from before its last save, or older than a \
                         minute, the filter may not be able to follow"
                    );
                }
            }
            Some(Err(error)) => warn!("no snapshot could be taken ({error}); the log grows on"),
        }
    }
}
