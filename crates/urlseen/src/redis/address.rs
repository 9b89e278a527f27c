//! Address of Redis: a single server, the nodes of a Redis Cluster, or Sentinels that know a
//! primary.
//!
//! Each connection to a cluster or by Sentinels begins with a new search for the server.

use std::fmt::Display;

use redis::{Client, ConnectionAddr, RedisResult};

use super::RedisOptions;
use super::cluster::Cluster;
use super::patience;
use super::sentinels::{PrimaryWatch, Sentinels};
use super::server::{Node, Nodes};
use crate::{Error, ErrorKind};

/// Ports of a Sentinel and of a node of a cluster, if the address has none.
const PORTS: [&str; 2] = ["26379", "6379"];

/// Files of encrypted connections, in PEM form.
#[cfg(feature = "tls")]
type Files = redis::TlsCertificates;
#[cfg(not(feature = "tls"))]
type Files = std::convert::Infallible;

/// Address of Redis, with the login.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct Address {
    /// Client of the only server, or of the first node.
    first: Client,
    lookup: Lookup,
    /// Name of the connections, as `CLIENT LIST` shows it.
    pub(super) client_name: Option<String>,
}

/// Way to find the server.
#[derive(Debug, Clone)]
enum Lookup {
    /// The address has only one server.
    Single,
    Sentinels(Sentinels),
    Cluster(Cluster),
}

impl Address {
    /// Parses an address. The error does not show the address, which may contain a password.
    ///
    /// # Errors
    /// The address is not valid.
    pub fn parse(url: &str) -> Result<Self, Error> {
        Self::parse_with(url, None, None)
    }

    /// Parses an address, whose connections have this name, and use these files if they are
    /// encrypted.
    ///
    /// # Errors
    /// The address or a file is not valid.
    pub fn parse_with(
        url: &str,
        client_name: Option<String>,
        files: Option<&Files>,
    ) -> Result<Self, Error> {
        let (scheme, rest) = url.trim().split_once("://").unwrap_or((url, ""));
        let scheme = scheme.to_ascii_lowercase();
        let Some((single, kind)) = scheme.split_once('+').filter(|(_, kind)| *kind != "unix")
        else {
            let first = client(url.trim(), files).map_err(|error| invalid(&error))?;
            return Ok(Self { first, lookup: Lookup::Single, client_name });
        };
        let is_sentinel = kind == "sentinel";
        if !is_sentinel && kind != "cluster" {
            return Err(invalid(&"the scheme is not known"));
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (login, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        let (path, settings) = path.split_at(path.find(['?', '#']).unwrap_or(path.len()));
        let path = path.trim_matches('/');
        let (name, database) = match path.split_once('/') {
            _ if !is_sentinel => ("", path),
            parts => parts.unwrap_or((path, "")),
        };
        if is_sentinel && name.is_empty() {
            return Err(invalid(&"the name of the primary is missing"));
        }
        if !is_sentinel && !["", "0"].contains(&database) {
            return Err(invalid(&"a Redis Cluster has only the database 0"));
        }
        let port = PORTS[usize::from(!is_sentinel)];
        let node = |host: &str| {
            let colon = if has_port(host) { String::new() } else { format!(":{port}") };
            client(&format!("{single}://{login}{host}{colon}/{database}{settings}"), files)
        };
        let nodes: RedisResult<Vec<Client>> = hosts.split(',').map(node).collect();
        let nodes = nodes.map_err(|error| invalid(&error))?;
        let first = nodes.first().ok_or_else(|| invalid(&"the host is missing"))?.clone();
        let nodes = Nodes::new(nodes);
        let lookup = if is_sentinel {
            Lookup::Sentinels(Sentinels { nodes, name: name.to_owned() })
        } else {
            Lookup::Cluster(Cluster { nodes, key: String::new() })
        };
        Ok(Self { first, lookup, client_name })
    }

    /// Returns true if the keys can be on several nodes.
    pub fn is_cluster(&self) -> bool {
        matches!(self.lookup, Lookup::Cluster(_))
    }

    /// Returns the address for commands on `key`, and on all keys in its slot. The server depends
    /// on the key only in a cluster.
    pub(super) fn for_key(&self, key: &str) -> Self {
        let mut address = self.clone();
        if let Lookup::Cluster(cluster) = &mut address.lookup {
            key.clone_into(&mut cluster.key);
        }
        address
    }

    /// Finds the host and the port of the server for `key`, or for any key if it is empty.
    ///
    /// # Errors
    /// The server cannot be found.
    pub fn server(&self, key: &str, options: &RedisOptions) -> Result<Node, Error> {
        let found = self.for_key(key).find(options);
        let (client, _) = found.map_err(|error| patience::last(&error, self.is_cluster()))?;
        match client.get_connection_info().addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                Ok((host.clone(), *port))
            }
            _ => Err(invalid(&"it is the path of a socket")),
        }
    }

    /// Finds the server. Returns it with a watch over its connections, if it is a primary that
    /// Sentinels name. Asks nothing if the address has only one server.
    pub(super) fn find(
        &self,
        options: &RedisOptions,
    ) -> RedisResult<(Client, Option<PrimaryWatch>)> {
        match &self.lookup {
            Lookup::Single => Ok((self.first.clone(), None)),
            Lookup::Cluster(cluster) => Ok((cluster.find(options)?, None)),
            Lookup::Sentinels(sentinels) => {
                sentinels.find(&self.first, options).map(|(client, watch)| (client, Some(watch)))
            }
        }
    }
}

/// Returns the client of a server.
fn client(url: &str, files: Option<&Files>) -> RedisResult<Client> {
    match files {
        #[cfg(feature = "tls")]
        Some(files) => Client::build_with_tls(url, files.clone()),
        #[cfg(not(feature = "tls"))]
        Some(files) => match *files {},
        None => Client::open(url),
    }
}

/// Returns true if a port follows the host.
fn has_port(host: &str) -> bool {
    host.rsplit_once(']').map_or(host, |(_, after)| after).contains(':')
}

fn invalid(cause: &dyn Display) -> Error {
    let text = format!(
        "the address of Redis is not valid: {cause}; write it as redis://HOST:PORT/, \
         redis+cluster://HOST:PORT,… or redis+sentinel://HOST:PORT,…/NAME"
    );
    Error::new(ErrorKind::Spec, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(url: &str) -> String {
        let address = Address::parse(url).unwrap();
        let clients = match &address.lookup {
            Lookup::Single => std::slice::from_ref(&address.first),
            Lookup::Sentinels(Sentinels { nodes, .. }) | Lookup::Cluster(Cluster { nodes, .. }) => {
                &nodes.all
            }
        };
        let shown = clients.iter().map(|it| {
            let info = it.get_connection_info();
            let login = info.redis_settings();
            let login = [login.username(), login.password()].map(Option::unwrap_or_default);
            format!("{}@{}/{}", login.join(":"), info.addr(), info.redis_settings().db())
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_address_has_one_server_or_several_nodes() {
        for (url, expected) in [
            ("redis://ann:geheim@a:1/2", "ann:geheim@a:1/2"),
            ("redis+unix:///s", ":@/s/0"),
            ("redis+cluster://a,b:2", ":@a:6379/0 :@b:2/0"),
            ("Valkey+Cluster://:g%40@[::1],[::1]:2/0", ":g@@::1:6379/0 :g@@::1:2/0"),
            ("redis+sentinel://ann:g@a,b:2/mymaster/3", "ann:g@a:26379/3 ann:g@b:2/3"),
        ] {
            assert_eq!(servers(url), expected, "{url}");
        }
        let key = |address: Address| match address.lookup {
            Lookup::Cluster(cluster) => cluster.key,
            _ => String::new(),
        };
        assert_eq!(key(Address::parse("redis+cluster://a").unwrap().for_key("k")), "k");
    }

    #[test]
    fn a_wrong_address_is_refused_without_its_password() {
        for url in [
            "redis+cluster://:geheim@a/1",
            "redis+cluster://:geheim@a,,b",
            "redis+cluster://",
            "redis+sentinel://:geheim@a",
            "redis+other://:geheim@a",
            "other+cluster://:geheim@a",
            "geheim",
        ] {
            let error = Address::parse(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Spec);
            let text = error.to_string();
            assert!(
                text.contains("redis+cluster://HOST:PORT,…") && !text.contains("geheim"),
                "{text}"
            );
        }
    }
}
