//! Feeds: what a flow reads, page by page, each page with the cursor behind it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::item::Items;
use urlseen_core::redis::error::LinkError;
use urlseen_core::storage::Checkpoint;

/// Pages that are read and wait to be judged.
const READ_AHEAD: usize = 4;

/// File name that stands for standard input.
pub(super) const STANDARD_INPUT: &str = "-";

/// Input that is read page by page.
pub struct Feed {
    /// Amount of the whole input: bytes of files as they lie there, or elements; 0 if unknown.
    pub expected: u64,
    /// The pages, in order. Nothing is read after an error.
    pub pages: Box<dyn Iterator<Item = Result<Page, FeedError>> + Send>,
}

/// Receiving end of a feed that is read ahead.
pub struct Pages {
    /// Amount of the whole input, as in [`Feed::expected`].
    pub expected: u64,
    /// The pages, in order. The end of the channel is that of the input.
    pub receiver: mpsc::Receiver<Result<Page, FeedError>>,
}

/// Items that are read together.
#[derive(Debug, Default)]
pub struct Page {
    /// Items of the page, in order.
    pub items: Items,
    /// Place of the first item.
    pub place: Place,
    /// The first malformed entries, which are no items.
    pub bad: Vec<Bad>,
    /// Number of all malformed entries.
    pub bad_count: u64,
    /// Amount of the input that is read with this page, in the unit of [`Feed::expected`].
    pub read: u64,
    /// Cursor after this page, for inputs that a later run can continue.
    pub cursor: Option<Checkpoint>,
    /// Description of the cursor that the input continues from, on the first page after it.
    pub resumed: Option<String>,
}

/// Place of an item, for messages: `FILE, line N`.
#[derive(Debug, Clone)]
pub struct Place {
    /// Name of the input, for messages.
    pub name: Arc<str>,
    /// The word for an element of it.
    pub unit: &'static str,
    /// Number of the element, from 1.
    pub number: u64,
}

/// Malformed entry of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bad {
    /// The input, or the place in it.
    pub source: String,
    /// First byte of the entry, in the decompressed file.
    pub offset: Option<u64>,
    /// Line of the entry, from 1, in an input of lines.
    pub line: Option<u64>,
    /// Cause of the failure, in words.
    pub reason: String,
}

/// Reason that an input cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// A file cannot be opened.
    #[error("cannot open {}: {reason}", InputName(name))]
    Open {
        /// Name of the file, as it was given.
        name: PathBuf,
        /// Cause of the failure, in words.
        reason: io::Error,
    },
    /// Reading or decompressing failed.
    #[error("cannot read {} beyond {place}: {reason}", InputName(name))]
    Read {
        /// Name of the file, as it was given.
        name: PathBuf,
        /// The last line or byte before.
        place: String,
        /// Cause of the failure, in words.
        reason: io::Error,
    },
    /// A line is too long to be one.
    #[error("{}, line {line} is longer than 512 MiB; is this a file of lines?", InputName(name))]
    Endless {
        /// Name of the file, as it was given.
        name: PathBuf,
        /// Number of the line, from 1.
        line: u64,
    },
    /// Redis does not answer as it should.
    #[error(transparent)]
    Redis(#[from] LinkError),
    /// The key does not exist.
    #[error(
        "there is no key {key} at {address}; scrapy-redis names its set SPIDER:dupefilter unless \
         SCHEDULER_DUPEFILTER_KEY says otherwise, and deletes it at the end of a crawl unless \
         SCHEDULER_PERSIST is set"
    )]
    NoSet {
        /// Name of the key in Redis.
        key: String,
        /// The server and the database.
        address: String,
    },
    /// The key holds something other than a set.
    #[error(
        "the key {key} holds a {found}, and a set was expected; scrapy-redis names its set \
         SPIDER:dupefilter unless SCHEDULER_DUPEFILTER_KEY says otherwise"
    )]
    OtherType {
        /// Name of the key in Redis.
        key: String,
        /// Type of the key in Redis.
        found: String,
    },
    /// The thread that reads cannot be started.
    #[error("no thread could be started: {0}; is the limit on processes (ulimit -u) too low?")]
    Thread(io::Error),
}

impl Feed {
    /// Reads ahead on a thread of its own, until the end or until the receiver is dropped.
    ///
    /// # Errors
    /// No thread could be started.
    pub fn spawn(self) -> Result<Pages, FeedError> {
        let (hand_over, receiver) = mpsc::channel(READ_AHEAD);
        let Self { expected, pages } = self;
        let life = move || {
            for page in pages {
                let failed = page.is_err();
                if hand_over.blocking_send(page).is_err() || failed {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("reader".to_owned());
        thread.spawn(life).map_err(FeedError::Thread)?;
        Ok(Pages { expected, receiver })
    }
}

impl Page {
    /// Returns the place of the item at `index`.
    pub fn place(&self, index: usize) -> Place {
        let Place { name, unit, number } = &self.place;
        Place { name: Arc::clone(name), unit, number: number + index as u64 }
    }

    /// Drops all items after the first `most`.
    #[must_use]
    pub fn truncated(self, most: usize) -> Self {
        let items = self.items.slice(0..self.items.len().min(most));
        Self { items, ..self }
    }

    /// Splits the page into pages of at most `most` items. What is said of the whole page stays
    /// with the first one.
    pub fn split(self, most: usize) -> impl Iterator<Item = Self> {
        let (items, place, read) = (self.items.clone(), self.place.clone(), self.read);
        let mut whole = Some(self);
        (0..items.len().max(1)).step_by(most).map(move |start| {
            let number = place.number + start as u64;
            let place = Place { number, ..place.clone() };
            let items = items.slice(start..items.len().min(start + most));
            Self { items, place, read, ..whole.take().unwrap_or_default() }
        })
    }
}

impl Default for Place {
    fn default() -> Self {
        Self { name: "".into(), unit: "item", number: 1 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} {}", self.name, self.unit, self.number)
    }
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        match (self.line, self.offset) {
            (Some(line), Some(offset)) => write!(f, ", line {line} (byte {offset})")?,
            (None, Some(offset)) => write!(f, ", byte {offset}")?,
            (_, None) => {}
        }
        write!(f, ": {}", self.reason)
    }
}

/// Name of an input for messages. Shows `-` as standard input.
#[derive(Debug, Clone, Copy)]
pub(super) struct InputName<'a>(pub(super) &'a Path);

impl fmt::Display for InputName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.as_os_str() == STANDARD_INPUT {
            f.write_str("standard input")
        } else {
            write!(f, "{}", self.0.display())
        }
    }
}
