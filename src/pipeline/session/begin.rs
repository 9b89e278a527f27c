//! Start of a session: its states before its work, each with the results of the one before. The
//! session finds out which queued batches Redis has committed, and recovers the filter.

use std::pin::pin;
use std::sync::Arc;

use indicatif::BinaryBytes;
use tokio::time::{Instant, interval_at};
use tracing::{info, warn};

use super::Lease;
use super::commits::{Prepared, Queue};
use crate::pipeline::{Pipeline, RunError, Shared};
use crate::report::Phase;
use urlseen_engine::engine::store::{How, Recovery};
use urlseen_filter::id::RandomId;
use urlseen_redis::connect;
use urlseen_redis::limits::ServerLimits;
use urlseen_redis::link::Link;
use urlseen_redis::protocol::{CrawlState, LeaseHolder, RENEWAL, value};
use urlseen_storage::{Head, Restore as _};

/// State with two open connections, without the lease.
pub(super) struct Connected {
    link: Link,
    /// A second connection, on which the session waits for items while the source is empty.
    waiter: Link,
}

/// State with the lease and the crawl's state in Redis. The session read the crawl's state after it
/// took the lease. The wanted replicas have the lease and everything before it.
pub(super) struct Owned {
    link: Link,
    waiter: Link,
    lease: Lease,
    crawl_state: CrawlState,
}

/// State with the filter recovered to the last batch that Redis records.
pub(super) struct Recovered {
    pub(super) link: Link,
    pub(super) waiter: Link,
    pub(super) lease: Lease,
    /// Number of items in the sink.
    pub(super) sink_length: u64,
    /// Number of items on the rejects list.
    pub(super) rejected_length: u64,
}

impl Connected {
    pub(super) async fn open(pipeline: &mut Pipeline) -> Result<Self, RunError> {
        pipeline.filter.hang().map_or(Ok(()), |hang| Err(RunError::Hanging(hang)))?;
        let server = Arc::clone(&pipeline.parts.server);
        let link = pipeline.meanwhile(server.connect()).await??;
        // The second connection is opened before it is needed. Later, an attempt to connect to a
        // server that does not answer would block all other work.
        let waiter = pipeline.meanwhile(server.connect()).await??;
        if pipeline.is_recovered {
            pipeline.reporter.now.status.counts.reconnects += 1;
        } else {
            let version = server.check(&pipeline.parts.protocol.needs()).await;
            let version = version.map_err(RunError::Preflight)?;
            pipeline.parts.protocol.use_version(version);
        }
        Ok(Self { link, waiter })
    }

    /// Takes the lease under a new token, and then reads the position of the crawl. Then waits
    /// until the replicas have the lease. After that, they also have all commits of earlier
    /// connections.
    pub(super) async fn own(self, pipeline: &mut Pipeline) -> Result<Owned, RunError> {
        let Self { mut link, waiter } = self;
        // All batches of the last session must be queued before the queue is compared with Redis.
        pipeline.gather().await?;
        let Pipeline { parts, claim, filter, .. } = pipeline;
        let (token, holder) = (claim.token(), LeaseHolder::this(&parts.config.crawl_name()));
        claim.is_made = true;
        let dead = claim.announce(filter.works.storage.as_ref()).await?;
        let asked = Instant::now();
        let crawl_state = parts.protocol.take_lease(&mut link, &token, &holder, dead).await?;
        pipeline.wait_for_replicas(&mut link).await?;
        Ok(Owned { link, waiter, lease: Lease::new(token, asked), crawl_state })
    }
}

impl Owned {
    /// Removes committed batches from the queue, and recovers the filter to the last batch that
    /// Redis records.
    pub(super) async fn recover(mut self, pipeline: &mut Pipeline) -> Result<Recovered, RunError> {
        pipeline.ask_limits(&mut self.link).await?;
        if let Some(shared) = &mut pipeline.filter.shared {
            shared.reopen(&mut self.link).await?;
        }
        let protocol = &pipeline.parts.protocol;
        let sink_length = value("a length", self.link.call(&protocol.sink_length()).await?)?;
        let rejected_length =
            value("a length", self.link.call(&redis::Cmd::llen(&protocol.keys.rejected)).await?)?;
        pipeline.go_on_from(&mut self).await?;
        // If the crawl is new, the step above has written its first position, which the replicas
        // need.
        pipeline.wait_for_replicas(&mut self.link).await?;
        let Self { link, waiter, lease, .. } = self;
        Ok(Recovered { link, waiter, lease, sink_length, rejected_length })
    }
}

impl Pipeline {
    /// Asks the server for its limits, which may have changed since the last connection.
    async fn ask_limits(&mut self, link: &mut Link) -> Result<(), RunError> {
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
    async fn go_on_from(&mut self, owned: &mut Owned) -> Result<(), RunError> {
        let is_recovered = std::mem::take(&mut self.is_recovered);
        // Answers all queries first. The code below may cut the log. If the cut fails, no query may
        // be half answered.
        self.answer_all().await?;
        let resumed = is_recovered.then(|| self.queue.resume(owned.crawl_state));
        match resumed {
            Some(Ok(resumed)) => self.resume(resumed, owned.crawl_state).await?,
            Some(Err(diverged)) => {
                warn!("{diverged}");
                self.reporter.now.status.counts.rollbacks += 1;
                self.recover(owned).await?;
            }
            None => self.recover(owned).await?,
        }
        self.is_recovered = true;
        Ok(())
    }

    async fn resume(&mut self, resumed: Resumed, crawl_state: CrawlState) -> Result<(), RunError> {
        let Resumed { committed, stale } = resumed;
        let shared = self.filter.shared.as_ref();
        let unseen = shared.map(|shared| crawl_state.unseen.saturating_sub(shared.unseen));
        self.settle(&committed, unseen);
        let stale = std::mem::take(&mut self.are_stale) || stale;
        let aborted = if stale { self.queue.clear() } else { 0 };
        let (again, head) = (self.queue.batches.len(), self.queue.head);
        if stale {
            self.reporter.now.status.counts.batches_aborted += aborted as u64;
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
    /// this filter, and begins the expiry if fingerprints expire.
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
        self.reporter.now.status.counts.recoveries += 1;
        info!(
            "this daemon has taken the lease; Redis is at {head}, {cursor} items are claimed. {how}"
        );
        for warning in how.warnings() {
            warn!("{warning}");
        }
        self.filter.watch_fill();
        self.queue = Queue::new(head, cursor);
        self.are_stale = false;
        let works = &mut self.filter.works;
        if works.needs_time() {
            let time = connect::server_time(&mut owned.link).await?;
            if let Some(doubt) = works.begin_expiry(time).await? {
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
        self.reporter.now.status.counts.batches_aborted += aborted as u64;
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
        self.reporter.now.status.storage = Some(footprint);
        // This error is returned only now, so that the next session finds the filter recovered.
        lost.map_or(Ok(()), Err)?;
        Ok(recovered?)
    }

    async fn renew(&self, owned: &mut Owned) -> Result<(), RunError> {
        let Owned { link, lease, .. } = owned;
        let protocol = &self.parts.protocol;
        lease.asked = Instant::now();
        protocol.done(link.call(&protocol.renew(&lease.token)).await?)?;
        lease.renewed();
        Ok(())
    }
}

/// Result of comparing the queue with the last batch that Redis records.
#[derive(Debug)]
struct Resumed {
    /// Batches that were committed, oldest first.
    committed: Vec<Prepared>,
    /// True if the batches that are still queued no longer match the claimed items, and must be
    /// tested again.
    stale: bool,
}

/// Error: the last batch that Redis records is neither the last known commit nor a queued batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "Redis {}, but this run last committed {ours}: either Redis came back with older data, or \
     another program changed the crawl's state. The filter is recovered to the last batch that \
     Redis records",
    theirs.as_ref().map_or_else(
        || "knows nothing of the crawl any more".to_owned(), |head| format!("is at {head}")))]
struct Diverged {
    /// Last batch that Redis records. `None` if Redis does not know the crawl.
    theirs: Option<Head>,
    /// Last batch that this run committed.
    ours: Head,
}

impl Queue {
    /// Compares the queue with the last batch that Redis records, after a connection was lost or
    /// Redis refused a commit. Removes the committed batches from the queue.
    fn resume(&mut self, crawl_state: CrawlState) -> Result<Resumed, Diverged> {
        let diverged = Diverged { theirs: crawl_state.head, ours: self.head };
        let theirs = crawl_state.head.ok_or_else(|| diverged.clone())?;
        let mut heads = self.batches.iter().map(|prepared| prepared.batch.head());
        let committed = match heads.position(|head| head == theirs) {
            Some(index) => index + 1,
            None if theirs == self.head => 0,
            None => return Err(diverged),
        };
        let committed = (0..committed).filter_map(|_| self.committed()).collect();
        let stale = self.cursor != crawl_state.cursor;
        self.cursor = crawl_state.cursor;
        Ok(Resumed { committed, stale })
    }
}

#[cfg(test)]
#[path = "begin_tests.rs"]
mod tests;
