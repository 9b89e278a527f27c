//! Redis Cluster: its part of a `redis.url`, and the search for the node that serves a key.
//!
//! A node that does not serve a key answers a command on the key with `MOVED` and the address of
//! the node that does. So the search begins at any node and follows these answers. A replica
//! answers the same way.

use redis::cmd;

use super::address::{RedisAddress, RedisAddressError};
use super::connect::{Timeouts, open};
use super::link::Link;
use super::nodes::{Node, NodesUrl, first_answer};
use crate::redis::error::LinkError;

/// Part of a scheme that announces a cluster.
pub(super) const KIND: &str = "cluster";

/// Port of a node whose port is not in the URL.
const PORT: &str = "6379";

/// Maximum number of `MOVED` answers that one search follows. While a slot changes its node, two
/// nodes may name each other.
const HOPS: usize = 4;

/// Some nodes of a cluster, and a key. The connection is to the node that serves the key.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Cluster {
    pub(super) nodes: Vec<Node>,
    key: String,
}

impl Cluster {
    /// Parses `SCHEME+cluster://[login@]host[:port],…`. Returns `None` for a URL of another scheme.
    pub(super) fn parse(url: &str) -> Result<Option<(RedisAddress, Self)>, RedisAddressError> {
        let Some(url) = NodesUrl::parse(url, KIND) else { return Ok(None) };
        let (address, nodes) = url.nodes(PORT, "")?;
        if !["", "0"].contains(&url.path) {
            return Err(RedisAddressError::ClusterDatabase);
        }
        Ok(Some((address, Self { nodes, key: String::new() })))
    }

    /// Returns the cluster for connections to the node that serves `key`.
    pub(super) fn for_key(&self, key: &str) -> Self {
        Self { key: key.to_owned(), ..self.clone() }
    }

    /// Connects to the node that serves the key.
    pub(super) async fn connect(
        &self,
        address: &RedisAddress,
        timeouts: Timeouts,
    ) -> Result<Link, LinkError> {
        let found =
            first_answer(&self.nodes, timeouts, |node| self.follow(address, node, timeouts));
        found.await.unwrap_or_else(|failures| {
            Err(failures.into_error(|causes| LinkError::NoClusterNode { causes }))
        })
    }

    /// Follows the answers of nodes, beginning at `node`. The inner result is that of the node that
    /// serves the key. The outer error says that no such node was found.
    async fn follow(
        &self,
        address: &RedisAddress,
        mut node: Node,
        timeouts: Timeouts,
    ) -> Result<Result<Link, LinkError>, LinkError> {
        let mut hops = 0;
        loop {
            let mut link = open(&address.at(&node), timeouts).await?;
            match link.call(cmd("TYPE").arg(&self.key)).await {
                Ok(_) => return Ok(Ok(link)),
                Err(LinkError::Moved { to, .. }) if hops < HOPS => {
                    node = redirected(&node, &to)?;
                    hops += 1;
                }
                // A node that is cut off from the cluster does not know the present state.
                Err(down @ LinkError::ClusterDown { .. }) => return Err(down),
                Err(refused) => return Ok(Err(refused)),
            }
        }
    }
}

/// Reads the address in a `MOVED` answer of `node`. If the answer has no host, the host is that of
/// `node`: a node that does not know its own address leaves out the host.
fn redirected(node: &Node, to: &str) -> Result<Node, LinkError> {
    let parts = to.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let Some((host, port)) = parts else {
        return Err(LinkError::Garbled { cause: format!("a node names another one as {to:?}") });
    };
    let host = if host.is_empty() { &node.host } else { host };
    Ok(Node { host: host.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirection_names_host_and_port_or_only_the_port() {
        let node = Node { host: "a".to_owned(), port: 1 };
        for (to, expected) in
            [("10.0.0.2:7000", "10.0.0.2:7000"), ("::1:7000", "[::1]:7000"), (":7000", "a:7000")]
        {
            assert_eq!(redirected(&node, to).unwrap().to_string(), expected);
        }
        for to in ["", "a", "a:", "a:b", "a:99999"] {
            assert!(matches!(redirected(&node, to), Err(LinkError::Garbled { .. })), "{to}");
        }
    }
}
