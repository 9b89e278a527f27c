//! Search for the server, if a `redis.url` has several hosts. Before each connection, urlseen asks
//! these nodes: Sentinels name the primary, and nodes of a Redis Cluster lead to the node that
//! serves a key.
//!
//! A node that does not serve a key answers a command on the key with `MOVED` and the address of
//! the node that does. So the search begins at any node and follows these answers. A replica
//! answers the same way.

use std::time::Duration;
use std::{fmt, io};

use redis::{Value, cmd};
use tokio::time::{sleep, timeout};

use super::address::RedisAddress;
use super::connect::open;
use super::link::Link;
use crate::error::LinkError;

/// Pause between two rounds of questions to the Sentinels during the watch.
const PAUSE: Duration = Duration::from_secs(1);

/// Maximum number of `MOVED` answers that one search follows. While a slot changes its node, two
/// nodes may name each other.
const HOPS: usize = 4;

/// Way to find the server of an address.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Lookup {
    /// The address has only one server.
    Single,
    /// Sentinels name the primary that they know by this name.
    Sentinels(String),
    /// Nodes of a cluster lead to the node that serves this key.
    Cluster(String),
}

/// Host and port of a server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// Host name or IP address, without brackets.
    pub host: String,
    /// TCP port of the server.
    pub port: u16,
}

/// Nodes that did not tell which server to use, each with its error. `None` stands for a node that
/// did not answer in time.
struct Failures(Vec<(Node, Option<LinkError>)>);

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// Connects to the primary that the Sentinels name. The connection ends if the Sentinels later name
/// another primary.
pub(super) async fn to_primary(address: &RedisAddress, name: &str) -> Result<Link, LinkError> {
    let causes = |causes| LinkError::NoSentinel { name: name.to_owned(), causes };
    let found = first_answer(address, causes, async |node| {
        let mut sentinel = log_in_if_asked(address, &node).await?;
        let found = ask(&mut sentinel, name).await?;
        found.ok_or_else(|| LinkError::UnknownPrimary { name: name.to_owned() })
    });
    let found = found.await?;
    let primary = address.at(&found);
    let mut link = open(&primary).await?;
    let role = link.call(&cmd("ROLE")).await?;
    let role = role.as_sequence().and_then(<[_]>::first);
    if role != Some(&Value::BulkString(b"master".to_vec())) {
        let (name, address) = (name.to_owned(), primary.to_string());
        return Err(LinkError::NotPrimary { name, address });
    }
    link.watch(Box::pin(watch(address.clone(), name.to_owned(), found)));
    Ok(link)
}

/// Asks a Sentinel for the primary. Returns `None` if the Sentinel does not know the name.
async fn ask(link: &mut Link, name: &str) -> Result<Option<Node>, LinkError> {
    let mut question = cmd("SENTINEL");
    question.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
    let reply: Option<(String, u16)> = link.query(&question).await?;
    Ok(reply.map(|(host, port)| Node { host, port }))
}

/// Asks the Sentinels again and again. Returns if one of them names another primary.
async fn watch(address: RedisAddress, name: String, old: Node) -> io::Error {
    let mut nodes = address.nodes.iter().cycle();
    loop {
        let Some(node) = nodes.next() else { return std::future::pending().await };
        let Ok(Ok(mut link)) =
            timeout(address.timeouts.connect / 5, log_in_if_asked(&address, node)).await
        else {
            sleep(PAUSE).await;
            continue;
        };
        while let Ok(Ok(found)) = timeout(address.timeouts.connect / 5, ask(&mut link, &name)).await
        {
            if let Some(new) = found.filter(|new| *new != old) {
                let text = format!("the Sentinels have switched {name} from {old} to {new}");
                return io::Error::new(io::ErrorKind::ConnectionAborted, text);
            }
            sleep(PAUSE).await;
        }
    }
}

/// Connects to a Sentinel without a login. If the Sentinel requires one, logs in with the user and
/// the password of the primary.
async fn log_in_if_asked(address: &RedisAddress, node: &Node) -> Result<Link, LinkError> {
    let sentinel = address.at(node).without_database();
    match open(&sentinel.without_login()).await {
        Err(LinkError::AuthNeeded) if sentinel.password().is_some() => open(&sentinel).await,
        opened => opened,
    }
}
/// Connects to the node that serves the key.
pub(super) async fn to_node(address: &RedisAddress, key: &str) -> Result<Link, LinkError> {
    let causes = |causes| LinkError::NoClusterNode { causes };
    first_answer(address, causes, |node| follow(address, node, key)).await?
}

/// Follows the answers of nodes, beginning at `node`. The inner result is that of the node that
/// serves the key. The outer error says that no such node was found.
async fn follow(
    address: &RedisAddress,
    mut node: Node,
    key: &str,
) -> Result<Result<Link, LinkError>, LinkError> {
    let mut hops = 0;
    loop {
        let mut link = open(&address.at(&node)).await?;
        match link.call(cmd("TYPE").arg(key)).await {
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

/// Asks nodes in turn, and returns the first answer. If there is none, returns an error that may be
/// `other` of all causes.
async fn first_answer<T, Asked: Future<Output = Result<T, LinkError>>>(
    address: &RedisAddress,
    other: impl FnOnce(String) -> LinkError,
    ask: impl Fn(Node) -> Asked,
) -> Result<T, LinkError> {
    let mut failures = Failures(Vec::new());
    for node in &*address.nodes {
        // One node that does not answer must not use up the time for the other nodes.
        let failure = match timeout(address.timeouts.connect / 5, ask(node.clone())).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(failure)) => Some(failure),
            Err(_) => None,
        };
        failures.0.push((node.clone(), failure));
    }
    Err(failures.into_error(other))
}

impl Failures {
    /// Returns the error of the first node if no node can answer before an operator changes
    /// something. Otherwise joins the different errors of all nodes into one text, and returns
    /// `other` of this text.
    fn into_error(self, other: impl FnOnce(String) -> LinkError) -> LinkError {
        let is_lasting = |failure: &LinkError| !failure.is_passing();
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
