//! Over-limit list: unseen items that are over a limit, kept in Redis by their fingerprints.
//!
//! The list is a hash in Redis. Each field is the hex fingerprint of an item. Its value is a line
//! of JSON with `limit`, `group` and `time`, and then the item as received. So an item that comes
//! again is on the list once.

use std::time::SystemTime;

use redis::{Script, cmd};
use serde::{Deserialize, Serialize};

use urlseen_core::redis::connect::{Timeouts, connect};
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::link::Link;
use urlseen_core::redis::script::COMMON;
use urlseen_engine::config::Config;
use urlseen_engine::flow::source;

/// Number of items that one command reads.
const READ: usize = 100;

/// Item on the over-limit list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OverLimitItem {
    /// Reason why the item is on the list.
    pub(crate) reason: OverLimitReason,
    /// Bytes of the item as received.
    pub(crate) item: Vec<u8>,
}

/// Reason why an item is on the over-limit list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OverLimitReason {
    /// Name of the rule in the configuration.
    pub(crate) limit: String,
    /// Name of the group that was full.
    pub(crate) group: String,
    /// Time at which the daemon prepared the item for the list, in RFC 3339.
    pub(crate) time: String,
}

impl OverLimitReason {
    /// Describes an item of this group that is over the limit now.
    pub(crate) fn new(limit: &str, group: &str) -> Self {
        let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        Self { limit: limit.to_owned(), group: group.to_owned(), time }
    }

    /// Returns the value of the list for an item.
    pub(crate) fn with(&self, item: &[u8]) -> Vec<u8> {
        let mut value = serde_json::to_vec(self).expect("strings are JSON");
        value.push(b'\n');
        value.extend(item);
        value
    }
}

impl OverLimitItem {
    /// Reads a value of the list. Returns `None` if another program wrote it.
    fn read(value: &[u8]) -> Option<Self> {
        let end = memchr::memchr(b'\n', value)?;
        let reason = serde_json::from_slice(&value[..end]).ok()?;
        Some(Self { reason, item: value[end + 1..].to_vec() })
    }
}

/// Fields and values of the list.
type Page = Vec<(Vec<u8>, Vec<u8>)>;

/// Connection to the over-limit list of a crawl.
pub(crate) struct OverLimitList {
    connection: Link,
    keys: Keys,
    requeue: Script,
}

/// Items that one command read, each with its fingerprint in hex. An item is `None` if another
/// program wrote it.
pub(crate) type Found = Vec<(Vec<u8>, Option<OverLimitItem>)>;

impl OverLimitList {
    /// Connects to the crawl's Redis.
    pub(crate) async fn open(config: &Config) -> Result<Self, LinkError> {
        const SHARED: &str = include_str!("protocol/lua/shared.lua");
        let connection = connect(&config.redis.url, Timeouts::default()).await?;
        let push = source::open(&config.source).lua_requeue();
        let text = include_str!("lua/requeue_over_limit.lua");
        let requeue = Script::new(&[COMMON, SHARED, &push, text].join("\n"));
        Ok(Self { connection, keys: config.keys(), requeue })
    }

    /// Returns the names of the source and of the list.
    pub(crate) fn names(&self) -> (&str, &str) {
        (&self.keys.source, &self.keys.over_limit)
    }

    /// Returns the number of items on the list.
    pub(crate) async fn len(&mut self) -> Result<u64, LinkError> {
        let mut length = cmd("HLEN");
        Ok(length.arg(&self.keys.over_limit).query_async(&mut self.connection).await?)
    }

    /// Reads the next items from a cursor on; 0 is the start. Returns the next cursor, which is 0
    /// at the end. If the list changes meanwhile, some items may come twice.
    pub(crate) async fn scan(&mut self, cursor: u64) -> Result<(u64, Found), LinkError> {
        let mut scan = cmd("HSCAN");
        scan.arg(&self.keys.over_limit).arg(cursor).arg("COUNT").arg(READ);
        let (next, page): (u64, Page) = scan.query_async(&mut self.connection).await?;
        let read = |(field, value): (Vec<u8>, Vec<u8>)| (field, OverLimitItem::read(&value));
        Ok((next, page.into_iter().map(read).collect()))
    }

    /// Moves items to the end of the source. Returns the number of moved items: those that another
    /// process has moved meanwhile do not count.
    pub(crate) async fn requeue(
        &mut self,
        items: &[(Vec<u8>, OverLimitItem)],
    ) -> Result<u64, LinkError> {
        let mut moved = 0;
        for (fingerprint, OverLimitItem { item, .. }) in items {
            let mut call = self.requeue.prepare_invoke();
            call.key(&self.keys.over_limit).key(&self.keys.source).arg(fingerprint).arg(item);
            moved += call.invoke_async::<u64>(&mut self.connection).await?;
        }
        Ok(moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_of_any_bytes_is_read_back() {
        let reason = OverLimitReason::new("pages \"x\"", "example.org/ü/*\n?page");
        for item in [&b""[..], b"http://example.org/\n1", b"\xff\0\n{}"] {
            let read = OverLimitItem::read(&reason.with(item));
            assert_eq!(read, Some(OverLimitItem { reason: reason.clone(), item: item.to_vec() }));
        }
        for other in [&b""[..], b"http://a/", b"{}\na", b"[1]\n"] {
            assert_eq!(OverLimitItem::read(other), None);
        }
    }
}
