//! States of a session before its work. Each state contains the results of the previous state.

use std::sync::Arc;

use tokio::time::Instant;

use super::Lease;
use crate::pipeline::{Pipeline, RunError};
use urlseen_core::redis::link::Link;
use urlseen_core::redis::protocol::{CrawlState, LeaseHolder};

/// State with two open connections, without the lease.
pub(super) struct Connected {
    link: Link,
    /// A second connection, on which the session waits for items while the source is empty.
    waiter: Link,
}

/// State with the lease and the crawl's state in Redis. The session read the crawl's state after it
/// took the lease. The wanted replicas have the lease and everything before it.
pub(in crate::pipeline) struct Owned {
    pub(in crate::pipeline) link: Link,
    waiter: Link,
    pub(in crate::pipeline) lease: Lease,
    pub(in crate::pipeline) crawl_state: CrawlState,
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
            pipeline.reporter.counts().reconnects += 1;
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
        pipeline.filter.reopen(&mut self.link).await?;
        let protocol = &pipeline.parts.protocol;
        let sink_length = protocol.length(self.link.call(&protocol.sink_length()).await?)?;
        let rejected_length =
            protocol.length(self.link.call(&protocol.rejected_length()).await?)?;
        pipeline.go_on_from(&mut self).await?;
        // If the crawl is new, the step above has written its first position, which the replicas
        // need.
        pipeline.wait_for_replicas(&mut self.link).await?;
        let Self { link, waiter, lease, .. } = self;
        Ok(Recovered { link, waiter, lease, sink_length, rejected_length })
    }
}
