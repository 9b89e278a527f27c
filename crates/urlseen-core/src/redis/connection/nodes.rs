//! Nodes in a `redis.url` with several hosts. Before each connection, urlseen asks the nodes which
//! server to use.

use std::fmt;

use tokio::time::timeout;

use super::address::{RedisAddress, RedisAddressError};
use super::cluster::Cluster;
use super::connect::Timeouts;
use super::sentinels::Sentinels;
use crate::redis::error::{LinkError, Retry};

/// Maximum number of nodes in a URL.
const MOST: usize = 32;

/// Nodes of a URL, and the way to ask them which server to use.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Lookup {
    Sentinels(Sentinels),
    Cluster(Cluster),
}

/// Host and port of a server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// Host name or IP address, without brackets.
    pub host: String,
    /// TCP port of the server.
    pub port: u16,
}

/// Parts of a URL `SCHEME+KIND://[login@]host[:port],…/path?settings`.
pub(super) struct NodesUrl<'a> {
    scheme: String,
    /// User and password with the `@` after them, or nothing.
    login: &'a str,
    hosts: &'a str,
    /// Text between the hosts and the settings, without slashes around it.
    pub(super) path: &'a str,
    settings: &'a str,
}

/// Nodes that did not tell which server to use, each with its error. `None` stands for a node that
/// did not answer in time.
pub(super) struct Failures(Vec<(Node, Option<LinkError>)>);

impl Lookup {
    /// Parses the URL of Sentinels or of a cluster. Returns `None` for a URL of another scheme. The
    /// host of the server is not known yet, so the returned address has the host of the first node.
    pub(super) fn parse(url: &str) -> Result<Option<(RedisAddress, Self)>, RedisAddressError> {
        if let Some((address, sentinels)) = Sentinels::parse(url)? {
            return Ok(Some((address, Self::Sentinels(sentinels))));
        }
        let cluster = Cluster::parse(url)?;
        Ok(cluster.map(|(address, cluster)| (address, Self::Cluster(cluster))))
    }

    /// Returns the text after the `+` in the scheme.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Sentinels(_) => super::sentinels::KIND,
            Self::Cluster(_) => super::cluster::KIND,
        }
    }
}

impl<'a> NodesUrl<'a> {
    /// Splits a URL. Returns `None` for a URL of another kind.
    pub(super) fn parse(url: &'a str, kind: &str) -> Option<Self> {
        let (scheme, rest) = url.trim().split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let scheme = scheme.strip_suffix(kind)?.strip_suffix('+')?;
        if !["redis", "rediss", "valkey", "valkeys"].contains(&scheme) {
            return None;
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (login, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        let (path, settings) = path.split_at(path.find(['?', '#']).unwrap_or(path.len()));
        let path = path.trim_matches('/');
        Some(Self { scheme: scheme.to_owned(), login, hosts, path, settings })
    }

    /// Parses the nodes. A host without a port gets the port `port`. Returns all nodes, and the
    /// address of the first node, with the database `db`.
    pub(super) fn nodes(
        &self,
        port: &str,
        db: &str,
    ) -> Result<(RedisAddress, Vec<Node>), RedisAddressError> {
        let Self { scheme, login, hosts, settings, .. } = self;
        let addresses = hosts.split(',').map(|host| {
            if host.is_empty() {
                return Err(RedisAddressError::NoHost);
            }
            let colon = if has_port(host) { String::new() } else { format!(":{port}") };
            RedisAddress::parse(&format!("{scheme}://{login}{host}{colon}/{db}{settings}"))
        });
        let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
        if addresses.len() > MOST {
            return Err(RedisAddressError::ManyNodes { most: MOST });
        }
        let nodes: Option<Vec<_>> = addresses.iter().map(RedisAddress::node).collect();
        let nodes = nodes.ok_or(RedisAddressError::Unreadable)?;
        let first = addresses.into_iter().next().ok_or(RedisAddressError::NoHost)?;
        Ok((first, nodes))
    }
}

/// Asks nodes in turn, and returns the first answer.
pub(super) async fn first_answer<T, Asked: Future<Output = Result<T, LinkError>>>(
    nodes: &[Node],
    timeouts: Timeouts,
    ask: impl Fn(Node) -> Asked,
) -> Result<T, Failures> {
    let mut failures = Failures(Vec::new());
    for node in nodes {
        // One node that does not answer must not use up the time for the other nodes.
        let failure = match timeout(timeouts.connect / 5, ask(node.clone())).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(failure)) => Some(failure),
            Err(_) => None,
        };
        failures.0.push((node.clone(), failure));
    }
    Err(failures)
}

impl Failures {
    /// Returns the error of the first node if no node can answer before an operator changes
    /// something. Otherwise joins the different errors of all nodes into one text, and returns
    /// `other` of this text.
    pub(super) fn into_error(self, other: impl FnOnce(String) -> LinkError) -> LinkError {
        let is_lasting = |failure: &LinkError| failure.retry() == Retry::Never;
        if self.0.iter().all(|(_, failure)| failure.as_ref().is_some_and(is_lasting))
            && let Some((_, Some(failure))) = self.0.first()
        {
            return failure.clone();
        }
        let cause = |(node, failure): &(Node, Option<LinkError>)| match failure {
            // In a cluster, all nodes can lead to the same one, which is away.
            Some(LinkError::Unreachable { address, cause }) => format!("{address}: {cause}"),
            Some(failure) => format!("{node}: {failure}"),
            None => format!("{node} does not answer"),
        };
        let mut causes: Vec<String> = self.0.iter().map(cause).collect();
        causes.sort();
        causes.dedup();
        other(causes.join("; "))
    }
}

/// Returns true if a port follows the host.
fn has_port(host: &str) -> bool {
    host.rsplit_once(']').map_or(host, |(_, after)| after).contains(':')
}

/// Joins nodes as in a URL.
pub(super) fn joined(nodes: &[Node]) -> String {
    nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_all_nodes_has_each_cause_once() {
        let away = LinkError::Unreachable { address: "b:2".to_owned(), cause: "gone".to_owned() };
        let node = |host: &str| Node { host: host.to_owned(), port: 1 };
        let failures = [
            (node("d"), None),
            (node("a"), Some(away.clone())),
            (node("b"), Some(away)),
            (node("c"), Some(LinkError::Loading)),
        ];
        let error =
            Failures(failures.into()).into_error(|causes| LinkError::NoClusterNode { causes });
        let LinkError::NoClusterNode { causes } = error else { panic!("{error}") };
        let causes: Vec<_> = causes.splitn(3, "; ").collect();
        assert_eq!(
            [causes[0], causes[2].rsplit("; ").next().unwrap()],
            ["b:2: gone", "d:1 does not answer"]
        );
        assert!(causes[1].starts_with("c:1: Redis is still loading"), "{causes:?}");
    }
}
