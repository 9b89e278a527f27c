//! Snapshots of the filter while a crawl runs.

use std::io;

use indicatif::BinaryBytes;
use tracing::{info, warn};

use super::{Pipeline, RunError};
use urlseen_core::storage::{Finished, Head, Moment};
use urlseen_engine::engine::store::{Footprint, Reach};

impl Pipeline {
    /// Begins a snapshot where one is due, which reaches back as far as Redis may come back,
    /// according to what it said of itself when it was asked.
    pub(super) fn learn_persistence(&mut self, info: &str, asked: Moment) {
        let horizon = self.persistence.horizon(info, asked);
        if let Some(storage) = &self.works.storage
            && std::mem::take(&mut self.is_snapshot_due)
        {
            storage.begin_snapshot(Reach::To(horizon));
        }
    }

    /// Tells that a snapshot is finished.
    pub(super) fn tell_snapshot(&mut self, finished: Finished) {
        self.counts.snapshots += 1;
        let Finished { name, bytes, cut_by_bytes, .. } = finished;
        info!("{name} is on the disk ({})", BinaryBytes(bytes));
        if cut_by_bytes && !std::mem::replace(&mut self.told_cut, true) {
            warn!(
                "storage.horizon_bytes limits how far the storage folder goes back: if Redis comes \
                 back with data from before its last save, or older than a minute, the filter may \
                 not be able to follow"
            );
        }
    }

    /// Ends the run: the folder is left as Redis is, with `head` as the last batch committed.
    pub(super) async fn rest(&mut self, head: Head) -> Result<(), RunError> {
        let Some(storage) = &self.works.storage else { return Ok(()) };
        let rested = storage.call(move |store| store.rest(Some(head)).map(|()| store.footprint()));
        let footprint = rested.await?.map_err(RunError::Folder)?;
        self.keep_footprint(footprint);
        Ok(())
    }

    /// Tells that none was begun or finished.
    pub(super) fn tell_no_snapshot(error: &io::Error) {
        warn!("no snapshot could be taken ({error}); the log grows on");
    }

    /// Lets everybody see what the folder holds.
    pub(super) fn keep_footprint(&self, footprint: Footprint) {
        self.live.send_modify(|live| live.status.storage = Some(footprint.into()));
    }
}
