//! Filter of a run, in memory or in Redis, with its storage and its report.

use std::sync::Arc;

use super::persistence::Persistence;
use indicatif::BinaryBytes;
use redis::{Cmd, Value};
use tracing::{info, warn};
use urlseen_engine::engine::Works;
use urlseen_engine::engine::store::{CrawlPosition, Footprint, MismatchError, Reach};
use urlseen_filter::id::RandomId;
use urlseen_filter::{Estimate, Fill, Parameters, RedisFilterKeys};
use urlseen_redis::error::LinkError;
use urlseen_redis::filter::opening::{Opened, RedisOpenError, Sample, Samples, Wanted};
use urlseen_redis::link::Link;
use urlseen_redis::server_search::Node;
use urlseen_storage::{Finished, Head, Moment};

use super::RunError;
use super::disk::{Disk, Hang};
use crate::report::{FilterReport, FilterStatus};

/// Filter that a run uses.
pub(super) struct RunFilter {
    pub(super) works: Works,
    /// The filter in Redis, if there is one.
    pub(super) shared: Option<Shared>,
    pub(super) snapshots: Snapshots,
    /// Disk of the storage folder.
    pub(super) disk: Option<Disk>,
    /// Configured capacity, for a filter in Redis.
    capacity: u64,
    report: FilterReport,
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
        Self {
            disk: works.storage.as_ref().map(Disk::of),
            report: FilterReport::new(&works.engine, parameters, limit),
            snapshots: Snapshots::default(),
            works,
            shared,
            capacity,
        }
    }

    /// Returns the fill and the error rate of the filter in Redis, if there is one.
    fn in_redis(&self) -> Option<(Fill, f64)> {
        self.shared.as_ref().map(|shared| shared.fill(self.capacity))
    }

    /// Returns the state of the filter.
    pub(super) fn status(&mut self) -> FilterStatus {
        let in_redis = self.in_redis();
        self.report.status(&self.works.engine, in_redis)
    }

    /// Warns if the fill has crossed a threshold, and logs if the filter has grown.
    pub(super) fn watch_fill(&mut self) {
        let in_redis = self.in_redis();
        self.report.look(&self.works.engine, in_redis);
    }

    /// Returns true if the filter holds at least as many keys as it is made for, and cannot grow.
    pub(super) fn is_past_capacity(&self) -> bool {
        self.report.is_past_capacity(&self.works.engine, self.in_redis())
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
            (None, Some(shared)) => {
                CrawlPosition { head: theirs, filter }.check_redis_filter(shared.id())
            }
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

    /// Ends the run. Leaves the folder at `head`, the last committed batch, and returns a summary
    /// of the folder's contents.
    pub(super) async fn rest(&mut self, head: Head) -> Result<Option<Footprint>, RunError> {
        let Some(storage) = &self.works.storage else { return Ok(None) };
        let rested = storage
            .call(move |store| store.kept.close(Some(head)).map(|()| store.kept.footprint()));
        rested.await?.map(Some).map_err(RunError::Folder)
    }

    /// Returns a request to the disk that has waited for too long, if there is one.
    pub(super) fn hang(&self) -> Option<Hang> {
        self.disk.as_ref().and_then(Disk::hang)
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
}

/// Filter in Redis, with the samples of its fill.
pub(crate) struct Shared {
    wanted: Wanted,
    opened: Opened,
    samples: Samples,
    /// Number of items that commits have found unseen since the crawl began.
    pub(super) unseen: u64,
}

impl Shared {
    /// Wraps the filter that was opened according to `wanted`.
    pub(crate) fn new(wanted: Wanted, opened: Opened) -> Self {
        let samples = Samples::new(&opened.filter);
        Self { wanted, opened, samples, unseen: 0 }
    }

    /// Returns the keys of the filter.
    pub(crate) fn filter(&self) -> Arc<RedisFilterKeys> {
        Arc::clone(&self.opened.filter)
    }

    pub(super) fn id(&self) -> RandomId {
        self.opened.definition.id
    }

    /// Returns the fill of the filter, which has this capacity, and its error rate. Both are
    /// estimated from the last samples.
    pub(super) fn fill(&self, capacity: u64) -> (Fill, f64) {
        let Estimate { keys, error_rate } = self.samples.estimate(&self.opened.filter);
        let bytes = self.opened.bytes();
        (Fill { keys, counted: keys, capacity, bytes, ..Fill::default() }, error_rate)
    }

    /// Builds the command that asks for the fill of the next key to sample.
    pub(super) fn ask(&mut self) -> (Sample, Cmd) {
        self.samples.ask(&self.opened.filter)
    }

    /// Notes the fill of a key. Returns true if another program emptied the filter.
    pub(super) fn note(&mut self, sample: Sample, answer: Value) -> bool {
        let is_emptied = self.samples.note(sample, answer);
        if is_emptied {
            let base = &self.opened.filter.base;
            warn!(
                "the filter {base} in Redis was emptied by another client: its URLs count as unseen"
            );
        }
        is_emptied
    }

    /// Checks that the filter is still the same, and reads its fill.
    pub(super) async fn reopen(&mut self, link: &mut Link) -> Result<(), RunError> {
        self.wanted.reopen(link, &self.opened).await?;
        self.look(link).await
    }

    /// Reads the fill of the filter.
    pub(super) async fn look(&mut self, link: &mut Link) -> Result<(), RunError> {
        Ok(self.samples.look(link, &self.opened.filter).await?)
    }
}

impl From<RedisOpenError> for RunError {
    fn from(error: RedisOpenError) -> Self {
        match error {
            RedisOpenError::Link(trouble) => trouble.into(),
            other => Self::Shared(Box::new(other)),
        }
    }
}
