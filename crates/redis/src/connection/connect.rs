//! Functions that open a connection to Redis and log in.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::{Cmd, Value, cmd};
use tokio::time::{sleep, timeout};
use tokio_rustls::rustls;
use urlseen_filter::descriptors;

use super::link::Link;
use super::stream;
use super::tls::TlsFileError;
use crate::RedisAddress;
use crate::error::LinkError;
use crate::server_search::{Lookup, Node, Primary, Role, Servers};
use crate::server_search::{ask_sentinel, ask_sentinels, find_node, find_primary};

/// Pause between two questions to the Sentinels while a primary is in use.
const PAUSE: Duration = Duration::from_secs(1);

/// Time limits after which a connection counts as lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Limit for opening a connection, from the name look-up to the reply to the login.
    pub connect: Duration,
    /// Limit for the time in which Redis sends nothing while commands wait for replies. The limit
    /// must exceed the longest wait of a `BLMOVE`. It must also exceed the run time of the longest
    /// script of any client, because Redis answers nothing while a script runs.
    pub response: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), response: Duration::from_secs(30) }
    }
}

/// Finds the server, opens a connection, logs in with `AUTH` and `SELECT`, and sets a client name.
pub async fn connect(address: &RedisAddress) -> Result<Link, LinkError> {
    let opened = async {
        match &address.lookup {
            Lookup::Single => open(address).await,
            Lookup::Sentinels(name) => to_primary(address, name).await,
            Lookup::Cluster(key) => find_node(address, &address.nodes, key).await?.1,
        }
    };
    // A server without TLS reads the handshake as a command, and waits for the end of that command.
    let plain = if address.is_tls() { " (a port without TLS never gives one)" } else { "" };
    within(address.timeouts.connect, address.to_string(), plain, opened).await
}

/// Connects to the primary that the Sentinels name. The connection ends if the Sentinels later name
/// another primary.
async fn to_primary(address: &RedisAddress, name: &str) -> Result<Link, LinkError> {
    let Primary { node, mut connection, sentinel } =
        find_primary(address, &address.nodes, name).await?;
    connection.watch(Box::pin(watch(address.clone(), name.to_owned(), node, sentinel)));
    Ok(connection)
}

/// Asks the Sentinels again and again. Returns if one of them names another primary.
async fn watch(address: RedisAddress, name: String, old: Node, sentinel: Link) -> io::Error {
    let mut asked = Some(sentinel);
    loop {
        sleep(PAUSE).await;
        let found = match asked.take() {
            Some(mut link) => {
                ask_sentinel(&address, &mut link, &name).await.map(|found| (found, link))
            }
            None => ask_sentinels(&address, &address.nodes, &name).await,
        };
        // If no Sentinel answers, the primary may answer nevertheless.
        let Ok((new, link)) = found else { continue };
        if new != old {
            let text = format!("the Sentinels have switched {name} from {old} to {new}");
            return io::Error::new(io::ErrorKind::ConnectionAborted, text);
        }
        asked = Some(link);
    }
}

impl Servers for RedisAddress {
    type Connection = Link;
    type Error = LinkError;

    fn failed(error: LinkError) -> LinkError {
        error
    }

    async fn open(&self, node: &Node, role: Role) -> Result<Link, LinkError> {
        let server = self.at(node);
        let server = match role {
            // A Sentinel has no databases.
            Role::Sentinel => Self { user: None, password: None, db: 0, ..server },
            Role::SentinelWithLogin => Self { db: 0, ..server },
            Role::Primary | Role::ClusterNode => server,
        };
        within(self.limit(role), node.to_string(), "", open(&server)).await
    }

    async fn ask(&self, link: &mut Link, role: Role, command: &Cmd) -> Result<Value, LinkError> {
        let answer = timeout(self.limit(role), link.call(command)).await;
        answer.unwrap_or_else(|_| {
            let cause = "no answer in the time allowed".to_owned();
            Err(LinkError::LostConnection { cause })
        })
    }
}

impl RedisAddress {
    /// Returns the time limit for an answer in a search.
    fn limit(&self, role: Role) -> Duration {
        let Timeouts { connect, .. } = self.timeouts;
        if role == Role::Primary { connect } else { connect / 5 }
    }
}

/// Asks a single server for `INFO`, with the login and the database of `address`.
pub async fn info_at(address: &RedisAddress, node: &Node) -> Result<String, LinkError> {
    let server = address.at(node);
    let asked = async { open(&server).await?.query(&redis::cmd("INFO")).await };
    within(address.timeouts.connect, server.to_string(), "", asked).await
}

/// Waits for work with the server at `address`, up to a time limit. `hint` is the end of the error.
async fn within<T>(
    limit: Duration,
    address: String,
    hint: &str,
    work: impl Future<Output = Result<T, LinkError>>,
) -> Result<T, LinkError> {
    timeout(limit, work).await.unwrap_or_else(|_| {
        let cause = format!("no answer within {limit:?}{hint}");
        Err(LinkError::Unreachable { address, cause })
    })
}

/// Opens a connection to a single server and logs in.
pub(super) async fn open(address: &RedisAddress) -> Result<Link, LinkError> {
    let stream = stream::open(&address.place, &address.tls).await;
    let stream = stream.map_err(|error| closed(address, &error))?;
    log_in(address, Link::over(stream, address.timeouts.response)).await
}

/// Error for a connection that could not be opened.
fn closed(address: &RedisAddress, error: &io::Error) -> LinkError {
    let (address_text, cause) = (address.to_string(), error.to_string());
    let is_tls_error =
        error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>);
    let is_file_error =
        error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<TlsFileError>);
    match error.kind() {
        _ if let Some(remedy) = descriptors::remedy(error) => {
            let cause = format!("{error}; {remedy}");
            LinkError::NoDescriptor { address: address_text, cause }
        }
        _ if let Some(refused) = stream::certificate_error(error) => refused,
        _ if is_file_error => LinkError::TlsFile { cause },
        _ if is_tls_error => LinkError::Tls { address: address_text, cause },
        io::ErrorKind::PermissionDenied => LinkError::SocketForbidden { address: address_text },
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => hung_up(address),
        _ => LinkError::Unreachable { address: address_text, cause },
    }
}

/// Error for a server that closed the connection before it answered anything.
fn hung_up(address: &RedisAddress) -> LinkError {
    let is_tls = address.is_tls();
    let address = address.to_string();
    if is_tls { LinkError::TlsHungUp { address } } else { LinkError::HungUp { address } }
}

/// Logs in, selects the database and names the connection.
async fn log_in(address: &RedisAddress, mut link: Link) -> Result<Link, LinkError> {
    let hung_up = |trouble: LinkError| match trouble {
        LinkError::LostConnection { .. } => hung_up(address),
        other => other,
    };
    if let Some(password) = &address.password {
        let mut auth = redis::cmd("AUTH");
        auth.arg(&address.user).arg(password);
        let reply = link.call(&auth).await;
        reply.map_err(|trouble| of_auth(address, hung_up(trouble)))?;
    }
    if address.db != 0 {
        let mut select = redis::cmd("SELECT");
        let reply = link.call(select.arg(address.db)).await;
        reply.map_err(|trouble| of_select(address, hung_up(trouble)))?;
    }
    let mut name = redis::cmd("CLIENT");
    let reply = link.call(name.arg("SETNAME").arg("urlseen")).await;
    match reply.map_err(hung_up) {
        // A connection without a name works as well.
        Ok(_)
        | Err(
            LinkError::NoPermission { .. }
            | LinkError::UnknownCommand { .. }
            | LinkError::Refused { .. },
        ) => Ok(link),
        Err(trouble) => Err(trouble),
    }
}

/// Converts an error reply to `AUTH`. The result never repeats the reply, because the command held
/// the password.
fn of_auth(address: &RedisAddress, trouble: LinkError) -> LinkError {
    match trouble {
        LinkError::WrongPassword { .. } => {
            LinkError::WrongPassword { user: address.user.clone().unwrap_or("default".to_owned()) }
        }
        LinkError::Refused { code, .. } => {
            LinkError::Refused { code, reply: "in answer to AUTH".to_owned() }
        }
        other => other,
    }
}

/// Converts an error reply to `SELECT`. A refusal with a general code means that the number is out
/// of range.
fn of_select(address: &RedisAddress, trouble: LinkError) -> LinkError {
    match trouble {
        LinkError::Refused { .. } => LinkError::NoSuchDatabase { db: address.db },
        other => other,
    }
}

/// Asks the server for its time. Returns `None` if this user has no permission to ask.
///
/// # Errors
/// The connection is lost, or the server refuses its commands for now.
pub async fn server_time(link: &mut Link) -> Result<Option<SystemTime>, LinkError> {
    match link.call(&cmd("TIME")).await {
        Ok(reply) => {
            let parts = redis::from_redis_value::<(u64, u64)>(reply).ok();
            let since_1970 = parts.map(|(seconds, micros)| {
                Duration::from_secs(seconds).saturating_add(Duration::from_micros(micros))
            });
            Ok(since_1970.and_then(|since| UNIX_EPOCH.checked_add(since)))
        }
        Err(LinkError::NoPermission { .. } | LinkError::UnknownCommand { .. }) => Ok(None),
        Err(trouble) => Err(trouble),
    }
}
