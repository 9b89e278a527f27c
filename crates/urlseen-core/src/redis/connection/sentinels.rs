//! Sentinels of a primary: their part of a `redis.url`, the look-up of the primary, and the watch
//! for a switch to another primary.

use std::fmt;
use std::io;
use std::time::Duration;

use redis::cmd;
use tokio::time::{sleep, timeout};

use super::address::{RedisAddress, RedisAddressError};
use super::connect::{Timeouts, open};
use super::link::Link;
use crate::redis::error::LinkError;

/// Part of a scheme that announces Sentinels.
const SUFFIX: &str = "+sentinel";

/// Port of a Sentinel whose port is not in the URL.
const PORT: &str = "26379";

/// Maximum number of Sentinels in a URL.
const MOST: usize = 32;

/// Pause between two questions of the watch.
const PAUSE: Duration = Duration::from_secs(1);

/// Sentinels, and the name by which they know the primary.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Sentinels {
    nodes: Vec<Node>,
    name: String,
}

/// Host and port of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Sentinels {
    /// Parses `SCHEME+sentinel://[login@]host[:port],…/name[/database]`. Returns `None` for a URL
    /// of another scheme. The address is that of the primary without its host, and has the host of
    /// the first Sentinel.
    pub(super) fn parse(url: &str) -> Result<Option<(RedisAddress, Self)>, RedisAddressError> {
        let Some((scheme, rest)) = url.trim().split_once("://") else { return Ok(None) };
        let scheme = scheme.to_ascii_lowercase();
        let Some(base) = scheme.strip_suffix(SUFFIX) else { return Ok(None) };
        if !["redis", "rediss", "valkey", "valkeys"].contains(&base) {
            return Ok(None);
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (format!("{login}@"), hosts),
            None => (String::new(), authority),
        };
        let end = path.find(['?', '#']).unwrap_or(path.len());
        let (path, settings) = path.split_at(end);
        let (name, db) = path.trim_matches('/').split_once('/').unwrap_or((path, ""));
        let name = name.trim_matches('/');
        let mut found: Option<RedisAddress> = None;
        let mut nodes = Vec::new();
        for host in hosts.split(',') {
            if host.is_empty() {
                return Err(RedisAddressError::NoHost);
            }
            let colon = if has_port(host) { String::new() } else { format!(":{PORT}") };
            let url = format!("{base}://{login}{host}{colon}/{db}{settings}");
            let address = RedisAddress::parse(&url)?;
            nodes.push(address.node().ok_or(RedisAddressError::Unreadable)?);
            found.get_or_insert(address);
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err(RedisAddressError::NoName);
        }
        if nodes.len() > MOST {
            return Err(RedisAddressError::ManyNodes { most: MOST });
        }
        let sentinels = Self { nodes, name: name.to_owned() };
        Ok(found.map(|address| (address, sentinels)))
    }

    /// Connects to the primary that the Sentinels name. The connection ends if they name another
    /// one later.
    pub(super) async fn connect(
        &self,
        address: &RedisAddress,
        timeouts: Timeouts,
    ) -> Result<Link, LinkError> {
        let found = self.look_up(address, timeouts).await?;
        let primary = address.at(&found);
        let mut link = open(&primary, timeouts).await?;
        let role = link.call(&cmd("ROLE")).await?;
        let role = match role.as_sequence().and_then(<[_]>::first) {
            Some(role) => redis::from_redis_value(role.clone()).unwrap_or_default(),
            None => String::new(),
        };
        if role != "master" {
            let (name, address) = (self.name.clone(), primary.to_string());
            return Err(LinkError::NotPrimary { name, address });
        }
        link.watch(Box::pin(self.clone().watch(address.clone(), found, timeouts)));
        Ok(link)
    }

    /// Asks the Sentinels in turn for the primary.
    async fn look_up(&self, address: &RedisAddress, timeouts: Timeouts) -> Result<Node, LinkError> {
        let (mut causes, mut unknown) = (Vec::new(), 0);
        for node in &self.nodes {
            let sentinel = address.at(node).without_database();
            let asked = async { self.ask(&mut log_in_if_asked(&sentinel, timeouts).await?).await };
            // One Sentinel that does not answer must not take the time of the others.
            match timeout(timeouts.connect / 5, asked).await {
                Ok(Ok(Some(primary))) => return Ok(primary),
                Ok(Ok(None)) => {
                    unknown += 1;
                    causes.push(format!("{node} does not know {}", self.name));
                }
                Ok(Err(trouble)) => causes.push(format!("{node}: {trouble}")),
                Err(_) => causes.push(format!("{node} does not answer")),
            }
        }
        if unknown == self.nodes.len() {
            return Err(LinkError::UnknownPrimary { name: self.name.clone() });
        }
        Err(LinkError::NoSentinel { name: self.name.clone(), causes: causes.join("; ") })
    }

    /// Asks a Sentinel for the primary. Returns `None` if the Sentinel does not know the name.
    async fn ask(&self, link: &mut Link) -> Result<Option<Node>, LinkError> {
        let mut question = cmd("SENTINEL");
        question.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.name);
        let reply: Option<(String, u16)> = link.query(&question).await?;
        Ok(reply.map(|(host, port)| Node { host, port }))
    }

    /// Asks the Sentinels again and again. Returns if one of them names another primary.
    async fn watch(self, address: RedisAddress, old: Node, timeouts: Timeouts) -> io::Error {
        let mut nodes = self.nodes.iter().cycle();
        loop {
            let Some(node) = nodes.next() else { return std::future::pending().await };
            let sentinel = address.at(node).without_database();
            let Ok(Ok(mut link)) =
                timeout(timeouts.connect / 5, log_in_if_asked(&sentinel, timeouts)).await
            else {
                sleep(PAUSE).await;
                continue;
            };
            while let Ok(Ok(found)) = timeout(timeouts.connect / 5, self.ask(&mut link)).await {
                if let Some(new) = found.filter(|new| *new != old) {
                    let name = &self.name;
                    let text = format!("the Sentinels have switched {name} from {old} to {new}");
                    return io::Error::new(io::ErrorKind::ConnectionAborted, text);
                }
                sleep(PAUSE).await;
            }
        }
    }
}

/// Connects to a Sentinel without a login. If the Sentinel requires one, logs in with the user and
/// the password of the primary.
async fn log_in_if_asked(sentinel: &RedisAddress, timeouts: Timeouts) -> Result<Link, LinkError> {
    match open(&sentinel.without_login(), timeouts).await {
        Err(LinkError::AuthNeeded) if sentinel.password().is_some() => {
            open(sentinel, timeouts).await
        }
        opened => opened,
    }
}

/// Returns true if a port follows the host.
fn has_port(host: &str) -> bool {
    host.rsplit_once(']').map_or(host, |(_, after)| after).contains(':')
}

impl fmt::Display for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<_> = self.nodes.iter().map(ToString::to_string).collect();
        write!(f, "{}/{}", nodes.join(","), self.name)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}
