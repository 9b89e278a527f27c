//! A filter in Redis, as a run works with it.

use std::sync::Arc;

use redis::{Cmd, Value};
use tracing::warn;

use super::{Pipeline, RunError};
use urlseen_core::filter::id::RandomId;
use urlseen_core::filter::{Estimate, RedisFilterKeys};
use urlseen_core::redis::link::Link;
use urlseen_core::redis_filter::opening::{Opened, RedisOpenError, Sample, Samples, Wanted};
use urlseen_core::storage::Head;
use urlseen_engine::engine::store::MismatchError;

/// A filter in Redis, and how full it is.
pub struct Shared {
    wanted: Wanted,
    opened: Opened,
    samples: Samples,
}

impl Shared {
    /// The filter that was opened as wanted.
    pub(crate) fn new(wanted: Wanted, opened: Opened) -> Self {
        let samples = Samples::new(&opened.filter);
        Self { wanted, opened, samples }
    }

    /// Its keys.
    pub(crate) fn filter(&self) -> Arc<RedisFilterKeys> {
        Arc::clone(&self.opened.filter)
    }

    /// Its id.
    pub(super) fn id(&self) -> RandomId {
        self.opened.id
    }

    /// Checks that it can belong to where Redis stands.
    pub(super) fn check_fit(
        &self,
        theirs: Option<Head>,
        filter: Option<RandomId>,
    ) -> Result<(), MismatchError> {
        let ours = self.id();
        // At batch 0 nothing is lost that the state could be tied to.
        let is_tied = theirs.is_some_and(|head| head.seq > 0);
        match filter.filter(|&theirs| is_tied && theirs != ours) {
            Some(theirs) => Err(MismatchError::OtherFilterInRedis { ours, theirs }),
            None => Ok(()),
        }
    }

    /// How many bytes of Redis's it takes once all of it is there.
    pub(super) fn bytes(&self) -> u64 {
        self.opened.bytes()
    }

    /// Whether it is a set, which does not become wrong as it fills.
    pub(super) fn is_exact(&self) -> bool {
        self.opened.filter.kind().is_exact()
    }

    /// How full it is, by what was last seen of it.
    pub(crate) fn estimate(&self) -> Estimate {
        self.samples.estimate(&self.opened.filter)
    }

    /// The question how full one of its keys is.
    pub(super) fn ask(&mut self) -> (Sample, Cmd) {
        self.samples.ask(&self.opened.filter)
    }
}

impl Pipeline {
    /// A filter in Redis is still the one that it was.
    pub(super) async fn reopen_shared(&mut self, link: &mut Link) -> Result<(), RunError> {
        let Some(shared) = &mut self.parts.shared else { return Ok(()) };
        shared.wanted.reopen(link, &shared.opened).await?;
        Ok(shared.samples.look(link, &shared.opened.filter).await?)
    }

    /// Looks how full a filter in Redis is.
    pub(super) async fn look_at_shared(&mut self, link: &mut Link) -> Result<(), RunError> {
        let Some(shared) = &mut self.parts.shared else { return Ok(()) };
        Ok(shared.samples.look(link, &shared.opened.filter).await?)
    }

    /// Notes the fill of a key. If it is less than before, another client has emptied the filter.
    /// Then the cache of seen keys is dropped.
    pub(super) fn note_fill(&mut self, sample: Sample, answer: Value) {
        let Some(shared) = &mut self.parts.shared else { return };
        if shared.samples.note(sample, answer) {
            warn!(
                "the filter {} in Redis was emptied by another client: its URLs count as unseen",
                shared.opened.filter.base()
            );
            self.works.engine.evict_seen();
        }
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
