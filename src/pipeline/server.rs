//! Redis server of a pipeline.

use std::pin::Pin;

use urlseen_core::filter::id;
use urlseen_core::redis::RedisAddress;
use urlseen_core::redis::connect::{Timeouts, connect};
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::Link;
use urlseen_core::redis::preflight::{Needs, PreflightError, ServerVersion, preflight};

/// Future of a server's answer.
pub(crate) type Awaited<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Redis server: the one at an address, or a simulated one in a unit test.
pub trait Server: Send + Sync {
    /// Opens a connection and logs in.
    fn connect(&self) -> Awaited<'_, Result<Link, LinkError>>;

    /// Checks that the server has and permits everything that a crawl needs. Returns the version of
    /// the server.
    fn check<'a>(
        &'a self,
        needs: &'a Needs,
    ) -> Awaited<'a, Result<ServerVersion, Vec<PreflightError>>>;

    /// Returns a random number, so that many daemons do not reconnect at the same time.
    fn jitter(&self) -> u64 {
        id::random()
    }
}

impl Server for RedisAddress {
    fn connect(&self) -> Awaited<'_, Result<Link, LinkError>> {
        Box::pin(connect(self, Timeouts::default()))
    }

    fn check<'a>(
        &'a self,
        needs: &'a Needs,
    ) -> Awaited<'a, Result<ServerVersion, Vec<PreflightError>>> {
        Box::pin(async move {
            preflight(self, Timeouts::default(), needs).await.map(|facts| facts.version)
        })
    }
}
