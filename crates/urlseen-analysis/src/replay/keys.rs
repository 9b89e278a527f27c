//! Keys in Redis that hold items. They are read and never changed: a user who may only read will
//! do.

use std::collections::HashMap;

use redis::{Cmd, FromRedisValue, cmd};

use super::error::ReplayError;
use urlseen_core::redis::connect::{Timeouts, connect};
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::{Link, Page as Scanned, Reply};
use urlseen_engine::config::Config;
use urlseen_engine::flow::source::{self, Source};
use urlseen_engine::item::Items;

/// About how many bytes a page has, and the most items: Redis serves nobody else meanwhile.
const PAGE_BYTES: u64 = 1 << 20;
const PAGE_ITEMS: u64 = 10_000;

/// Items of the first page, before it is known how long they are.
const FIRST: u64 = 100;

/// A server, and the keys that are to be read there.
pub(super) struct Redis {
    link: Link,
    source: Box<dyn Source>,
    field: String,
    pub(super) keys: Vec<Key>,
}

/// A key, and how far it is read.
pub(super) struct Key {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// How long it was when the replay began.
    pub(super) length: u64,
    place: Place,
    /// Bytes of an item, by the last page.
    item_bytes: u64,
}

/// What a key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    List,
    /// In the order in which scrapy-redis takes requests: by score.
    Sorted,
    Set,
    Stream,
}

impl Kind {
    const ALL: [Self; 4] = [Self::List, Self::Sorted, Self::Set, Self::Stream];

    /// As `TYPE` says it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Sorted => "zset",
            Self::Set => "set",
            Self::Stream => "stream",
        }
    }

    fn length(self) -> &'static str {
        match self {
            Self::List => "LLEN",
            Self::Sorted => "ZCARD",
            Self::Set => "SCARD",
            Self::Stream => "XLEN",
        }
    }
}

/// How far a key is read.
enum Place {
    /// Behind so many items, by their number.
    At(u64),
    /// A set's cursor.
    Cursor(u64),
    /// Behind this entry of a stream.
    Behind(String),
    End,
}

/// What was read at once.
pub(super) struct Page {
    pub(super) items: Items,
    /// How many entries of a stream do not have the field.
    pub(super) without: u64,
}

/// An entry of a stream: its id, its fields and their values.
type Entry = (String, HashMap<String, Vec<u8>>);

impl Redis {
    /// Connects, and looks at what the keys hold.
    pub(super) async fn open(
        config: &Config,
        names: Vec<String>,
        field: String,
    ) -> Result<Self, ReplayError> {
        let address = &config.redis.url;
        let link = connect(address, Timeouts::default()).await?;
        let source = source::open(&config.source);
        let mut redis = Self { link, source, field, keys: Vec::new() };
        for name in names {
            let found: String = redis.ask(cmd("TYPE").arg(&name)).await?;
            let kind = Kind::ALL.into_iter().find(|kind| kind.name() == found);
            let Some(kind) = kind else {
                return Err(match found.as_str() {
                    "none" => ReplayError::NoKey { key: name, address: address.to_string() },
                    _ => ReplayError::OtherType { key: name, found },
                });
            };
            let length = redis.ask(cmd(kind.length()).arg(&name)).await?;
            let place = match kind {
                Kind::List | Kind::Sorted => Place::At(0),
                Kind::Set => Place::Cursor(0),
                Kind::Stream => Place::Behind("-".to_owned()),
            };
            let item_bytes = PAGE_BYTES / FIRST;
            redis.keys.push(Key { name, kind, length, place, item_bytes });
        }
        Ok(redis)
    }

    /// How long a key is now.
    pub(super) async fn length(&mut self, key: &Key) -> Result<u64, LinkError> {
        self.ask(cmd(key.kind.length()).arg(&key.name)).await
    }

    /// The next items, in the order of taking; `None` once there are no more of those that there
    /// were when the replay began, or no more at all.
    pub(super) async fn page(
        &mut self,
        key: &mut Key,
        wanted: u64,
    ) -> Result<Option<Page>, LinkError> {
        let count = (PAGE_BYTES / key.item_bytes.max(1)).clamp(1, PAGE_ITEMS).min(wanted);
        let page = match &key.place {
            Place::End => return Ok(None),
            &Place::At(from) => self.window(key, from, count).await?,
            &Place::Cursor(cursor) => self.scan(key, cursor, count).await?,
            Place::Behind(entry) => {
                let after = entry.clone();
                self.entries(key, &after, count).await?
            }
        };
        let (items, bytes) = (page.items.len() as u64, page.items.bytes_len() as u64);
        if items > 0 {
            key.item_bytes = bytes.div_ceil(items);
        }
        let is_end = matches!(key.place, Place::End) && items == 0 && page.without == 0;
        Ok((!is_end).then_some(page))
    }

    /// So many items behind the first `from`. Of a list or queue that moves meanwhile some are
    /// passed over or met twice: nobody can hold it still by reading alone.
    async fn window(&mut self, key: &mut Key, from: u64, count: u64) -> Result<Page, LinkError> {
        let count = count.min(key.length - from);
        if count == 0 {
            key.place = Place::End;
            return Ok(Page { items: Items::from_iter([]), without: 0 });
        }
        let items = if key.kind == Kind::List {
            let command = self.source.window(&key.name, from, count);
            let reply = self.reply(&command).await?;
            self.source.items(reply)
        } else {
            let mut command = cmd("ZRANGE");
            command.arg(&key.name).arg(from).arg(from + count - 1);
            let strings = self.reply(&command).await?.into_strings();
            strings.map(|(bytes, places)| Items::new(bytes, places))
        };
        let items = items.ok_or_else(garbled)?;
        key.place = if items.is_empty() { Place::End } else { Place::At(from + count) };
        Ok(Page { items, without: 0 })
    }

    /// A page of a set.
    async fn scan(&mut self, key: &mut Key, cursor: u64, count: u64) -> Result<Page, LinkError> {
        let mut command = cmd("SSCAN");
        command.arg(&key.name).arg(cursor).arg("COUNT").arg(count);
        let page = self.reply(&command).await?.into_page();
        let Scanned { cursor, bytes, members } = page.ok_or_else(garbled)?;
        key.place = if cursor == 0 { Place::End } else { Place::Cursor(cursor) };
        Ok(Page { items: Items::new(bytes, members), without: 0 })
    }

    /// Entries of a stream.
    async fn entries(&mut self, key: &mut Key, after: &str, count: u64) -> Result<Page, LinkError> {
        let mut command = cmd("XRANGE");
        command.arg(&key.name).arg(after).arg("+").arg("COUNT").arg(count);
        let entries: Vec<Entry> = self.ask(&command).await?;
        key.place = match entries.last() {
            Some((id, _)) => Place::Behind(format!("({id}")),
            None => Place::End,
        };
        let found = entries.iter().filter_map(|(_, fields)| fields.get(&self.field));
        let items: Items = found.map(Vec::as_slice).collect();
        let without = (entries.len() - items.len()) as u64;
        Ok(Page { items, without })
    }

    async fn reply(&mut self, command: &Cmd) -> Result<Reply, LinkError> {
        self.link.send(command);
        self.link.receive().await
    }

    async fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, LinkError> {
        let value = self.link.call(command).await?;
        redis::from_redis_value(value).map_err(|_| garbled())
    }
}

fn garbled() -> LinkError {
    LinkError::Garbled { cause: "a command that reads a key was answered by something else".into() }
}
