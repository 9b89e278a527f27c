//! Redis server of a pipeline.

use std::pin::Pin;
use std::time::Duration;

use tokio::task::JoinSet;

use urlseen_filter::id;
use urlseen_redis::RedisAddress;
use urlseen_redis::connect::{Timeouts, connect, info_at};
use urlseen_redis::error::LinkError;
use urlseen_redis::link::Link;
use urlseen_redis::preflight::{Needs, PreflightError, ServerVersion, preflight};
use urlseen_redis::server_search::Node;

/// Future of a server's answer.
pub(crate) type Awaited<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Time limits for a replica. A snapshot waits for the answers of all replicas.
const REPLICA: Timeouts =
    Timeouts { connect: Duration::from_secs(2), response: Duration::from_secs(2) };

/// Answers of replicas to `INFO`.
pub(crate) type Infos = Vec<(Node, Result<String, LinkError>)>;

/// Redis server: the one at an address, or a simulated one in a unit test.
pub(crate) trait Server: Send + Sync {
    /// Opens a connection and logs in.
    fn connect(&self) -> Awaited<'_, Result<Link, LinkError>>;

    /// Checks that the server has and permits everything that a crawl needs. Returns the version of
    /// the server.
    fn check<'a>(
        &'a self,
        needs: &'a Needs,
    ) -> Awaited<'a, Result<ServerVersion, Vec<PreflightError>>>;

    /// Asks these replicas of the server for `INFO`, all at the same time.
    fn infos(&self, replicas: Vec<Node>) -> Awaited<'static, Infos>;

    /// Returns a random number, so that many daemons do not reconnect at the same time.
    fn jitter(&self) -> u64 {
        id::random()
    }
}

impl Server for RedisAddress {
    fn connect(&self) -> Awaited<'_, Result<Link, LinkError>> {
        Box::pin(connect(self))
    }

    fn check<'a>(
        &'a self,
        needs: &'a Needs,
    ) -> Awaited<'a, Result<ServerVersion, Vec<PreflightError>>> {
        Box::pin(async move { preflight(self, needs).await.map(|facts| facts.version) })
    }

    fn infos(&self, replicas: Vec<Node>) -> Awaited<'static, Infos> {
        let mut asked = JoinSet::new();
        for node in replicas {
            let mut address = self.clone();
            address.timeouts = REPLICA;
            asked.spawn(async move {
                let answer = info_at(&address, &node).await;
                (node, answer)
            });
        }
        Box::pin(asked.join_all())
    }
}
