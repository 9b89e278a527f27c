//! Search for the server of an address on this thread, and the watch over a primary.
//!
//! The search uses blocking connections of the crate `redis`, so the feature `redis` needs neither
//! tokio nor rustls.
//! `ClusterConnection` of that crate repeats calls by itself, so the library does not use it.

use std::io;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use redis::{Client, Cmd, Connection, RedisConnectionInfo, RedisError, RedisResult, Value};

use super::RedisOptions;
use super::address::Address;
use urlseen_redis::error::LinkError;
use urlseen_redis::server_search::{Lookup, Node, Primary, Role, Servers};
use urlseen_redis::server_search::{ask_sentinel, ask_sentinels, find_node, find_primary};

/// Time between two questions to the Sentinels, and after a question without an answer.
const LOOK: Duration = Duration::from_secs(1);
const LATER_LOOK: Duration = Duration::from_secs(10);

/// Watch over a connection to the primary. An old primary that the Sentinels cannot reach goes on
/// answering, and its writes are lost.
pub(super) struct PrimaryWatch {
    address: Address,
    name: String,
    primary: Node,
    /// Connection to the Sentinel that gave the last answer.
    sentinel: Option<Connection>,
    next_look: Instant,
}

impl Address {
    /// Finds the server. Returns it with a watch over its connections, if it is a primary that
    /// Sentinels name. Asks nothing if the address has only one server.
    pub(super) fn find(
        &self,
        options: &RedisOptions,
    ) -> RedisResult<(Client, Option<PrimaryWatch>)> {
        let search = Search { address: self, options };
        match &self.lookup {
            Lookup::Single => Ok((self.client.clone(), None)),
            Lookup::Sentinels(name) => {
                let Primary { node: primary, sentinel, .. } =
                    finished(find_primary(&search, &self.nodes, name))?;
                let client = self.at(&primary)?;
                let (address, name, sentinel) = (self.clone(), name.clone(), Some(sentinel));
                let next_look = Instant::now() + LOOK;
                let watch = PrimaryWatch { address, name, primary, sentinel, next_look };
                Ok((client, Some(watch)))
            }
            Lookup::Cluster(key) => match finished(find_node(&search, &self.nodes, key))? {
                // The slot is being moved. Its node still answers for the keys that it has.
                (_, Err(error))
                    if !matches!(error.clone().into(), LinkError::SlotMoving { .. }) =>
                {
                    Err(error)
                }
                (node, _) => Ok((self.at(&node)?, None)),
            },
        }
    }
}

impl PrimaryWatch {
    /// Returns true if the Sentinels name another primary now. Asks them only once in a while.
    pub(super) fn is_over(&mut self, options: &RedisOptions) -> bool {
        if Instant::now() < self.next_look {
            return false;
        }
        let Self { address, name, .. } = self;
        let search = Search { address, options };
        let kept = self.sentinel.take().and_then(|mut sentinel| {
            let primary = finished(ask_sentinel(&search, &mut sentinel, name)).ok()?;
            Some((primary, sentinel))
        });
        let again = || finished(ask_sentinels(&search, &address.nodes, name));
        // If no Sentinel answers, the primary may answer nevertheless.
        let (pause, is_over) = match kept.map_or_else(again, Ok) {
            Ok((primary, sentinel)) => {
                self.sentinel = Some(sentinel);
                (LOOK, primary != self.primary)
            }
            Err(_) => (LATER_LOOK, false),
        };
        self.next_look = Instant::now() + pause;
        is_over
    }
}

/// Search on this thread. Its futures never wait, because their calls block the thread.
struct Search<'a> {
    address: &'a Address,
    options: &'a RedisOptions,
}

impl Servers for Search<'_> {
    type Connection = Connection;
    type Error = RedisError;

    fn failed(error: LinkError) -> RedisError {
        if error.is_passing() {
            io::Error::new(io::ErrorKind::NotConnected, error.to_string()).into()
        } else {
            (redis::ErrorKind::InvalidClientConfig, "wrong address", error.to_string()).into()
        }
    }

    async fn open(&self, node: &Node, role: Role) -> RedisResult<Connection> {
        let info = self.address.at(node)?.get_connection_info().clone();
        let login = match role {
            Role::Sentinel => RedisConnectionInfo::default(),
            Role::SentinelWithLogin => info.redis_settings().clone().set_db(0),
            Role::Primary | Role::ClusterNode => info.redis_settings().clone(),
        };
        let client = Client::open(info.set_redis_settings(login))?;
        let connection = client.get_connection_with_timeout(self.options.connect_timeout)?;
        connection.set_read_timeout(Some(self.options.connect_timeout))?;
        connection.set_write_timeout(Some(self.options.connect_timeout))?;
        Ok(connection)
    }

    async fn ask(&self, connection: &mut Connection, _: Role, command: &Cmd) -> RedisResult<Value> {
        command.query(connection)
    }
}

/// Runs a search to its end.
fn finished<T>(search: impl Future<Output = T>) -> T {
    match pin!(search).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(found) => found,
        Poll::Pending => unreachable!("the calls of a `Search` block"),
    }
}
