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
use super::nodes::{Node, NodesUrl, first_answer, joined};
use crate::redis::error::LinkError;

/// Part of a scheme that announces Sentinels.
pub(super) const KIND: &str = "sentinel";

/// Port of a Sentinel whose port is not in the URL.
const PORT: &str = "26379";

/// Pause between two rounds of questions to the Sentinels during the watch.
const PAUSE: Duration = Duration::from_secs(1);

/// Sentinels, and the name by which they know the primary.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Sentinels {
    nodes: Vec<Node>,
    name: String,
}

impl Sentinels {
    /// Parses `SCHEME+sentinel://[login@]host[:port],…/name[/database]`. Returns `None` for a URL
    /// of another scheme.
    pub(super) fn parse(url: &str) -> Result<Option<(RedisAddress, Self)>, RedisAddressError> {
        let Some(url) = NodesUrl::parse(url, KIND) else { return Ok(None) };
        let (name, db) = url.path.split_once('/').unwrap_or((url.path, ""));
        let (address, nodes) = url.nodes(PORT, db)?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err(RedisAddressError::NoName);
        }
        Ok(Some((address, Self { nodes, name: name.to_owned() })))
    }

    /// Connects to the primary that the Sentinels name. The connection ends if the Sentinels later
    /// name another primary.
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
        let found = first_answer(&self.nodes, timeouts, async |node| {
            let sentinel = address.at(&node).without_database();
            let found = self.ask(&mut log_in_if_asked(&sentinel, timeouts).await?).await?;
            found.ok_or_else(|| LinkError::UnknownPrimary { name: self.name.clone() })
        });
        found.await.map_err(|failures| {
            failures.into_error(|causes| LinkError::NoSentinel { name: self.name.clone(), causes })
        })
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

impl fmt::Display for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", joined(&self.nodes), self.name)
    }
}
