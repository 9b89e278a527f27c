//! Feeds: the input of a flow, in pages. Each page contains the cursor that marks its end.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::item::Items;
use urlseen_redis::error::LinkError;
use urlseen_storage::Checkpoint;

/// Maximum number of pages that are read and wait for the driver.
const READ_AHEAD: usize = 4;

/// File name that stands for standard input.
pub(super) const STANDARD_INPUT: &str = "-";

/// Input that is read page by page.
pub struct Feed {
    /// Amount of the whole input: bytes in files (before decompression) or members of a set; 0 if
    /// unknown.
    pub expected: u64,
    /// The pages, in order. After an error, there are no more elements.
    pub pages: Box<dyn Iterator<Item = Result<Page, FeedError>> + Send>,
}

/// Receiving end of a feed that a thread reads ahead of the receiver.
pub struct Pages {
    /// Amount of the whole input, as in [`Feed::expected`].
    pub expected: u64,
    /// The pages, in order. The channel closes at the end of the input.
    pub receiver: mpsc::Receiver<Result<Page, FeedError>>,
}

/// Items that were read together.
#[derive(Debug, Default)]
pub struct Page {
    /// Items of the page, in order.
    pub items: Items,
    /// Place of the first item.
    pub place: Place,
    /// The first malformed entries. `items` does not contain them.
    pub bad: Vec<Bad>,
    /// Number of malformed entries, including those that are not in `bad`.
    pub bad_count: u64,
    /// Amount of the input up to the end of this page, in the unit of [`Feed::expected`].
    pub read: u64,
    /// Cursor that marks the end of this page, if a later run can continue there.
    pub cursor: Option<Checkpoint>,
    /// Description of the part that an earlier import has read. Only the first page after that part
    /// has a description.
    pub resumed: Option<String>,
    /// Header of a table, before its first record.
    pub header: Option<Box<[u8]>>,
    /// True if the items count as seen: the effect need not happen for them.
    pub is_seen: bool,
}

/// Place of an item, for messages: `FILE, line N`.
#[derive(Debug, Clone)]
pub struct Place {
    /// Name of the input, for messages.
    pub name: Arc<str>,
    /// Word for one element of the input, such as `line`.
    pub unit: &'static str,
    /// Number of the element, counted from 1.
    pub number: u64,
}

/// Malformed entry of an input.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Bad {
    /// Name of the input, or a description of the entry's place.
    pub(crate) source: String,
    /// Offset of the entry's first byte in the decompressed file.
    pub(crate) offset: Option<u64>,
    /// Number of the entry's line, counted from 1, if the input has lines.
    pub(crate) line: Option<u64>,
    /// Cause of the failure, in words.
    pub(crate) reason: String,
}

/// Error that ends the reading of an input.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The input cannot be read: the message names it, and states the reason.
    #[error("{0}")]
    Input(String),
    /// Redis failed, or gave an invalid answer.
    #[error(transparent)]
    Redis(#[from] LinkError),
    /// The thread for reading cannot be started.
    #[error("no thread could be started: {0}; is the limit on processes (ulimit -u) too low?")]
    Thread(io::Error),
}

impl Feed {
    /// Returns a feed of these pages before those of `next`. They count as seen.
    #[must_use]
    pub fn seen_before(self, next: Self) -> Self {
        let (expected, read) = (self.expected + next.expected, self.expected);
        let seen = self.pages.map(|page| Ok(Page { is_seen: true, ..page? }));
        let next = next.pages.map(move |page| {
            let page = page?;
            Ok(Page { read: read + page.read, ..page })
        });
        Self { expected, pages: Box::new(seen.chain(next)) }
    }

    /// Puts the key of each item in place of the item.
    #[must_use]
    pub fn keys_alone(self) -> Self {
        let alone = |page: Page| Page { items: page.items.keys_alone(), ..page };
        Self { pages: Box::new(self.pages.map(move |page| page.map(alone))), ..self }
    }

    /// Starts a thread that reads ahead, until the end of the input or until the receiver is
    /// dropped.
    ///
    /// # Errors
    /// The thread cannot be started.
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

    /// Keeps the first `most` items, and drops the others.
    #[must_use]
    pub fn truncated(self, most: usize) -> Self {
        let items = self.items.slice(0..self.items.len().min(most));
        Self { items, ..self }
    }

    /// Splits the page into pages of at most `most` items. The first page keeps the malformed
    /// entries and the cursor of the whole page.
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

/// Name of an input for messages. `-` is shown as "standard input".
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
