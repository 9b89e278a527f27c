//! Redis keys whose items a replay reads. The replay never changes the keys: a Redis user with read
//! permission is enough.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use redis::{Cmd, cmd};
use tokio::runtime::{Builder, Runtime};

use super::error::ReplayError;
use super::report::KeyRead;
use urlseen_core::redis::connect::{Timeouts, connect};
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::{Link, Page as Scanned, Reply};
use urlseen_engine::config::Config;
use urlseen_engine::flow::feed::{FeedError, Page, Place};
use urlseen_engine::flow::source::Source;
use urlseen_engine::item::Items;

/// Approximate size in bytes and maximum number of items of a page. A page consists of the items
/// that one command reads. While Redis reads a page, it serves no other client.
const PAGE_BYTES: u64 = 1 << 20;
const PAGE_ITEMS: u64 = 10_000;

/// Number of items in the first page of a key. The page is small, because the lengths of the items
/// are not known yet.
const FIRST: u64 = 100;

/// Rows of the report, one for each key that the replay has reached. All clones share the rows.
#[derive(Debug, Default, Clone)]
pub(super) struct Rows(Arc<Mutex<Vec<KeyRead>>>);

impl Rows {
    /// Removes and returns all rows.
    pub(super) fn take(&self) -> Vec<KeyRead> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, number: usize, row: &KeyRead) {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rows.truncate(number);
        rows.push(row.clone());
    }
}

/// Feed of the items that some keys in Redis hold.
pub(super) struct Keys {
    runtime: Runtime,
    keys: Vec<Key>,
    /// Index of the key that is being read.
    turn: usize,
    /// Rows of the keys that the replay has reached.
    rows: Rows,
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
    field: String,
    kind: Kind,
    /// Command that returns the length.
    length: &'static str,
    place: Position,
    /// Mean length of an item in the last page, in bytes.
    item_bytes: u64,
}

/// Type of a key with items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    List,
    /// Sorted set. It is read in the order of scores, in which scrapy-redis pops requests.
    Sorted,
    Set,
    Stream,
}

/// All types: the answer of `TYPE`, and the command that returns the length.
const KINDS: [(&str, Kind, &str); 4] = [
    ("list", Kind::List, "LLEN"),
    ("zset", Kind::Sorted, "ZCARD"),
    ("set", Kind::Set, "SCARD"),
    ("stream", Kind::Stream, "XLEN"),
];

/// Position in a key that is being read.
enum Position {
    /// Number of items that were read.
    At(u64),
    /// Cursor of `SSCAN` for the next page of a set.
    Cursor(u64),
    /// Start of the next page of a stream: `-`, or `(` and the id of the entry that was read last.
    Behind(String),
    End,
}

/// An entry of a stream: its id, its fields and their values.
type Entry = (String, HashMap<String, Vec<u8>>);

impl Keys {
    /// Connects, and checks the types of the keys. The replay reads at most `most` items.
    pub(super) fn open(
        config: &Config,
        names: Vec<String>,
        field: &str,
        most: u64,
    ) -> Result<Self, ReplayError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(ReplayError::Thread)?;
        let address = &config.redis.url;
        let mut keys = Vec::new();
        for name in names {
            let mut link =
                runtime.block_on(connect(&address.for_key(&name), Timeouts::default()))?;
            let found: String = runtime.block_on(link.query(cmd("TYPE").arg(&name)))?;
            let kind = KINDS.into_iter().find(|&(name, ..)| name == found);
            let Some((_, kind, length)) = kind else {
                return Err(match found.as_str() {
                    "none" => ReplayError::NoKey { key: name, address: address.to_string() },
                    _ => ReplayError::OtherType { key: name, found },
                });
            };
            let before = runtime.block_on(link.query(cmd(length).arg(&name)))?;
            let place = match kind {
                Kind::List | Kind::Sorted => Position::At(0),
                Kind::Set => Position::Cursor(0),
                Kind::Stream => Position::Behind("-".to_owned()),
            };
            let row = KeyRead { key: name, kind: found, before, after: None, read: 0 };
            let (list, field) = (Source::new(config.source.take_from), field.to_owned());
            let item_bytes = PAGE_BYTES / FIRST;
            keys.push(Key { link, row, list, field, kind, length, place, item_bytes });
        }
        Ok(Self { runtime, keys, turn: 0, rows: Rows::default(), left: most, read: 0 })
    }

    /// Returns the expected number of items: the sum of the keys' lengths, limited to the number of
    /// items that may still be read.
    pub(super) fn expected(&self) -> u64 {
        self.keys.iter().map(|key| key.row.before).sum::<u64>().min(self.left)
    }

    /// Returns the rows of the report. They are filled while the keys are read.
    pub(super) fn rows(&self) -> Rows {
        self.rows.clone()
    }

    fn end_key(&mut self) -> Result<(), LinkError> {
        let Key { link, row, length, .. } = &mut self.keys[self.turn];
        let mut length = cmd(length);
        row.after = Some(self.runtime.block_on(link.query(length.arg(&row.key)))?);
        self.rows.set(self.turn, row);
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
            self.rows.set(self.turn, &key.row);
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
        let page = match &self.place {
            Position::End => return Ok(None),
            &Position::At(from) => self.window(from, count).await?,
            &Position::Cursor(cursor) => self.scan(cursor, count).await?,
            Position::Behind(entry) => {
                let after = entry.clone();
                self.entries(&after, count).await?
            }
        };
        let (items, bytes) = (page.items.len() as u64, page.items.bytes_len() as u64);
        if items > 0 {
            self.item_bytes = bytes.div_ceil(items);
        }
        let is_end = matches!(self.place, Position::End) && items == 0 && page.bad_count == 0;
        Ok((!is_end).then_some(page))
    }

    /// Returns up to `count` items of a list or a sorted set, after the first `from` items. Reading
    /// does not lock the key: if other programs change it meanwhile, some items are skipped or read
    /// twice.
    async fn window(&mut self, from: u64, count: u64) -> Result<Page, LinkError> {
        let count = count.min(self.row.before - from);
        if count == 0 {
            self.place = Position::End;
            return Ok(Page::default());
        }
        let items = if self.kind == Kind::List {
            let command = self.list.window(&self.row.key, from, count);
            let reply = self.reply(&command).await?;
            self.list.taken(reply)
        } else {
            let mut command = cmd("ZRANGE");
            command.arg(&self.row.key).arg(from).arg(from + count - 1);
            let strings = self.reply(&command).await?.into_strings();
            strings.map(|(bytes, places)| Items::new(bytes, places))
        };
        let items = items.ok_or_else(garbled)?;
        self.place = if items.is_empty() { Position::End } else { Position::At(from + count) };
        Ok(Page { items, ..Page::default() })
    }

    /// Returns a page of the members of a set.
    async fn scan(&mut self, cursor: u64, count: u64) -> Result<Page, LinkError> {
        let mut command = cmd("SSCAN");
        command.arg(&self.row.key).arg(cursor).arg("COUNT").arg(count);
        let page = self.reply(&command).await?.into_page();
        let Scanned { cursor, bytes, members } = page.ok_or_else(garbled)?;
        self.place = if cursor == 0 { Position::End } else { Position::Cursor(cursor) };
        Ok(Page { items: Items::new(bytes, members), ..Page::default() })
    }

    /// Returns a page of the items in a stream. `after` is the start of the range for `XRANGE`.
    async fn entries(&mut self, after: &str, count: u64) -> Result<Page, LinkError> {
        let mut command = cmd("XRANGE");
        command.arg(&self.row.key).arg(after).arg("+").arg("COUNT").arg(count);
        let entries: Vec<Entry> = self.link.query(&command).await?;
        self.place = match entries.last() {
            Some((id, _)) => Position::Behind(format!("({id}")),
            None => Position::End,
        };
        let found = entries.iter().filter_map(|(_, fields)| fields.get(&self.field));
        let items: Items = found.map(Vec::as_slice).collect();
        let bad_count = (entries.len() - items.len()) as u64;
        Ok(Page { items, bad_count, ..Page::default() })
    }

    async fn reply(&mut self, command: &Cmd) -> Result<Reply, LinkError> {
        self.link.send(command);
        self.link.receive().await
    }
}

fn garbled() -> LinkError {
    LinkError::Garbled { cause: "the reply to a command that reads a key is invalid".into() }
}
