//! Filter of a run, in memory or in Redis, with its storage and the checks of its fill.

use std::io;

use crate::crawl::protocol::Persistence;
use indicatif::{BinaryBytes, HumanCount};
use redis::Value;
use tracing::{info, warn};
use urlseen_core::filter::id::RandomId;
use urlseen_core::filter::memory::{self, Available, SPARE};
use urlseen_core::filter::{
    Estimate, Fill, FillWatch, Parameters, REMEDY_IN_FOLDER, REMEDY_IN_REDIS,
};
use urlseen_core::redis::Node;
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::Link;
use urlseen_core::redis_filter::opening::Sample;
use urlseen_core::storage::{Finished, Head, Moment};
use urlseen_engine::engine::Works;
use urlseen_engine::engine::store::{Footprint, MismatchError, Reach};

use super::disk::{Disk, Hang};
use super::filter_status::LostUrls;
use super::shared::Shared;
use super::{FilterStatus, RunError};

/// Filter that a run uses.
pub(super) struct RunFilter {
    pub(super) works: Works,
    /// The filter in Redis, if there is one.
    pub(super) shared: Option<Shared>,
    pub(super) snapshots: Snapshots,
    /// Disk of the storage folder.
    disk: Option<Disk>,
    /// Configured capacity, for a filter in Redis.
    capacity: u64,
    /// Capacity of a filter of fixed size: more fingerprints raise its error rate. `None` for a
    /// filter that takes more memory instead.
    limit: Option<u64>,
    /// Observer that warns if a filter with a limit becomes full.
    watch: Option<FillWatch>,
    /// Number of layers of a filter that grows, as last reported.
    layers: usize,
    memory: MemoryWatch,
    lost: LostUrls,
}

/// Snapshots of a filter while a crawl runs.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    /// Earlier states to which Redis may return.
    persistence: Persistence,
    /// True if a snapshot is due. The snapshot begins after the next report from Redis on the
    /// states to which it may return.
    pub(super) is_due: bool,
    /// True if the warning about `storage.horizon_bytes` was logged.
    told_cut: bool,
    /// True if the warning about a replica whose last save is unknown was logged.
    told_unknown_save: bool,
}

impl RunFilter {
    pub(super) fn new(
        works: Works,
        parameters: Parameters,
        capacity: u64,
        limit: Option<u64>,
        shared: Option<Shared>,
    ) -> Self {
        let Fill { layers, bytes, .. } = works.engine.gauges().fill();
        Self {
            disk: works.storage.as_ref().map(Disk::of),
            watch: limit.map(FillWatch::new),
            layers,
            memory: MemoryWatch::new(bytes),
            lost: LostUrls::new(parameters),
            snapshots: Snapshots::default(),
            works,
            shared,
            capacity,
            limit,
        }
    }

    /// Returns the state of the filter. The computation of the error rate takes up to a
    /// millisecond.
    pub(super) fn status(&mut self) -> FilterStatus {
        let Some(shared) = &self.shared else {
            let gauges = self.works.engine.gauges();
            return FilterStatus::of_gauges(gauges, &mut self.lost).limited(self.limit);
        };
        let Estimate { keys, error_rate } = shared.estimate();
        let capacity = self.capacity;
        let bytes = shared.bytes();
        let fill = Fill { keys, counted: keys, capacity, bytes, ..Fill::default() };
        FilterStatus::new(fill, error_rate, 0, &mut self.lost).limited(self.limit)
    }

    /// Warns if the fill has crossed a threshold, and logs if the filter has grown.
    pub(super) fn watch_fill(&mut self) {
        let gauges = self.works.engine.gauges();
        let crossing = self.watch.as_mut().and_then(|watch| match &self.shared {
            Some(shared) => {
                let Estimate { keys, error_rate } = shared.estimate();
                watch.observe(keys, || error_rate)
            }
            None => watch.observe(gauges.fill().counted, || gauges.error_rate()),
        });
        if let Some(crossing) = crossing {
            let remedy = if self.shared.is_some() { REMEDY_IN_REDIS } else { REMEDY_IN_FOLDER };
            warn!("{crossing}. {remedy}");
        }
        let Fill { layers, capacity, bytes, .. } = gauges.fill();
        if layers > std::mem::replace(&mut self.layers, layers) && layers > 1 {
            let (capacity, bytes) = (HumanCount(capacity), BinaryBytes(bytes));
            info!("the filter has grown: {layers} layers for {capacity} fingerprints, {bytes}");
        }
        if let Some(warning) = self.memory.observe(bytes, memory::available) {
            warn!("{warning}");
        }
    }

    /// Returns true if the filter holds at least as many keys as it is made for, and cannot grow.
    pub(super) fn is_past_capacity(&self) -> bool {
        let keys = || match &self.shared {
            Some(shared) => shared.estimate().keys,
            None => self.works.engine.gauges().fill().counted,
        };
        self.limit.is_some_and(|limit| keys() >= limit)
    }

    /// Checks that the filter can belong to the crawl in Redis. The crawl is at the head `theirs`,
    /// and `filter` is the id of its filter.
    pub(super) async fn check_fit(
        &self,
        theirs: Option<Head>,
        filter: Option<RandomId>,
    ) -> Result<Result<(), MismatchError>, RunError> {
        Ok(match (&self.works.storage, &self.shared) {
            (Some(storage), _) => {
                storage.call(move |store| store.check_fit(theirs, filter)).await?
            }
            (None, Some(shared)) => shared.check_fit(theirs, filter),
            (None, None) => Ok(()),
        })
    }

    /// Undoes the batches that were tested and not committed: removes their fingerprints from
    /// memory and from the log. The next batch follows `head`, the last committed batch.
    pub(super) async fn abort(&mut self, head: Head) -> Result<(), RunError> {
        self.works.engine.abort();
        match &self.works.storage {
            Some(storage) => {
                storage.call(move |store| store.cut(head)).await?.map_err(RunError::Log)
            }
            None => Ok(()),
        }
    }

    /// Aborts like [`Self::abort`], and waits until the threads have done all earlier jobs. Then
    /// the counts of the filter are final.
    pub(super) async fn settle(&mut self, head: Head) -> Result<(), RunError> {
        self.abort(head).await?;
        self.works.engine.settled().await?;
        self.watch_fill();
        Ok(())
    }

    /// Ends the run. Leaves the folder at `head`, the last committed batch, and returns a summary
    /// of the folder's contents.
    pub(super) async fn rest(&mut self, head: Head) -> Result<Option<Footprint>, RunError> {
        let Some(storage) = &self.works.storage else { return Ok(None) };
        let rested = storage
            .call(move |store| store.kept.close(Some(head)).map(|()| store.kept.footprint()));
        rested.await?.map(Some).map_err(RunError::Folder)
    }

    /// Checks that a filter in Redis is still the same, and reads its fill.
    pub(super) async fn reopen(&mut self, link: &mut Link) -> Result<(), RunError> {
        match &mut self.shared {
            Some(shared) => shared.reopen(link).await,
            None => Ok(()),
        }
    }

    /// Notes the fill of a key in Redis. A lower fill than before shows that another program
    /// emptied the filter. Then the caches of seen keys are emptied, too.
    pub(super) fn note_fill(&mut self, sample: Sample, answer: Value) {
        if self.shared.as_mut().is_some_and(|shared| shared.note(sample, answer)) {
            self.works.engine.evict_seen();
        }
    }

    /// Returns a request to the disk that has waited for too long, if there is one.
    pub(super) fn hang(&self) -> Option<Hang> {
        self.disk.as_ref().and_then(Disk::hang)
    }

    pub(super) fn disk(&self) -> Option<&Disk> {
        self.disk.as_ref()
    }

    /// Learns the oldest state to which Redis may return, and begins a snapshot if one is due.
    /// `info` is the answer of the primary, which was asked at the time `asked`.
    pub(super) fn learn_persistence(
        &mut self,
        info: &str,
        replicas: &[(Node, String)],
        asked: Moment,
    ) {
        let horizon = self.snapshots.persistence.horizon(info, replicas, asked);
        if let Some(storage) = &self.works.storage
            && std::mem::take(&mut self.snapshots.is_due)
        {
            storage.begin_snapshot(Reach::To(horizon));
        }
    }
}

impl Snapshots {
    /// Logs that a snapshot is finished.
    pub(super) fn tell(&mut self, finished: Finished) {
        let Finished { name, bytes, cut_by_bytes, .. } = finished;
        info!("a snapshot of the filter is saved: {name} ({})", BinaryBytes(bytes));
        if cut_by_bytes && !std::mem::replace(&mut self.told_cut, true) {
            warn!(
                "storage.horizon_bytes is too small for all snapshots that urlseen should keep. If \
                 Redis returns to an earlier state after a crash, for example to its last save, \
                 urlseen may not be able to recover the filter to the same state. Raise \
                 storage.horizon_bytes"
            );
        }
    }

    /// Warns once that a replica did not report when it last saved.
    pub(super) fn tell_unknown_save(&mut self, replica: &Node, trouble: &LinkError) {
        if !std::mem::replace(&mut self.told_unknown_save, true) {
            warn!(
                "the replica {replica} did not report when it last saved: {trouble}. If it takes \
                 over and restarts, Redis returns to that save. So urlseen now keeps all \
                 snapshots, up to storage.horizon_bytes. Let this process reach and log in to each \
                 replica"
            );
        }
    }

    /// Logs that a snapshot could not be begun or finished.
    pub(super) fn tell_none(error: &io::Error) {
        warn!("no snapshot could be taken ({error}). The log grows until the next snapshot");
    }
}

/// Growth of a filter, in bytes, after which the available memory is read again.
const STEP: u64 = 2 << 20;

/// Minimum growth for which there should be memory. It is several steps, so that a small filter
/// also warns before its growth fails.
const LEAST: u64 = 8 * STEP;

/// Observer of a filter that takes memory while it grows. It warns once.
#[derive(Debug)]
struct MemoryWatch {
    /// Size of the filter at which the available memory is read again.
    next: u64,
    is_told: bool,
}

impl MemoryWatch {
    /// Creates the observer of a filter that takes `bytes` bytes at the start.
    pub(super) fn new(bytes: u64) -> Self {
        Self { next: bytes + STEP, is_told: false }
    }

    /// Returns a warning if less memory is available than the filter takes for its next growth, a
    /// quarter of its size. The memory that a growing filter leaves free is not available to it.
    pub(super) fn observe(
        &mut self,
        bytes: u64,
        available: impl FnOnce() -> Option<Available>,
    ) -> Option<String> {
        if bytes < self.next || self.is_told {
            return None;
        }
        self.next = bytes + STEP;
        let Available { bytes: left, limit } = available()?;
        self.is_told = left < SPARE + (bytes / 4).max(LEAST);
        self.is_told.then(|| {
            let [bytes, left, spare] = [bytes, left, SPARE].map(BinaryBytes);
            format!(
                "the filter takes {bytes} and still grows, and {left} are available {limit}. The \
                 daemon ends when less than {spare} are left, and loses nothing. Give it more \
                 memory before that"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use urlseen_core::filter::memory::Limit;

    use super::*;

    #[test]
    fn the_end_of_the_memory_is_told_once_and_in_time() {
        let mut watch = MemoryWatch::new(100 << 20);
        let mut observe = |bytes: u64, left: u64| {
            watch.observe(bytes << 20, || {
                Some(Available { bytes: left << 20, limit: Limit::Machine })
            })
        };
        assert_eq!(observe(100, 1), None, "the filter has not grown");
        assert_eq!(observe(200, 64 + 50), None);
        assert_eq!(observe(201, 1), None, "the memory was read a short time ago");
        let warning = observe(220, 64 + 54).unwrap();
        let expected = "the filter takes 220.00 MiB and still grows, and 118.00 MiB are available \
                        on this machine. The daemon ends when less than 64.00 MiB are left";
        assert!(warning.starts_with(expected), "{warning}");
        assert_eq!(observe(300, 1), None);
    }

    #[test]
    fn a_small_filter_warns_before_its_growth_fails() {
        let mut watch = MemoryWatch::new(1 << 20);
        let steps = (5..64).step_by(4);
        let told = steps.map(|bytes: u64| {
            let available = Available { bytes: (100 - bytes) << 20, limit: Limit::Machine };
            (bytes, watch.observe(bytes << 20, || Some(available)).is_some())
        });
        // The growth would fail at 36 MiB.
        assert_eq!(told.filter(|told| told.1).map(|told| told.0).collect::<Vec<_>>(), [21]);
    }
}
