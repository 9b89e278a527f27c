//! Address of Redis: a single server, the nodes of a Redis Cluster, or Sentinels that know a
//! primary.
//!
//! Each connection to a cluster or by Sentinels begins with a new search for the server.

use std::fmt::Display;

use redis::{Client, RedisResult};

use crate::{Error, ErrorKind};
use urlseen_redis::nodes_url::NodesUrl;
use urlseen_redis::server_search::{Lookup, Node, Nodes};

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
    pub(super) client: Client,
    /// Sentinels or cluster nodes that know the server.
    pub(super) nodes: Nodes,
    pub(super) lookup: Lookup,
    /// Name of the connections, as `CLIENT LIST` shows it.
    pub(super) client_name: Option<String>,
}

impl Address {
    /// Parses an address, whose connections have this name, and use these files if they are
    /// encrypted. The error does not show the address, which may contain a password.
    ///
    /// # Errors
    /// The address or a file is not valid.
    pub fn parse(
        url: &str,
        client_name: Option<String>,
        files: Option<&Files>,
    ) -> Result<Self, Error> {
        let nodes = NodesUrl::parse(url);
        let scheme = url.split_once("://").map_or(url, |(scheme, _)| scheme);
        let kind = scheme.split_once('+').map_or("unix", |(_, kind)| kind);
        if nodes.is_none() && !kind.eq_ignore_ascii_case("unix") {
            return Err(invalid(&"the scheme is not known"));
        }
        let lookup = match &nodes {
            None => Lookup::Single,
            Some(url) if url.is_sentinel && url.name.is_empty() => {
                return Err(invalid(&"the name of the primary is missing"));
            }
            Some(url) if !url.has_valid_database() => {
                return Err(invalid(&"a Redis Cluster has only the database 0"));
            }
            Some(url) if url.is_sentinel => Lookup::Sentinels(url.name.to_owned()),
            Some(_) => Lookup::Cluster(String::new()),
        };
        let urls = nodes.map_or_else(|| vec![url.trim().to_owned()], |url| url.single().collect());
        let clients: RedisResult<Vec<_>> = urls.iter().map(|url| client(url, files)).collect();
        let clients = clients.map_err(|error| invalid(&error))?;
        let has_search = lookup != Lookup::Single;
        let nodes = clients.iter().filter(|_| has_search);
        let nodes = nodes.filter_map(|it| Node::of(it.get_connection_info().addr())).collect();
        let client = clients.into_iter().next().ok_or_else(|| invalid(&"there is no host"))?;
        Ok(Self { client, nodes, lookup, client_name })
    }

    /// Returns true if the keys can be on several nodes.
    pub fn is_cluster(&self) -> bool {
        matches!(self.lookup, Lookup::Cluster(_))
    }

    /// Returns the address for commands on `key`: see [`Lookup::for_key`].
    pub(super) fn for_key(&self, key: &str) -> Self {
        Self { lookup: self.lookup.for_key(key), ..self.clone() }
    }

    /// Returns the client of another server with the same login.
    pub(super) fn at(&self, node: &Node) -> RedisResult<Client> {
        let info = self.client.get_connection_info().clone();
        let mut addr = info.addr().clone();
        node.put(&mut addr);
        Client::open(info.set_addr(addr))
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
        let address = Address::parse(url, None, None).unwrap();
        let nodes = address.nodes.all.iter().map(|node| address.at(node).unwrap());
        let single = Some(address.client.clone()).filter(|_| address.lookup == Lookup::Single);
        let shown = nodes.chain(single).map(|it| {
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
            Lookup::Cluster(key) => key,
            _ => String::new(),
        };
        assert_eq!(key(Address::parse("redis+cluster://a", None, None).unwrap().for_key("k")), "k");
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
            let error = Address::parse(url, None, None).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Spec);
            let text = error.to_string();
            assert!(
                text.contains("redis+cluster://HOST:PORT,…") && !text.contains("geheim"),
                "{text}"
            );
        }
    }
}
