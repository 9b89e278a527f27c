//! Filter in Redis, as a run uses it.

use std::sync::Arc;

use redis::{Cmd, Value};
use tracing::warn;

use super::RunError;
use urlseen_core::filter::id::RandomId;
use urlseen_core::filter::{Estimate, Fill, RedisFilterKeys};
use urlseen_core::redis::link::Link;
use urlseen_core::redis_filter::opening::{Opened, RedisOpenError, Sample, Samples, Wanted};
use urlseen_core::storage::Head;
use urlseen_engine::engine::store::{CrawlPosition, MismatchError};

/// Filter in Redis, with the samples of its fill.
pub struct Shared {
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

    /// Checks that the filter can belong to the crawl. In Redis, the crawl is at the head `theirs`,
    /// and the id of its filter is `filter`.
    pub(super) fn check_fit(
        &self,
        theirs: Option<Head>,
        filter: Option<RandomId>,
    ) -> Result<(), MismatchError> {
        CrawlPosition { head: theirs, filter }.check_redis_filter(self.id())
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
            let base = self.opened.filter.base();
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
