//! Address and login of a Redis server: a checked `redis.url` that hides its password.

use redis::{ConnectionAddr, IntoConnectionInfo};
use std::fmt;
use std::sync::Arc;

use super::connect::Timeouts;
use super::tls::TlsFiles;
use crate::error::DEFAULT_ADDRESS;
use crate::nodes_url::NodesUrl;
use crate::server_search::{Lookup, Node, Nodes};

/// Allowed schemes of a `redis.url`. The Valkey names mean the same as the Redis names.
const SCHEMES: [&str; 7] =
    ["redis", "rediss", "unix", "redis+unix", "valkey", "valkeys", "valkey+unix"];

/// Maximum number of hosts in a URL.
const MOST: usize = 32;

/// Syntax of a `redis.url`, as the end of a sentence.
pub const ALLOWED: &str = "redis://[[user]:password@]host[:port][/database], the same with \
    rediss:// for TLS, redis+sentinel://host[:port],…/name[/database] for a primary that Sentinels \
    know, redis+cluster://host[:port],… for a Redis Cluster, or unix:///path/to/socket[?db=0]";

/// Address of a Redis server with database and login: everything that a connection needs.
///
/// `Display` and `Debug` show `***` for the password.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisAddress {
    /// One of the allowed [`SCHEMES`].
    pub(super) scheme: &'static str,
    /// Network address. The caller sends the login itself.
    pub(super) place: ConnectionAddr,
    /// Number of the database, as `SELECT` takes it.
    pub(super) db: u32,
    /// User of the login. `None` means Redis's `default` user.
    pub user: Option<String>,
    /// Password. Only the command `AUTH` may contain it.
    pub password: Option<String>,
    /// Files of encrypted connections.
    pub tls: Arc<TlsFiles>,
    /// Time limits of the connections.
    pub timeouts: Timeouts,
    /// Sentinels or cluster nodes that know the server's address. If there are any, `place` is the
    /// first of them.
    pub(super) nodes: Nodes,
    pub(super) lookup: Lookup,
}

/// Reason why a `redis.url` cannot be used. No message repeats anything after the scheme: a URL
/// that did not parse may hold a password anywhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // the messages explain the fields
pub enum RedisAddressError {
    /// Text that is no URL, or that cannot be split into the parts of one.
    #[error(
        "not a valid URL; write it like redis://127.0.0.1:6379/0, \
         rediss://user:password@host:6379/0 (TLS) or unix:///run/redis/redis.sock?db=0, and a \
         password with any of / ? # @ : % in it percent-encoded or in URLSEEN_REDIS_PASSWORD"
    )]
    Unreadable,
    /// Scheme of another kind of server, such as `http`.
    #[error(
        "{found}:// is not Redis; write redis:// for TCP, rediss:// for TLS or unix:// for a \
         socket file"
    )]
    Scheme { found: String },
    /// URL with Sentinels and without the name of the primary.
    #[error(
        "the name by which the Sentinels know the primary is missing or has a wrong character; \
         write it like redis+sentinel://10.0.0.1:26379,10.0.0.2:26379/mymaster"
    )]
    NoName,
    /// URL with too many hosts.
    #[error("there are more than {most} hosts; leave some of them out")]
    ManyNodes { most: usize },
    /// Database of a cluster that is not 0.
    #[error(
        "a Redis Cluster has only the database 0; leave the database out, like \
         redis+cluster://10.0.0.1:6379,10.0.0.2:6379"
    )]
    ClusterDatabase,
    /// URL without a host between `//` and `/`.
    #[error("the host is missing; write it like redis://127.0.0.1:6379/0")]
    NoHost,
    /// `0.0.0.0` or `::`: a server can listen on these addresses, but no client can connect to
    /// them.
    #[error(
        "0.0.0.0 and :: are addresses that only servers can listen on; write 127.0.0.1 for this \
         machine, or the server's own address"
    )]
    Wildcard,
    /// Socket path that is not absolute.
    #[error(
        "the absolute path of the socket file is missing; write it with three slashes, like \
         unix:///run/redis/redis.sock"
    )]
    SocketPath,
    /// Database that is not a number.
    #[error(
        "the database is not a number from 0; write it last, like redis://127.0.0.1:6379/0 or \
         unix:///run/redis/redis.sock?db=0"
    )]
    Database,
    /// Settings after `?` that have no meaning here.
    #[error(
        "there are unknown settings after the ?; unix:// takes db, user and pass, the others take \
         none, and a ? in a password is written %3F"
    )]
    Settings,
    /// Text after `#`, such as redis-rs's `#insecure`.
    #[error(
        "nothing may follow a #; certificates are always checked (no #insecure): name the file of \
         your own authority in redis.tls_ca instead, and write a # in a password as %23"
    )]
    Fragment,
    /// User name without a password. The connection would silently use the default user.
    #[error(
        "there is a user and no password; add one as user:password@, or set \
         URLSEEN_REDIS_PASSWORD (any text for a user with nopass)"
    )]
    NoPassword,
}

impl RedisAddress {
    /// Checks `url`. A `password` that is not empty replaces the password in the URL.
    pub fn new(url: &str, password: Option<String>) -> Result<Self, RedisAddressError> {
        let address = Self::parse(url)?.with_password(password);
        if address.lacks_password() { Err(RedisAddressError::NoPassword) } else { Ok(address) }
    }

    /// Returns the address of a server on this machine, at the usual port 6379.
    pub fn local() -> Self {
        Self::parse(DEFAULT_ADDRESS).expect("the default is valid")
    }

    /// Checks `url`, but does not require a password for its user. The password may be added later.
    pub fn parse(url: &str) -> Result<Self, RedisAddressError> {
        use RedisAddressError as Error;
        let single = ["redis", "rediss", "valkey", "valkeys"];
        if let Some(nodes) = NodesUrl::parse(url).filter(|it| single.contains(&&*it.scheme)) {
            return Self::parse_nodes(&nodes);
        }
        let (found, _) = url.trim().split_once("://").ok_or(Error::Unreadable)?;
        let Some(scheme) = SCHEMES.into_iter().find(|it| it.eq_ignore_ascii_case(found)) else {
            return Err(refused_scheme(found));
        };
        let parsed = redis::parse_redis_url(url.trim()).ok_or(Error::Unreadable)?;
        if parsed.fragment().is_some() {
            return Err(Error::Fragment);
        }
        let is_socket = scheme.ends_with("unix");
        let known = |name: &str| is_socket && matches!(name, "db" | "user" | "pass");
        if parsed.query_pairs().any(|(name, _)| !known(&name)) {
            return Err(Error::Settings);
        }
        let db = if is_socket {
            if parsed.host_str().is_some_and(|host| !host.is_empty()) || parsed.path().len() < 2 {
                return Err(Error::SocketPath);
            }
            parsed.query_pairs().find(|(name, _)| name == "db").map(|(_, db)| db.into_owned())
        } else {
            match parsed.host_str() {
                None | Some("") => return Err(Error::NoHost),
                Some("0.0.0.0" | "[::]") => return Err(Error::Wildcard),
                Some(_) => Some(parsed.path().trim_matches('/').to_owned()),
            }
        };
        let db = match db.as_deref() {
            None | Some("") => 0,
            Some(digits) => digits.parse().map_err(|_| Error::Database)?,
        };
        let info = parsed.into_connection_info().map_err(|_| Error::Unreadable)?;
        let login = info.redis_settings();
        let filled = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Ok(Self {
            scheme,
            place: info.addr().clone(),
            db,
            user: login.username().and_then(filled),
            password: login.password().and_then(filled),
            tls: Arc::default(),
            timeouts: Timeouts::default(),
            nodes: Nodes::default(),
            lookup: Lookup::Single,
        })
    }

    /// Checks a URL with several hosts. The host of the server is not known yet, so the address has
    /// the first host.
    fn parse_nodes(url: &NodesUrl<'_>) -> Result<Self, RedisAddressError> {
        use RedisAddressError as Error;
        if url.hosts.split(',').any(str::is_empty) {
            return Err(Error::NoHost);
        }
        if !url.has_valid_database() {
            return Err(Error::ClusterDatabase);
        }
        let addresses: Vec<_> =
            url.single().map(|url| Self::parse(&url)).collect::<Result<_, _>>()?;
        if addresses.len() > MOST {
            return Err(Error::ManyNodes { most: MOST });
        }
        let nodes: Option<Nodes> = addresses.iter().map(|it| Node::of(&it.place)).collect();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let lookup = match url.name {
            _ if !url.is_sentinel => Lookup::Cluster(String::new()),
            name if !name.is_empty() && name.chars().all(is_plain) => {
                Lookup::Sentinels(name.to_owned())
            }
            _ => return Err(Error::NoName),
        };
        let first = addresses.into_iter().next().ok_or(Error::NoHost)?;
        Ok(Self { nodes: nodes.ok_or(Error::Unreadable)?, lookup, ..first })
    }

    /// Replaces the password, unless the new password is missing or empty.
    #[must_use]
    pub fn with_password(mut self, password: Option<String>) -> Self {
        self.password = password.filter(|text| !text.is_empty()).or(self.password);
        self
    }

    /// Returns the address without its password.
    #[must_use]
    pub fn without_password(&self) -> Self {
        Self { password: None, ..self.clone() }
    }

    /// Returns true if there is a user without a password.
    pub fn lacks_password(&self) -> bool {
        self.user.is_some() && self.password.is_none()
    }

    /// Returns true if the connection is encrypted.
    pub fn is_tls(&self) -> bool {
        matches!(self.place, ConnectionAddr::TcpTls { .. })
    }

    /// Returns true if the server is a node of a Redis Cluster.
    pub fn is_cluster(&self) -> bool {
        matches!(self.lookup, Lookup::Cluster(_))
    }

    /// Returns the address for commands on `key`: see [`Lookup::for_key`].
    #[must_use]
    pub fn for_key(&self, key: &str) -> Self {
        Self { lookup: self.lookup.for_key(key), ..self.clone() }
    }

    /// Returns the address of a single server, with the login and the database of this address.
    pub(super) fn at(&self, node: &Node) -> Self {
        let mut address = Self { lookup: Lookup::Single, ..self.clone() };
        node.put(&mut address.place);
        address
    }
}

/// Makes the error for an unknown scheme. The error repeats the text only if it has the form of a
/// scheme, because other text may contain a password.
fn refused_scheme(found: &str) -> RedisAddressError {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    if !found.is_empty() && found.len() < 16 && found.chars().all(plain) {
        RedisAddressError::Scheme { found: found.to_ascii_lowercase() }
    } else {
        RedisAddressError::Unreadable
    }
}

impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, db, .. } = self;
        let user = self.user.as_deref().map(str::escape_debug);
        f.write_str(scheme)?;
        f.write_str(match self.lookup {
            Lookup::Single => "",
            Lookup::Sentinels(_) => "+sentinel",
            Lookup::Cluster(_) => "+cluster",
        })?;
        f.write_str("://")?;
        match &self.place {
            ConnectionAddr::Unix(path) => {
                write!(f, "{}?db={db}", path.display())?;
                if let Some(user) = user {
                    write!(f, "&user={user}")?;
                }
                if self.password.is_some() {
                    f.write_str("&pass=***")?;
                }
                Ok(())
            }
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                let password = if self.password.is_some() { ":***" } else { "" };
                let login = user.map_or_else(String::new, |user| user.to_string()) + password;
                if !login.is_empty() {
                    write!(f, "{login}@")?;
                }
                let nodes: Vec<String> = self.nodes.all.iter().map(Node::to_string).collect();
                match &self.lookup {
                    Lookup::Single => {
                        write!(f, "{}/{db}", Node { host: host.clone(), port: *port })
                    }
                    Lookup::Sentinels(name) => write!(f, "{}/{name}/{db}", nodes.join(",")),
                    Lookup::Cluster(_) => f.write_str(&nodes.join(",")),
                }
            }
            // The crate `redis` may add kinds of addresses, but no scheme of SCHEMES leads to a new
            // kind.
            other => write!(f, "{other}/{db}"),
        }
    }
}

impl fmt::Debug for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisAddress({self})")
    }
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
