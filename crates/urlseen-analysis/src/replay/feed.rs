//! Feed of a replay, read on a thread of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::ToReaders;
use super::error::ReplayError;
use super::keys::Keys;
use super::reading::Work;
use super::report::KeyRead;
use urlseen_core::redis::RedisAddress;
use urlseen_engine::config::Config;
use urlseen_engine::flow::feed::{Feed, FeedError, Page};
use urlseen_engine::flow::import::{Format, Origin};
use urlseen_engine::flow::input;

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
pub(super) struct ReplayFeed {
    opened: Opened,
    seen: Vec<Seen>,
    address: RedisAddress,
    batch: usize,
    most: u64,
    stop: Arc<AtomicBool>,
}

enum Opened {
    Files(Feed),
    Keys(Box<Keys>),
}

/// What a feed leaves.
pub(super) struct Fed {
    pub(super) keys: Vec<KeyRead>,
    pub(super) ended: Result<(), ReplayError>,
}

impl ReplayFeed {
    /// Looks at what is to be read.
    pub(super) fn open(
        config: &Config,
        input: Input,
        seen: Vec<Seen>,
        most: Option<u64>,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, ReplayError> {
        let all = most.unwrap_or(u64::MAX);
        let opened = match input {
            // Nobody knows of how many bytes so many items are.
            Input::Files(files) => {
                let feed = input::lines(files);
                let expected = if most.is_none() { feed.expected } else { 0 };
                Opened::Files(Feed { expected, ..feed })
            }
            Input::Keys { keys, field } => {
                Opened::Keys(Box::new(Keys::open(config, keys, field, all)?))
            }
        };
        let (address, batch) = (config.redis.url.clone(), config.source.batch);
        Ok(Self { opened, seen, address, batch, most: all, stop })
    }

    /// Returns how much comes: bytes of files, or items; 0 if that is not known.
    pub(super) fn expected(&self) -> u64 {
        match &self.opened {
            Opened::Files(feed) => feed.expected,
            Opened::Keys(keys) => keys.expected(),
        }
    }

    /// Returns how many items come; 0 if that is not known.
    pub(super) fn items(&self) -> u64 {
        if let Opened::Keys(keys) = &self.opened { keys.expected() } else { 0 }
    }

    /// Reads all of it, or until it is asked to stop.
    pub(super) fn run(self, readers: &ToReaders) -> Fed {
        let Self { opened, seen, address, batch, most, stop } = self;
        // Batches go to the readers in turn.
        let mut turn = (0..readers.len()).cycle();
        let mut hand_out = |page, is_given| {
            let turn = turn.next().expect("somebody reads");
            // A reader that is gone has nobody to hand over to.
            readers[turn].send(Work { page, is_given }).is_ok() && !stop.load(Ordering::Relaxed)
        };
        let given = seen.into_iter().try_for_each(|seen| {
            let origin = match seen {
                Seen::File(name) => Origin::Files { files: vec![name], format: Format::Auto },
                Seen::Set(key) => Origin::Set { address: address.clone(), key },
            };
            let mut pages = origin.open(Vec::new())?.pages;
            while let Some(page) = pages.next().transpose()?
                && hand_out(page, true)
            {}
            Ok(())
        });
        if let Err(error) = given {
            return Fed { keys: Vec::new(), ended: Err(ReplayError::Seen(error)) };
        }
        let mut items = |pages: &mut dyn Iterator<Item = Result<Page, FeedError>>| {
            let mut left = usize::try_from(most).unwrap_or(usize::MAX);
            while left > 0
                && let Some(page) = pages.next().transpose()?
            {
                let page = page.truncated(left);
                left -= page.items.len();
                if !page.split(batch).all(|page| hand_out(page, false)) {
                    break;
                }
            }
            Ok::<_, FeedError>(())
        };
        let (keys, ended) = match opened {
            Opened::Files(mut feed) => (Vec::new(), items(&mut feed.pages)),
            Opened::Keys(mut keys) => {
                let ended = items(&mut keys).and_then(|()| keys.finish());
                (keys.into_rows(), ended)
            }
        };
        Fed { keys, ended: ended.map_err(ReplayError::Feed) }
    }
}
