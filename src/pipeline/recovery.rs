//! Start of a session: finds out which queued batches Redis has committed, and recovers the filter.

use std::pin::pin;

use indicatif::BinaryBytes;
use tokio::time::{Instant, interval_at};
use tracing::{info, warn};

use super::queue::{Queue, Resumed};
use super::session::Owned;
use super::{Pipeline, RunError, Shared};
use crate::report::Phase;
use urlseen_core::filter::id::RandomId;
use urlseen_core::redis::connect;
use urlseen_core::redis::limits::ServerLimits;
use urlseen_core::redis::link::Link;
use urlseen_core::redis::protocol::{CrawlState, RENEWAL};
use urlseen_core::storage::{Head, Restore as _};
use urlseen_engine::engine::store::{How, Recovery};

impl Pipeline {
    /// Asks the server for its limits, which may have changed since the last connection.
    pub(super) async fn ask_limits(&mut self, link: &mut Link) -> Result<(), RunError> {
        let limits = ServerLimits::ask(link).await?;
        limits.check(self.parts.config.source.item_bytes)?;
        self.are_stale |= limits != std::mem::replace(&mut self.limits, limits);
        if !self.limits.is_told && !self.is_recovered {
            info!(
                "Redis does not let urlseen read the setting proto-max-bulk-len (CONFIG GET): \
                 urlseen assumes the default, with which items may have at most {}",
                BinaryBytes(self.limits.item as u64)
            );
        }
        Ok(())
    }

    /// Removes committed batches from the queue. If the last batch that Redis records is unknown to
    /// the queue, recovers the filter to that batch.
    pub(super) async fn go_on_from(&mut self, owned: &mut Owned) -> Result<(), RunError> {
        let is_recovered = std::mem::take(&mut self.is_recovered);
        // Answers all queries first. The code below may cut the log. If the cut fails, no query may
        // be half answered.
        self.answer_all().await?;
        let resumed = is_recovered.then(|| self.queue.resume(owned.crawl_state));
        match resumed {
            Some(Ok(resumed)) => self.resume(resumed, owned.crawl_state).await?,
            Some(Err(diverged)) => {
                warn!("{diverged}");
                self.reporter.counts().rollbacks += 1;
                self.recover(owned).await?;
            }
            None => self.recover(owned).await?,
        }
        self.is_recovered = true;
        Ok(())
    }

    /// Counts batches that were aborted, and that must be read and tested again.
    pub(super) fn note_aborted(&mut self, batches: usize) {
        self.reporter.counts().batches_aborted += batches as u64;
    }

    async fn resume(&mut self, resumed: Resumed, crawl_state: CrawlState) -> Result<(), RunError> {
        let Resumed { committed, stale } = resumed;
        let shared = self.filter.shared.as_ref();
        let unseen = shared.map(|shared| crawl_state.unseen.saturating_sub(shared.unseen));
        self.settle(&committed, unseen);
        let stale = std::mem::take(&mut self.are_stale) || stale;
        let aborted = if stale { self.queue.clear() } else { 0 };
        let (again, head) = (self.queue.batches(), self.queue.head());
        if stale {
            self.note_aborted(aborted);
            self.filter.abort(head).await?;
        }
        info!(
            "connected again: Redis had committed {} batches, {again} batches are sent again, and \
             {aborted} batches are read and tested again",
            committed.len()
        );
        Ok(())
    }

    /// Recovers the filter to the last batch that Redis records. Then ties the crawl in Redis to
    /// this filter.
    async fn recover(&mut self, owned: &mut Owned) -> Result<(), RunError> {
        let cursor = owned.crawl_state.cursor;
        if let Some(shared) = &mut self.filter.shared {
            shared.unseen = owned.crawl_state.unseen;
        }
        self.enter(Phase::Recovering);
        let begun = Instant::now();
        let Recovery { head, filter: ours, how } = self.recover_to(owned).await?;
        self.reporter.now.status.times.recovery.observe(begun.elapsed());
        let protocol = &self.parts.protocol;
        let begin = protocol.begin(&owned.lease.token, ours, head);
        protocol.done(owned.link.call(&begin).await?)?;
        self.reporter.counts().recoveries += 1;
        info!(
            "this daemon has taken the lease; Redis is at {head}, {cursor} items are claimed. {how}"
        );
        for warning in how.warnings() {
            warn!("{warning}");
        }
        self.filter.watch_fill();
        self.queue = Queue::new(head, cursor);
        self.are_stale = false;
        self.begin_generations(&mut owned.link).await
    }

    /// Begins the generation of the present time, if the fingerprints of the filter expire.
    async fn begin_generations(&mut self, link: &mut Link) -> Result<(), RunError> {
        let works = &mut self.filter.works;
        if works.needs_time() {
            let time = connect::server_time(link).await?;
            if let Some(doubt) = works.begin_generations(time).await? {
                warn!("{doubt}");
            }
        }
        Ok(())
    }

    /// Recovers the filter to the last batch that Redis records, and renews the lease meanwhile.
    async fn recover_to(&mut self, owned: &mut Owned) -> Result<Recovery, RunError> {
        let CrawlState { head: theirs, filter, .. } = owned.crawl_state;
        self.gather().await?;
        let aborted = self.queue.clear();
        self.note_aborted(aborted);
        let mut threads = self.filter.works.engine.restoring();
        let Some(storage) = &self.filter.works.storage else {
            self.filter.check_fit(theirs, filter).await??;
            threads.clear();
            let ours = self.filter.shared.as_ref().map_or_else(RandomId::random, Shared::id);
            let head = theirs.unwrap_or(Head::START);
            return Ok(Recovery { head, filter: ours, how: How::Shared });
        };
        let recovering = storage.call(move |store| {
            let recovered = store.recover_to(theirs, filter);
            (recovered, store.kept.footprint())
        });
        let mut recovering = pin!(recovering);
        let mut renewal = interval_at(Instant::now() + RENEWAL, RENEWAL);
        let mut lost = None;
        let (recovered, footprint) = loop {
            tokio::select! {
                recovered = &mut recovering => break recovered?,
                _ = renewal.tick(), if lost.is_none() => {
                    if self.filter.hang().is_none() {
                        lost = self.renew(owned).await.err();
                    }
                }
            }
        };
        self.filter.works.engine.restored().await?;
        self.reporter.keep_footprint(footprint);
        // This error is returned only now, so that the next session finds the filter recovered.
        lost.map_or(Ok(()), Err)?;
        Ok(recovered?)
    }

    async fn renew(&self, owned: &mut Owned) -> Result<(), RunError> {
        let Owned { link, lease, .. } = owned;
        let protocol = &self.parts.protocol;
        lease.ask();
        protocol.done(link.call(&protocol.renew(&lease.token)).await?)?;
        lease.renewed();
        Ok(())
    }
}
