//! Search for the server of an address: the primary that Sentinels name, or the node of a Redis
//! Cluster that serves a key.
//!
//! The search uses blocking connections of the crate `redis`, also for tasks, which run it on a
//! thread for blocking calls. The daemon's own search needs tokio and rustls, which the feature
//! `redis` must not need. `ClusterConnection` of that crate repeats calls by itself, so the
//! library does not use it.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use redis::{Client, Connection, ConnectionAddr, RedisConnectionInfo, RedisError, RedisResult};
use redis::{Value, cmd};

use super::RedisOptions;
use super::address::{Address, Lookup};
use urlseen_redis::error::LinkError;

/// Time between two questions to the Sentinels, and after a question without an answer.
const LOOK: Duration = Duration::from_secs(1);
const LATER_LOOK: Duration = Duration::from_secs(10);

/// Maximum number of `MOVED` answers that one search follows. While a slot changes its node, two
/// nodes may name each other.
const HOPS: usize = 4;

/// Host and port of a server.
pub(super) type Node = (String, u16);

/// Watch over a connection to the primary. An old primary that the Sentinels cannot reach goes on
/// answering, and its writes are lost.
pub(super) struct PrimaryWatch {
    address: Address,
    name: String,
    primary: Node,
    /// Connection to the Sentinel that gave the last answer.
    connection: Option<Connection>,
    next_look: Instant,
}

impl Address {
    /// Finds the server. Returns it with a watch over its connections, if it is a primary that
    /// Sentinels name. Asks nothing if the address has only one server.
    pub(super) fn find(
        &self,
        options: &RedisOptions,
    ) -> RedisResult<(Client, Option<PrimaryWatch>)> {
        match &self.lookup {
            Lookup::Single => Ok((self.nodes[0].clone(), None)),
            Lookup::Sentinels(name) => {
                self.find_primary(name, options).map(|(client, watch)| (client, Some(watch)))
            }
            Lookup::Cluster(key) => {
                let failure = "no node of the Redis Cluster leads to the node that serves the keys";
                let found = self.first_answer(failure, |node| follow(node.clone(), key, options));
                Ok((found?, None))
            }
        }
    }

    /// Finds the primary that the Sentinels name.
    fn find_primary(
        &self,
        name: &str,
        options: &RedisOptions,
    ) -> RedisResult<(Client, PrimaryWatch)> {
        let (primary, sentinel) = self.ask_sentinels(name, options)?;
        let client = at(&self.nodes[0], &primary.0, primary.1)?;
        let role: Value = cmd("ROLE").query(&mut open(&client, options)?)?;
        let role = role.as_sequence().and_then(<[_]>::first);
        if role != Some(&Value::BulkString(b"master".to_vec())) {
            let (host, port) = primary;
            let text = format!("the Sentinels name {host}:{port}, which is not a primary");
            return Err(unreachable(text));
        }
        let (address, name, next_look) = (self.clone(), name.to_owned(), Instant::now() + LOOK);
        let watch = PrimaryWatch { address, name, primary, connection: Some(sentinel), next_look };
        Ok((client, watch))
    }

    /// Asks the Sentinels in turn for the primary. Returns the connection to the Sentinel that
    /// answered.
    fn ask_sentinels(&self, name: &str, options: &RedisOptions) -> RedisResult<(Node, Connection)> {
        self.first_answer(&format!("no Sentinel names {name}"), |sentinel| {
            let mut connection = log_in_if_asked(sentinel, options)?;
            let primary = ask(&mut connection, name)?;
            Ok((primary, connection))
        })
    }

    /// Asks the nodes in turn, and returns the first answer. Begins with the node that gave the
    /// last answer. If no node can answer before an operator changes something, returns the first
    /// error.
    fn first_answer<T>(
        &self,
        failure: &str,
        ask: impl Fn(&Client) -> RedisResult<T>,
    ) -> RedisResult<T> {
        let (mut errors, first) = (Vec::<RedisError>::new(), self.first.load(Relaxed));
        let nodes = self.nodes.iter().enumerate();
        for (place, node) in nodes.cycle().skip(first).take(self.nodes.len()) {
            match ask(node) {
                Ok(answer) => {
                    self.first.store(place, Relaxed);
                    return Ok(answer);
                }
                Err(error) => errors.push(error),
            }
        }
        let is_lasting = |error: &RedisError| !LinkError::from(error.clone()).is_passing();
        match errors.first() {
            Some(first) if errors.iter().all(is_lasting) => Err(first.clone()),
            _ => {
                let causes: Vec<_> = errors.iter().map(ToString::to_string).collect();
                Err(unreachable(format!("{failure}: {}", causes.join("; "))))
            }
        }
    }
}

impl PrimaryWatch {
    /// Returns true if it is time to ask the Sentinels again.
    pub(super) fn is_due(&self) -> bool {
        Instant::now() >= self.next_look
    }

    /// Returns true if the Sentinels name another primary now. Asks them only once in a while.
    pub(super) fn is_over(&mut self, options: &RedisOptions) -> bool {
        if !self.is_due() {
            return false;
        }
        let kept = self.connection.take().and_then(|mut connection| {
            let primary = ask(&mut connection, &self.name).ok()?;
            Some((primary, connection))
        });
        let found = kept.map_or_else(|| self.address.ask_sentinels(&self.name, options), Ok);
        // If no Sentinel answers, the primary may answer nevertheless.
        let (pause, is_over) = match found {
            Ok((primary, connection)) => {
                self.connection = Some(connection);
                (LOOK, primary != self.primary)
            }
            Err(_) => (LATER_LOOK, false),
        };
        self.next_look = Instant::now() + pause;
        is_over
    }
}

/// Asks a Sentinel for the primary.
fn ask(connection: &mut Connection, name: &str) -> RedisResult<Node> {
    let mut question = cmd("SENTINEL");
    question.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
    let found: Option<Node> = question.query(connection)?;
    found.ok_or_else(|| {
        let text =
            format!("the Sentinels know no primary {name}; SENTINEL MASTERS shows the names");
        (redis::ErrorKind::InvalidClientConfig, "wrong address", text).into()
    })
}

/// Connects to a Sentinel without a login. If the Sentinel requires one, logs in with the user and
/// the password of the primary.
fn log_in_if_asked(sentinel: &Client, options: &RedisOptions) -> RedisResult<Connection> {
    let info = sentinel.get_connection_info();
    let login = info.redis_settings().clone().set_db(0);
    let as_user =
        |settings| open(&Client::open(info.clone().set_redis_settings(settings))?, options);
    let mut connection = as_user(RedisConnectionInfo::default())?;
    match cmd("PING").query::<()>(&mut connection) {
        Err(error)
            if login.password().is_some()
                && LinkError::from(error.clone()) == LinkError::AuthNeeded =>
        {
            as_user(login)
        }
        asked => asked.map(|()| connection),
    }
}

/// Follows the answers of nodes, beginning at `node`, to the node that serves `key`. A replica also
/// answers with the address of its primary.
fn follow(node: Client, key: &str, options: &RedisOptions) -> RedisResult<Client> {
    let question = if key.is_empty() { cmd("PING") } else { cmd("TYPE").arg(key).clone() };
    let mut client = node;
    for _ in 0..=HOPS {
        let asked = question.query::<Value>(&mut open(&client, options)?);
        let Err(error) = asked else { return Ok(client) };
        match LinkError::from(error.clone()) {
            LinkError::Moved { to, .. } => {
                let (host, port) = to.rsplit_once(':').ok_or_else(|| error.clone())?;
                client = at(&client, host, port.parse().map_err(|_| error)?)?;
            }
            // The slot is being moved. Its node still answers for the keys that it has.
            LinkError::SlotMoving { .. } => return Ok(client),
            _ => return Err(error),
        }
    }
    Err(unreachable("the nodes do not agree about the slot of the keys".to_owned()))
}

/// Connects to a server, to ask it for another one.
fn open(client: &Client, options: &RedisOptions) -> RedisResult<Connection> {
    let connection = client.get_connection_with_timeout(options.connect_timeout)?;
    connection.set_read_timeout(Some(options.connect_timeout))?;
    connection.set_write_timeout(Some(options.connect_timeout))?;
    Ok(connection)
}

/// Returns a client for another server with the same login. A node that does not know its own
/// address leaves out the host, which then is the same.
fn at(client: &Client, host: &str, port: u16) -> RedisResult<Client> {
    let info = client.get_connection_info().clone();
    let mut addr = info.addr().clone();
    match &mut addr {
        ConnectionAddr::Tcp(old_host, old_port)
        | ConnectionAddr::TcpTls { host: old_host, port: old_port, .. } => {
            if !host.is_empty() {
                host.clone_into(old_host);
            }
            *old_port = port;
        }
        _ => {}
    }
    Client::open(info.set_addr(addr))
}

/// Error for a server that cannot be found now.
fn unreachable(text: String) -> RedisError {
    io::Error::new(io::ErrorKind::NotConnected, text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirection_names_host_and_port_or_only_the_port() {
        let client = Client::open("redis://:geheim@a:1/").unwrap();
        for (host, expected) in [("", "a:2"), ("b", "b:2")] {
            let found = at(&client, host, 2).unwrap();
            assert_eq!(found.get_connection_info().addr().to_string(), expected);
            assert_eq!(found.get_connection_info().redis_settings().password(), Some("geheim"));
        }
    }
}
