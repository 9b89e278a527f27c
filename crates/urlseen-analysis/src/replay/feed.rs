//! What is replayed, read batch by batch on a thread of its own.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::{Builder, Runtime};

use super::error::ReplayError;
use super::keys::{Key, Redis};
use super::reading::{From, Kind, Work};
use super::report::KeyRead;
use super::{Meter, ToReaders};
use urlseen_core::redis::RedisAddress;
use urlseen_engine::config::Config;
use urlseen_engine::flow::import::{self, Format, Origin};
use urlseen_engine::flow::input::{self, InputName};
use urlseen_engine::item::Items;

/// What is replayed.
#[derive(Debug, Clone)]
pub enum Input {
    /// The lines of files, of standard input where there are none.
    Files(Vec<PathBuf>),
    /// Keys in Redis: lists, sorted sets, sets and streams.
    Keys {
        /// Their names, in the order in which they are read.
        keys: Vec<String>,
        /// The field of a stream's entries that has the item.
        field: String,
    },
}

/// What counts as seen from the begin on.
#[derive(Debug, Clone)]
pub enum Seen {
    /// A file: lines of hex digits, or a `requests.seen`.
    File(PathBuf),
    /// A set in Redis whose members are hex digits.
    Set(String),
}

/// What is read, opened.
pub(super) struct Feed {
    opened: Opened,
    seen: Vec<Seen>,
    address: RedisAddress,
    batch: usize,
    left: u64,
    /// How many batches were handed out.
    handed_out: usize,
    meter: Arc<Meter>,
    stop: Arc<AtomicBool>,
}

enum Opened {
    Files(Vec<PathBuf>),
    Keys(Box<Redis>, Runtime),
}

/// What a feed leaves.
pub(super) struct Fed {
    pub(super) keys: Vec<KeyRead>,
    pub(super) ended: Result<(), ReplayError>,
}

/// Looks at what is to be read.
pub(super) fn open(
    config: &Config,
    input: Input,
    seen: Vec<Seen>,
    most: Option<u64>,
    meter: Arc<Meter>,
    stop: Arc<AtomicBool>,
) -> Result<Feed, ReplayError> {
    let most = most.unwrap_or(u64::MAX);
    let opened = match input {
        Input::Files(files) => {
            let size = |name: &PathBuf| {
                let file = fs::metadata(name).ok().filter(fs::Metadata::is_file)?;
                Some(file.len())
            };
            // Of anything but a file nobody knows how much comes, nor of how many files with so
            // many items.
            let all: Option<u64> = files.iter().map(size).sum();
            let known = all.filter(|_| most == u64::MAX && !files.is_empty());
            meter.expected.store(known.unwrap_or(0), Ordering::Relaxed);
            Opened::Files(files)
        }
        Input::Keys { keys, field } => {
            let runtime = Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(ReplayError::Thread)?;
            let redis = runtime.block_on(Redis::open(config, keys, field))?;
            let all: u64 = redis.keys.iter().map(|key| key.length).sum();
            meter.counts_items.store(true, Ordering::Relaxed);
            meter.expected.store(all.min(most), Ordering::Relaxed);
            Opened::Keys(Box::new(redis), runtime)
        }
    };
    Ok(Feed {
        opened,
        seen,
        address: config.redis.url.clone(),
        batch: config.source.batch,
        left: most,
        handed_out: 0,
        meter,
        stop,
    })
}

impl Feed {
    /// How many items come, as far as that is known; 0 if it is not.
    pub(super) fn expected(&self) -> u64 {
        if self.meter.counts_items() { self.meter.expected() } else { 0 }
    }

    /// Reads all of it, or until it is asked to stop.
    pub(super) fn run(mut self, readers: &ToReaders) -> Fed {
        let mut keys = Vec::new();
        let ended = self.read(readers, &mut keys);
        Fed { keys, ended }
    }

    fn read(&mut self, readers: &ToReaders, read: &mut Vec<KeyRead>) -> Result<(), ReplayError> {
        for seen in std::mem::take(&mut self.seen) {
            self.given(seen, readers)?;
        }
        match std::mem::replace(&mut self.opened, Opened::Files(Vec::new())) {
            Opened::Files(files) => self.files(files, readers),
            Opened::Keys(mut redis, runtime) => {
                let keys = std::mem::take(&mut redis.keys);
                runtime.block_on(async {
                    for key in keys {
                        self.key(&mut redis, key, readers, read).await?;
                    }
                    Ok(())
                })
            }
        }
    }

    /// Reads what counts as seen.
    fn given(&mut self, seen: Seen, readers: &ToReaders) -> Result<(), ReplayError> {
        let origin = match seen {
            Seen::File(name) => Origin::Files { files: vec![name], format: Format::Auto },
            Seen::Set(key) => Origin::Set { address: self.address.clone(), key },
        };
        for digests in import::digests(origin)? {
            let import::Digests { items, bad, bad_count } = digests?;
            let bad = bad.iter().map(ToString::to_string).collect();
            let (items, kind) = (Arc::new(items), Kind::Given { bad, bad_count });
            let range = 0..items.len();
            if !self.hand_out(Work { items, range, kind }, readers) {
                break;
            }
        }
        Ok(())
    }

    /// Reads lines.
    fn files(&mut self, files: Vec<PathBuf>, readers: &ToReaders) -> Result<(), ReplayError> {
        // The bytes of the files before, and of the one that is read.
        let (mut before, mut current, mut last) = (0, 0, None);
        for block in input::blocks(files) {
            let mut block = block?;
            if last.as_ref() != Some(block.name()) {
                last = Some(Arc::clone(block.name()));
                before += current;
            }
            current = block.consumed();
            let (name, first) = (InputName(block.name()).to_string().into(), block.first_line());
            let from = From { name, unit: "line", first, without: 0 };
            let goes_on = self.items(std::mem::take(&mut block.lines), &from, readers);
            self.meter.read.store(before + current, Ordering::Relaxed);
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// Reads a key.
    async fn key(
        &mut self,
        redis: &mut Redis,
        mut key: Key,
        readers: &ToReaders,
        read: &mut Vec<KeyRead>,
    ) -> Result<(), ReplayError> {
        let name: Arc<str> = key.name.as_str().into();
        let mut row = KeyRead {
            key: key.name.clone(),
            kind: key.kind.name().to_owned(),
            before: key.length,
            after: None,
            read: 0,
        };
        loop {
            let page = match redis.page(&mut key, self.left).await {
                Ok(Some(page)) => page,
                Ok(None) => break,
                Err(error) => {
                    read.push(row);
                    return Err(error.into());
                }
            };
            let items = page.items.len() as u64;
            let (first, without) = (row.read + 1, page.without);
            let from = From { name: Arc::clone(&name), unit: "item", first, without };
            row.read += items.min(self.left);
            let goes_on = self.items(page.items, &from, readers);
            self.meter.read.fetch_add(items, Ordering::Relaxed);
            if !goes_on {
                break;
            }
        }
        let after = redis.length(&key).await;
        row.after = after.as_ref().ok().copied();
        read.push(row);
        after.map(drop).map_err(ReplayError::Redis)
    }

    /// Hands items out; whether to go on.
    fn items(&mut self, items: Items, from: &From, readers: &ToReaders) -> bool {
        let all = usize::try_from(self.left).unwrap_or(usize::MAX).min(items.len());
        let items = Arc::new(items);
        let mut without = from.without;
        for start in (0..all.max(usize::from(without > 0))).step_by(self.batch) {
            let range = start..all.min(start + self.batch);
            let first = from.first + start as u64;
            let from = From { first, without: std::mem::take(&mut without), ..from.clone() };
            let work = Work { items: Arc::clone(&items), range, kind: Kind::Items(from) };
            if !self.hand_out(work, readers) {
                return false;
            }
        }
        self.left -= all as u64;
        self.left > 0
    }

    /// Hands a batch to the reader whose turn it is; whether to go on.
    fn hand_out(&mut self, work: Work, readers: &ToReaders) -> bool {
        let turn = self.handed_out % readers.len();
        self.handed_out += 1;
        // A reader that is gone has nobody to hand over to.
        readers[turn].send(work).is_ok() && !self.stop.load(Ordering::Relaxed)
    }
}
