//! Access to a crawl's state in Redis for repairs, while the crawl does not run.

use crate::crawl::protocol::{GivenBack, Protocol, ProtocolError, Standing};
use redis::Cmd;
use urlseen_core::filter::id::RandomId;
use urlseen_core::redis::RedisAddress;
use urlseen_core::redis::connect::connect;
use urlseen_core::redis::lease::{LeaseHolder, Token};
use urlseen_core::redis::link::Link;
use urlseen_core::storage::Head;

/// Lease of a crawl that does not run, and the crawl's state.
pub(crate) struct Upkeep {
    link: Link,
    token: Token,
    protocol: Protocol,
    standing: Standing,
}

impl Upkeep {
    /// Takes the lease for the run with the id `run`. The lease may still belong to one of the runs
    /// in `dead`, which have ended.
    pub(crate) async fn begin(
        address: &RedisAddress,
        protocol: Protocol,
        holder: &LeaseHolder,
        run: RandomId,
        dead: &[RandomId],
    ) -> Result<Self, ProtocolError> {
        let mut link = connect(address).await?;
        for command in protocol.load() {
            link.call(&command).await?;
        }
        let token = Token::new(run);
        let reply = link.call(&protocol.own(&token, holder, dead)).await?;
        let standing = protocol.owned(reply)?;
        Ok(Self { link, token, protocol, standing })
    }

    /// Returns the crawl's state at the moment at which the lease was taken.
    pub(crate) fn standing(&self) -> Standing {
        self.standing
    }

    /// Ties the crawl to a filter, and releases the lease. If Redis had no state of the crawl, the
    /// crawl begins at `head`.
    pub(crate) async fn tie(mut self, filter: RandomId, head: Head) -> Result<(), ProtocolError> {
        self.call(&self.protocol.begin(&self.token, filter, head)).await?;
        self.call(&self.protocol.release(&self.token)).await
    }

    /// Returns the connection that holds the lease.
    pub(crate) fn link(&mut self) -> &mut Link {
        &mut self.link
    }

    /// Deletes the crawl's state and its record.
    pub(crate) async fn drop_crawl(&mut self) -> Result<(), ProtocolError> {
        self.call(&self.protocol.drop_crawl(&self.token)).await
    }

    /// Gives all claimed items back to the source, and releases the lease.
    pub(crate) async fn give_back(mut self) -> Result<GivenBack, ProtocolError> {
        let give_back = self.protocol.give_back(&self.token, usize::MAX);
        let reply = self.link.call(&give_back).await?;
        self.protocol.given_back(reply)
    }

    async fn call(&mut self, command: &Cmd) -> Result<(), ProtocolError> {
        let reply = self.link.call(command).await?;
        self.protocol.done(reply)
    }
}
