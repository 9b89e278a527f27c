//! The states of a session before it works. Each has the results of the one before.

use std::sync::Arc;

use tokio::time::Instant;

use super::Lease;
use crate::crawl::protocol::Standing;
use crate::pipeline::queue::Queue;
use crate::pipeline::{Pipeline, RunError};
use urlseen_core::redis::lease::RunId;
use urlseen_core::redis::link::Link;

/// Connected, and no more.
pub(super) struct Connected {
    link: Link,
    /// A second connection, which waits for an idle source.
    waiter: Link,
}

/// The lease is taken, and the position of the crawl under it is known.
pub(in crate::pipeline) struct Owned {
    pub(in crate::pipeline) link: Link,
    waiter: Link,
    pub(in crate::pipeline) lease: Lease,
    pub(in crate::pipeline) standing: Standing,
}

/// The filter is at the position of Redis.
pub(super) struct Recovered {
    pub(super) link: Link,
    pub(super) waiter: Link,
    pub(super) lease: Lease,
    /// The batches that are to be committed, and the position of the crawl.
    pub(super) queue: Queue,
    /// Items in the sink, and on the rejects list.
    pub(super) sink_length: u64,
    pub(super) rejected_length: u64,
}

impl Connected {
    pub(super) async fn open(pipeline: &mut Pipeline) -> Result<Self, RunError> {
        pipeline.hang().map_or(Ok(()), |hang| Err(RunError::Hanging(hang)))?;
        let server = Arc::clone(&pipeline.parts.server);
        let link = pipeline.meanwhile(server.connect()).await??;
        // Not when it is first needed: nothing else would be done while a server does not answer.
        let waiter = pipeline.meanwhile(server.connect()).await??;
        if pipeline.known.is_none() {
            let version = server.check(&pipeline.parts.needs).await.map_err(RunError::Preflight)?;
            pipeline.parts.protocol.use_version(version);
        }
        Ok(Self { link, waiter })
    }

    /// Takes the lease under a fresh token, and then, not before, reads where the crawl stands.
    /// The folder knows the run before Redis does, so that the next one to hold its lock can prove
    /// that this run is dead. All runs that the folder knows are: also later, as a Redis that comes
    /// back with older data may come back with the lease of one of them.
    pub(super) async fn own(self, pipeline: &mut Pipeline) -> Result<Owned, RunError> {
        let Self { mut link, waiter } = self;
        // What was read on the last connection is ready before it is settled what became of it.
        pipeline.gather_known().await?;
        let (token, run) = (pipeline.run.token(), pipeline.run);
        let dead = match (&pipeline.dead, &pipeline.works.storage) {
            (Some(dead), _) => dead.clone(),
            (None, None) => Vec::new(),
            (None, Some(storage)) => {
                let runs = storage.call(move |store| store.announce(run.get())).await?;
                runs.map_err(RunError::Folder)?.into_iter().map(RunId::new).collect()
            }
        };
        let protocol = &pipeline.parts.protocol;
        for command in protocol.load() {
            link.call(&command).await?;
        }
        pipeline.has_asked_for_lease = true;
        let asked = Instant::now();
        let own = protocol.own(&token, &pipeline.parts.holder, &dead);
        pipeline.dead = Some(dead);
        let standing = protocol.owned(link.call(&own).await?)?;
        Ok(Owned { link, waiter, lease: Lease::new(token, asked), standing })
    }
}

impl Owned {
    /// Settles what became of the batches in flight, and recovers the filter to where Redis stands.
    pub(super) async fn recover(mut self, pipeline: &mut Pipeline) -> Result<Recovered, RunError> {
        pipeline.ask_limits(&mut self.link).await?;
        pipeline.reopen_shared(&mut self.link).await?;
        let protocol = &pipeline.parts.protocol;
        let sink_length = protocol.length(self.link.call(&protocol.sink_length()).await?)?;
        let rejected_length =
            protocol.length(self.link.call(&protocol.rejected_length()).await?)?;
        let queue = pipeline.go_on_from(&mut self).await?;
        let Self { link, waiter, lease, .. } = self;
        Ok(Recovered { link, waiter, lease, queue, sink_length, rejected_length })
    }
}
