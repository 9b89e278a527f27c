//! Redis keys whose items a replay reads. The replay never changes the keys: a Redis user with read
//! permission is enough.

use std::sync::{Arc, Mutex};

use anyhow::bail;
use redis::{Cmd, cmd};
use tokio::runtime::{Builder, Runtime};

use super::Crawl;
use super::report::KeyRead;
use urlseen_engine::flow::feed::{FeedError, Page, Place};
use urlseen_engine::item::Items;
use urlseen_redis::connect::connect;
use urlseen_redis::error::LinkError;
use urlseen_redis::link::{Link, Page as Scanned, Reply};
use urlseen_redis::protocol::Source;

/// Approximate size in bytes and maximum number of items of a page. A page consists of the items
/// that one command reads. While Redis reads a page, it serves no other client.
const PAGE_BYTES: u64 = 1 << 20;
const PAGE_ITEMS: u64 = 10_000;

/// Number of items in the first page of a key. The page is small, because the lengths of the items
/// are not known yet.
const FIRST: u64 = 100;

/// Feed of the items that some keys in Redis hold.
pub(super) struct Keys {
    runtime: Runtime,
    keys: Vec<Key>,
    /// Index of the key that is being read.
    turn: usize,
    /// Rows of the report, one for each key that the replay has reached. All clones share the rows.
    pub(super) rows: Arc<Mutex<Vec<KeyRead>>>,
    /// Maximum number of items that may still be read, and number of items read so far.
    left: u64,
    read: u64,
}

/// A key, and the position up to which the key has been read.
struct Key {
    /// Connection to the server with the key. In a Redis Cluster, each key may have another server.
    link: Link,
    row: KeyRead,
    list: Source,
    /// Command that returns the length.
    length: &'static str,
    /// Number of items that were read, or the cursor of `SSCAN` for a set. `None` at the end.
    place: Option<u64>,
    /// Mean length of an item in the last page, in bytes.
    item_bytes: u64,
}

/// Types of keys with items, each with the command that returns the length. A sorted set is read in
/// the order of scores, in which scrapy-redis pops requests.
const KINDS: [(&str, &str); 3] = [("list", "LLEN"), ("zset", "ZCARD"), ("set", "SCARD")];

impl Keys {
    /// Connects, and checks the types of the keys. The replay reads at most `most` items.
    pub(super) fn open(crawl: Crawl<'_>, names: Vec<String>, most: u64) -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(FeedError::Thread)?;
        let Crawl { address, list, .. } = crawl;
        let mut keys = Vec::new();
        for name in names {
            let mut link = runtime.block_on(connect(&address.for_key(&name)))?;
            let found: String = runtime.block_on(link.query(cmd("TYPE").arg(&name)))?;
            let kind = KINDS.into_iter().find(|&(name, _)| name == found);
            let Some((_, length)) = kind else {
                if found == "none" {
                    bail!(
                        "there is no key {name} at {address}, so there is nothing to replay (Redis \
                         deletes empty keys); name the keys of the crawl with --key \
                         (scrapy-redis: SPIDER:requests, SPIDER:dupefilter), or name files"
                    );
                }
                bail!(
                    "the key {name} holds a {found}; items come from a list, a sorted set (as \
                     scrapy-redis queues requests) or a set (as scrapy-redis keeps fingerprints)"
                );
            };
            let before = runtime.block_on(link.query(cmd(length).arg(&name)))?;
            let row = KeyRead { key: name, kind: found, before, after: None, read: 0 };
            let (place, item_bytes) = (Some(0), PAGE_BYTES / FIRST);
            keys.push(Key { link, row, list, length, place, item_bytes });
        }
        Ok(Self { runtime, keys, turn: 0, rows: Arc::default(), left: most, read: 0 })
    }

    /// Returns the expected number of items: the sum of the keys' lengths, limited to the number of
    /// items that may still be read.
    pub(super) fn expected(&self) -> u64 {
        self.keys.iter().map(|key| key.row.before).sum::<u64>().min(self.left)
    }

    /// Notes the row of the key that is being read.
    fn note(&self) {
        let mut rows = self.rows.lock().expect("no holder panics");
        rows.truncate(self.turn);
        rows.push(self.keys[self.turn].row.clone());
    }

    fn end_key(&mut self) -> Result<(), LinkError> {
        let Key { link, row, length, .. } = &mut self.keys[self.turn];
        let mut length = cmd(length);
        row.after = Some(self.runtime.block_on(link.query(length.arg(&row.key)))?);
        self.note();
        self.turn += 1;
        Ok(())
    }

    fn page(&mut self) -> Result<Option<Page>, FeedError> {
        while let Some(key) = self.keys.get_mut(self.turn) {
            let page = match self.left {
                0 => None,
                left => self.runtime.block_on(key.page(left))?,
            };
            let Some(page) = page else {
                self.end_key()?;
                continue;
            };
            let number = key.row.read + 1;
            let place = Place { name: key.row.key.as_str().into(), unit: "item", number };
            let items = (page.items.len() as u64).min(self.left);
            key.row.read += items;
            self.left -= items;
            self.read += items;
            self.note();
            return Ok(Some(Page { place, read: self.read, ..page }));
        }
        Ok(None)
    }
}

impl Iterator for Keys {
    type Item = Result<Page, FeedError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.page().transpose()
    }
}

impl Key {
    /// Returns the next items of the key, in the order in which crawlers would pop them. Returns
    /// `None` at the end of the key. For a list or a sorted set, items that were added during the
    /// replay are not read.
    async fn page(&mut self, wanted: u64) -> Result<Option<Page>, LinkError> {
        let count = (PAGE_BYTES / self.item_bytes.max(1)).clamp(1, PAGE_ITEMS).min(wanted);
        let items = match (self.place, &*self.row.kind) {
            (None, _) => return Ok(None),
            (Some(cursor), "set") => self.scan(cursor, count).await?,
            (Some(from), _) => self.window(from, count).await?,
        };
        let (number, bytes) = (items.len() as u64, items.bytes_len() as u64);
        if number > 0 {
            self.item_bytes = bytes.div_ceil(number);
        }
        let is_end = self.place.is_none() && number == 0;
        Ok((!is_end).then(|| Page { items, ..Page::default() }))
    }

    /// Returns up to `count` items of a list or a sorted set, after the first `from` items. Reading
    /// does not lock the key: if other programs change it meanwhile, some items are skipped or read
    /// twice.
    async fn window(&mut self, from: u64, count: u64) -> Result<Items, LinkError> {
        let count = count.min(self.row.before - from);
        if count == 0 {
            self.place = None;
            return Ok(Items::default());
        }
        let items = if self.row.kind == "list" {
            let command = self.list.window(&self.row.key, from, count);
            let reply = self.reply(&command).await?;
            self.list.taken(reply).map(|(bytes, places)| Items::new(bytes, places))
        } else {
            let mut command = cmd("ZRANGE");
            command.arg(&self.row.key).arg(from).arg(from + count - 1);
            let strings = self.reply(&command).await?.into_strings();
            strings.map(|(bytes, places)| Items::new(bytes, places))
        };
        let cause = "the reply to a command that reads a key is invalid";
        let items = items.ok_or_else(|| LinkError::Garbled { cause: cause.into() })?;
        self.place = (!items.is_empty()).then_some(from + count);
        Ok(items)
    }

    /// Returns a page of the members of a set.
    async fn scan(&mut self, cursor: u64, count: u64) -> Result<Items, LinkError> {
        let page = self.link.scan(&self.row.key, cursor, count).await?;
        let Scanned { cursor, bytes, members } = page;
        self.place = (cursor != 0).then_some(cursor);
        Ok(Items::new(bytes, members))
    }

    async fn reply(&mut self, command: &Cmd) -> Result<Reply, LinkError> {
        self.link.send(command);
        self.link.receive().await
    }
}
