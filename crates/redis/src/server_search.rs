//! Search for the server, if an address has several hosts. Before each connection, urlseen asks
//! these nodes: Sentinels name the primary, and nodes of a Redis Cluster lead to the node that
//! serves a key.
//!
//! A node that does not serve a key answers a command on the key with `MOVED` and the address of
//! the node that does. So the search begins at any node and follows these answers. A replica
//! answers the same way.
//!
//! The daemon searches in a task, and the library on a thread. Each implements [`Servers`].

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use redis::{Cmd, ConnectionAddr, Value, cmd, from_redis_value};

use crate::error::LinkError;

/// Maximum number of `MOVED` answers that one search follows. While a slot changes its node, two
/// nodes may name each other.
const HOPS: usize = 4;

/// Way to find the server of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// The address has only one server.
    Single,
    /// Sentinels name the primary that they know by this name.
    Sentinels(String),
    /// Nodes of a cluster lead to the node that serves this key, or any node if the key is empty.
    Cluster(String),
}

impl Lookup {
    /// Returns the lookup for commands on `key`, and on all keys in its slot. The server depends on
    /// the key only in a cluster.
    #[must_use]
    pub fn for_key(&self, key: &str) -> Self {
        match self {
            Self::Cluster(_) => Self::Cluster(key.to_owned()),
            other => other.clone(),
        }
    }
}

/// Host and port of a server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// Host name or IP address, without brackets.
    pub host: String,
    /// TCP port of the server.
    pub port: u16,
}

impl Node {
    /// Returns host and port of a network address; `None` for a socket file.
    pub fn of(address: &ConnectionAddr) -> Option<Self> {
        match address {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                Some(Self { host: host.clone(), port: *port })
            }
            _ => None,
        }
    }

    /// Puts host and port into a network address.
    pub fn put(&self, address: &mut ConnectionAddr) {
        match address {
            ConnectionAddr::TcpTls { host, port, .. } => {
                (*host, *port) = (self.host.clone(), self.port);
            }
            address => *address = ConnectionAddr::Tcp(self.host.clone(), self.port),
        }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// Nodes of an address. Clones share the memory of the node that answered last, where the next
/// search begins.
#[derive(Debug, Clone, Default)]
pub struct Nodes {
    /// Nodes in the order of the address.
    pub all: Arc<[Node]>,
    first: Arc<AtomicUsize>,
}

impl FromIterator<Node> for Nodes {
    fn from_iter<T: IntoIterator<Item = Node>>(nodes: T) -> Self {
        Self { all: nodes.into_iter().collect(), first: Arc::default() }
    }
}

impl PartialEq for Nodes {
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
    }
}

impl Eq for Nodes {}

/// Part of a server in a search, which decides about login and time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Sentinel without a login.
    Sentinel,
    /// Sentinel that requires a login: the user and the password of the primary.
    SentinelWithLogin,
    /// Primary that the Sentinels name.
    Primary,
    /// Cluster node, with the login and the database 0.
    ClusterNode,
}

/// Access to servers for a search. A server that does not answer must not use up the time for the
/// other servers.
pub trait Servers: Sync {
    /// Open connection to a server.
    type Connection: Send;
    /// Error of a connection.
    type Error: Clone + fmt::Display + Into<LinkError> + Send;

    /// Makes the error of a failed search.
    fn failed(error: LinkError) -> Self::Error;

    /// Opens a connection to a server.
    fn open(
        &self,
        node: &Node,
        role: Role,
    ) -> impl Future<Output = Result<Self::Connection, Self::Error>> + Send;

    /// Sends a command and waits for its reply.
    fn ask(
        &self,
        connection: &mut Self::Connection,
        role: Role,
        command: &Cmd,
    ) -> impl Future<Output = Result<Value, Self::Error>> + Send;
}

/// Primary that Sentinels have named.
pub struct Primary<C> {
    /// Network address of the primary.
    pub node: Node,
    /// Connection to the primary.
    pub connection: C,
    /// Connection to the Sentinel that named the primary.
    pub sentinel: C,
}

/// Finds the primary that the Sentinels name.
///
/// # Errors
/// No Sentinel names a primary, or the named server is none.
pub async fn find_primary<S: Servers>(
    servers: &S,
    sentinels: &Nodes,
    name: &str,
) -> Result<Primary<S::Connection>, S::Error> {
    let (node, sentinel) = ask_sentinels(servers, sentinels, name).await?;
    let mut connection = servers.open(&node, Role::Primary).await?;
    let role = servers.ask(&mut connection, Role::Primary, &cmd("ROLE")).await?;
    let role = role.as_sequence().and_then(<[_]>::first);
    if role != Some(&Value::BulkString(b"master".to_vec())) {
        let (name, address) = (name.to_owned(), node.to_string());
        return Err(S::failed(LinkError::NotPrimary { name, address }));
    }
    Ok(Primary { node, connection, sentinel })
}

/// Asks the Sentinels in turn for the primary. Also returns the connection to the Sentinel that
/// answered.
///
/// # Errors
/// No Sentinel names a primary.
pub async fn ask_sentinels<S: Servers>(
    servers: &S,
    sentinels: &Nodes,
    name: &str,
) -> Result<(Node, S::Connection), S::Error> {
    let failed = |causes| LinkError::NoSentinel { name: name.to_owned(), causes };
    first_answer::<S, _, _>(sentinels, failed, async |sentinel| {
        match ask_as(servers, &sentinel, Role::Sentinel, name).await {
            Err(error) if error.clone().into() == LinkError::AuthNeeded => {
                ask_as(servers, &sentinel, Role::SentinelWithLogin, name).await
            }
            asked => asked,
        }
    })
    .await
}

async fn ask_as<S: Servers>(
    servers: &S,
    sentinel: &Node,
    role: Role,
    name: &str,
) -> Result<(Node, S::Connection), S::Error> {
    let mut connection = servers.open(sentinel, role).await?;
    Ok((ask_sentinel(servers, &mut connection, name).await?, connection))
}

/// Asks a Sentinel for the primary.
///
/// # Errors
/// The Sentinel does not answer, or does not know the name.
pub async fn ask_sentinel<S: Servers>(
    servers: &S,
    sentinel: &mut S::Connection,
    name: &str,
) -> Result<Node, S::Error> {
    let mut question = cmd("SENTINEL");
    question.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
    let reply = servers.ask(sentinel, Role::Sentinel, &question).await?;
    let garbled = |error: redis::ParsingError| LinkError::Garbled { cause: error.to_string() };
    let found: Option<(String, u16)> =
        from_redis_value(reply).map_err(|error| S::failed(garbled(error)))?;
    let unknown = || S::failed(LinkError::UnknownPrimary { name: name.to_owned() });
    found.map(|(host, port)| Node { host, port }).ok_or_else(unknown)
}

/// Node of a cluster, and the connection to it. If the node refused the command on the key, its
/// error is in place of the connection.
pub(crate) type ClusterNode<S> = (Node, Result<<S as Servers>::Connection, <S as Servers>::Error>);

/// Finds the node of a cluster that serves a key.
///
/// # Errors
/// No node leads to the node that serves the key.
pub async fn find_node<S: Servers>(
    servers: &S,
    nodes: &Nodes,
    key: &str,
) -> Result<ClusterNode<S>, S::Error> {
    let failed = |causes| LinkError::NoClusterNode { causes };
    first_answer::<S, _, _>(nodes, failed, |node| follow(servers, node, key)).await
}

/// Follows the answers of nodes, beginning at `node`.
async fn follow<S: Servers>(
    servers: &S,
    mut node: Node,
    key: &str,
) -> Result<ClusterNode<S>, S::Error> {
    let question = if key.is_empty() { cmd("PING") } else { cmd("TYPE").arg(key).clone() };
    let mut hops = 0;
    loop {
        let mut connection = servers.open(&node, Role::ClusterNode).await?;
        let Err(error) = servers.ask(&mut connection, Role::ClusterNode, &question).await else {
            return Ok((node, Ok(connection)));
        };
        match error.clone().into() {
            LinkError::Moved { to, .. } if hops < HOPS => {
                node = redirected(&node, &to).map_err(S::failed)?;
                hops += 1;
            }
            // A node that is cut off from the cluster does not know the present state.
            LinkError::ClusterDown { .. } => return Err(error),
            _ => return Ok((node, Err(error))),
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

/// Asks nodes in turn, beginning with the node that answered last, and returns the first answer. If
/// there is none, returns an error that may be `other` of all causes.
async fn first_answer<S: Servers, T, Asked: Future<Output = Result<T, S::Error>>>(
    nodes: &Nodes,
    other: impl FnOnce(String) -> LinkError,
    ask: impl Fn(Node) -> Asked,
) -> Result<T, S::Error> {
    let (mut failures, first) = (Vec::new(), nodes.first.load(Relaxed));
    let all = nodes.all.iter().enumerate().cycle();
    for (place, node) in all.skip(first).take(nodes.all.len()) {
        match ask(node.clone()).await {
            Ok(answer) => {
                nodes.first.store(place, Relaxed);
                return Ok(answer);
            }
            Err(error) => failures.push((node, error)),
        }
    }
    Err(joined::<S>(failures, other))
}

/// Returns the error of the first node if no node can answer before an operator changes something.
/// Otherwise joins the different errors of all nodes into one text, and returns `other` of this
/// text.
fn joined<S: Servers>(
    failures: Vec<(&Node, S::Error)>,
    other: impl FnOnce(String) -> LinkError,
) -> S::Error {
    let is_lasting = |(_, error): &(_, S::Error)| !error.clone().into().is_passing();
    if failures.iter().all(is_lasting)
        && let Some((_, error)) = failures.first()
    {
        return error.clone();
    }
    let mut causes: Vec<_> = failures
        .into_iter()
        .map(|(node, error)| match error.into() {
            // In a cluster, all nodes can lead to the same one, which is away.
            LinkError::Unreachable { address, cause } => format!("{address}: {cause}"),
            error => format!("{node}: {error}"),
        })
        .collect();
    causes.sort();
    causes.dedup();
    S::failed(other(causes.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoServers;

    impl Servers for NoServers {
        type Connection = ();
        type Error = LinkError;

        fn failed(error: LinkError) -> LinkError {
            error
        }

        async fn open(&self, _: &Node, _: Role) -> Result<(), LinkError> {
            Err(LinkError::Loading)
        }

        async fn ask(&self, (): &mut (), _: Role, _: &Cmd) -> Result<Value, LinkError> {
            Err(LinkError::Loading)
        }
    }

    #[test]
    fn the_error_of_all_nodes_has_each_cause_once() {
        let away = LinkError::Unreachable { address: "b:2".to_owned(), cause: "gone".to_owned() };
        let node = |host: &str| Node { host: host.to_owned(), port: 1 };
        let nodes = ["a", "b", "c"].map(node);
        let errors = [away.clone(), away, LinkError::Loading];
        let failures = nodes.iter().zip(errors).collect();
        let error = joined::<NoServers>(failures, |causes| LinkError::NoClusterNode { causes });
        let LinkError::NoClusterNode { causes } = error else { panic!("{error}") };
        let (one, other) = causes.split_once("; ").unwrap();
        assert_eq!(one, "b:2: gone");
        assert!(other.starts_with("c:1: Redis is still loading"), "{causes}");
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
