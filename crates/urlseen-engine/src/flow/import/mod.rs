//! Importing: the fingerprints of a crawl that used something else, into the local store.
//!
//! An import is a pipe that prints nothing. What is read goes through the engine, so that nothing
//! is logged twice; what is new is logged as adds, which count whatever becomes of the crawl's
//! batches, and set once it is logged. Digests go raw from where they were read: only lines and
//! members of sets were ever text.
//!
//! How far it came is kept in the folder, each second, once all before is in the log and on the
//! disk; the next import of the same goes on there.

mod cut;
mod digests;
mod files;
mod frames;
mod lines;
mod set;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::engine::store::Local;
use crate::engine::{Engine, EngineError};
use crate::flow::input::InputName;
use crate::item::Items;
use crate::item::batch::Batch;
pub(crate) use cut::CutError;
pub use digests::{Digests, digests};
use urlseen_core::redis::RedisAddress;
use urlseen_core::redis::error::LinkError;
use urlseen_core::storage::Checkpoint;

/// Pages that are read and wait to be judged.
const READ_AHEAD: usize = 4;

/// Pages that are being judged: as many as in the pipe.
const JUDGING_MAX: usize = 4;

/// How often progress is told.
const TELL: Duration = Duration::from_millis(200);

/// How often it is kept how far the import came. The log is synced for it.
const MARK: Duration = Duration::from_secs(1);

/// Where fingerprints come from.
#[derive(Debug, Clone)]
pub enum Origin {
    /// Files, plain or compressed; standard input where there are none or where one is `-`.
    Files {
        /// Their names.
        files: Vec<PathBuf>,
        /// What they hold.
        format: Format,
    },
    /// A set in Redis.
    Set {
        /// The server.
        address: RedisAddress,
        /// The set.
        key: String,
    },
}

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One of the others, as its first bytes tell.
    Auto,
    /// Lines of 32, 40 or 64 hex digits, as older versions of Scrapy write `requests.seen`.
    Hex,
    /// `requests.seen` as Scrapy 2.19 writes it.
    RequestsSeen,
}

impl Format {
    /// All of them, the default first.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Hex, Self::RequestsSeen];

    /// The name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Hex => "hex",
            Self::RequestsSeen => "requests-seen",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why an import ended before its end.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file cannot be opened.
    #[error("cannot open {}: {reason}", InputName(name))]
    Open {
        /// The file.
        name: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// Reading, or decompressing, failed.
    #[error("cannot read {} beyond byte {at}: {reason}", InputName(name))]
    Read {
        /// The file.
        name: PathBuf,
        /// How far it was read, decompressed.
        at: u64,
        /// Why.
        reason: io::Error,
    },
    /// The server does not answer as it should.
    #[error(transparent)]
    Redis(#[from] LinkError),
    /// There is no such key.
    #[error(
        "there is no key {key} at {address}; scrapy-redis names its set SPIDER:dupefilter unless \
         SCHEDULER_DUPEFILTER_KEY says otherwise, and deletes it at the end of a crawl unless \
         SCHEDULER_PERSIST is set"
    )]
    NoSet {
        /// The key.
        key: String,
        /// The server and the database.
        address: String,
    },
    /// The key is no set.
    #[error(
        "the key {key} holds a {found}, and a set was expected; scrapy-redis names its set \
         SPIDER:dupefilter unless SCHEDULER_DUPEFILTER_KEY says otherwise"
    )]
    OtherType {
        /// The key.
        key: String,
        /// What it holds.
        found: String,
    },
    /// What is kept of the filter.
    #[error("the storage folder cannot be written: {0}")]
    Storage(io::Error),
    /// A thread of the engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The thread that reads could not be started.
    #[error("no thread could be started: {0}; is the limit on processes (ulimit -u) too low?")]
    Thread(io::Error),
}

/// What was counted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct ImportCount {
    /// All that was read and is a fingerprint.
    pub read: u64,
    /// Those that were not in the filter.
    pub new: u64,
    /// Those that were, or came before in the same import.
    pub seen: u64,
    /// What is no fingerprint.
    pub bad: u64,
}

/// Something that is no fingerprint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bad {
    /// What it stands in.
    pub source: String,
    /// The byte where it begins, of a file as it is when decompressed.
    pub offset: Option<u64>,
    /// Its line, from 1, where there are lines.
    pub line: Option<u64>,
    /// What is wrong with it.
    pub reason: CutError,
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

/// How much was read of how much: bytes of files as they lie there, members of a set.
#[derive(Debug, Default)]
pub struct Meter {
    read: AtomicU64,
    expected: AtomicU64,
}

impl Meter {
    /// How much was read, by an earlier import too.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// How much there is; 0 if nobody knows.
    pub fn expected(&self) -> u64 {
        self.expected.load(Ordering::Relaxed)
    }

    fn advance_to(&self, read: u64) {
        self.read.store(read, Ordering::Relaxed);
    }

    fn expect(&self, all: u64) {
        self.expected.store(all, Ordering::Relaxed);
    }
}

/// Who is told about an import's work while it goes on.
pub trait ImportAudience {
    /// An earlier import was broken off: this one goes on with `place`.
    fn goes_on(&mut self, place: &str);
    /// Something is no fingerprint. Where much is bad at once, not all of it is told.
    fn bad(&mut self, bad: &Bad);
    /// So much was done.
    fn progress(&mut self, count: &ImportCount, meter: &Meter, engine: &Engine);
    /// Something went wrong that the import goes on without.
    fn trouble(&mut self, words: &str);
}

/// What was read at once.
#[derive(Debug)]
struct Page {
    /// Raw bytes of fingerprints.
    digests: Items,
    /// The first of what is bad, and how much is.
    bad: Vec<Bad>,
    bad_count: u64,
    /// How far the source is read with it, if that is of use to a later import.
    checkpoint: Option<Checkpoint>,
    /// Where an earlier import ended, if this goes on there.
    resumed: Option<String>,
}

/// Where pages are handed over to be judged.
type Sender = mpsc::Sender<Result<Page, ImportError>>;
type Receiver = mpsc::Receiver<Result<Page, ImportError>>;

/// Imports all that comes from `origin` into `store`, whose engine reads digests. Where reading
/// fails, what was read before is imported first.
///
/// # Panics
/// If `store` is judging batches that were submitted before.
pub async fn run(
    origin: Origin,
    store: &mut Local,
    audience: &mut impl ImportAudience,
) -> Result<ImportCount, ImportError> {
    let meter = Arc::<Meter>::default();
    let mut pages = origin.read(store.checkpoints(), Arc::clone(&meter))?;
    let mut judging: VecDeque<Page> = VecDeque::new();
    let mut progress = ImportProgress::default();
    let mut end = None;
    let mut tell = tokio::time::interval(TELL);
    tell.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while end.is_none() || !judging.is_empty() {
        tokio::select! {
            judged = store.engine.judged(), if !judging.is_empty() => {
                let judged = judged?;
                let page = judging.pop_front().expect("every batch was a page");
                store.add(&judged).map_err(ImportError::Storage)?;
                tell_no_snapshot(store.tend(), audience);
                let (read, new) = (judged.items().len() as u64, judged.onward_len() as u64);
                progress.done(page, read, new, audience);
                progress.record_checkpoint(store)?;
            }
            page = pages.recv(), if end.is_none() && judging.len() < JUDGING_MAX => match page {
                None => end = Some(Ok(())),
                Some(Err(error)) => end = Some(Err(error)),
                Some(Ok(mut page)) => {
                    if let Some(place) = &page.resumed {
                        audience.goes_on(place);
                    }
                    store.engine.submit(Batch::new(std::mem::take(&mut page.digests)));
                    judging.push_back(page);
                }
            },
            _ = tell.tick() => audience.progress(&progress.count, &meter, &store.engine),
        }
    }
    store.engine.settled().await?;
    tell_no_snapshot(store.wait_for_snapshot().and_then(Result::err), audience);
    progress.mark_all(store)?;
    store.rest_as_it_is().map_err(ImportError::Storage)?;
    audience.progress(&progress.count, &meter, &store.engine);
    end.unwrap_or(Ok(()))?;
    Ok(progress.count)
}

fn tell_no_snapshot(error: Option<io::Error>, audience: &mut impl ImportAudience) {
    if let Some(error) = error {
        audience.trouble(&format!("no snapshot could be taken ({error}); the log grows on"));
    }
}

/// What was done, and how far that is.
#[derive(Debug, Default)]
struct ImportProgress {
    count: ImportCount,
    /// How far each source was read whose checkpoint is not kept yet.
    checkpoints: BTreeMap<String, Checkpoint>,
    /// When checkpoints were kept last.
    marked: Option<Instant>,
}

impl ImportProgress {
    /// A page is in the log, of which so much was new.
    fn done(&mut self, page: Page, read: u64, new: u64, audience: &mut impl ImportAudience) {
        for bad in &page.bad {
            audience.bad(bad);
        }
        let ImportCount { read: all, new: all_new, seen, bad } = self.count;
        self.count = ImportCount {
            read: all + read,
            new: all_new + new,
            seen: seen + read - new,
            bad: bad + page.bad_count,
        };
        if let Some(checkpoint) = page.checkpoint {
            self.checkpoints.insert(checkpoint.source.clone(), checkpoint);
        }
    }

    /// Keeps how far it came, if that was not done of late.
    fn record_checkpoint(&mut self, store: &mut Local) -> Result<(), ImportError> {
        if self.marked.is_some_and(|marked| marked.elapsed() < MARK) {
            return Ok(());
        }
        self.mark_all(store)?;
        self.marked = Some(Instant::now());
        Ok(())
    }

    fn mark_all(&mut self, store: &mut Local) -> Result<(), ImportError> {
        let checkpoints: Vec<Checkpoint> =
            std::mem::take(&mut self.checkpoints).into_values().collect();
        if checkpoints.is_empty() {
            return Ok(());
        }
        store.record_checkpoints(&checkpoints).map_err(ImportError::Storage)
    }
}

impl Origin {
    /// Reads pages ahead, on a thread of its own.
    fn read(
        self,
        checkpoints: Vec<Checkpoint>,
        meter: Arc<Meter>,
    ) -> Result<Receiver, ImportError> {
        let (sender, pages): (Sender, _) = mpsc::channel(READ_AHEAD);
        let life = move || {
            let result = match self {
                Self::Files { files, format } => {
                    files::read(files, format, &checkpoints, &meter, &sender)
                }
                Self::Set { address, key } => {
                    let runtime =
                        tokio::runtime::Builder::new_current_thread().enable_all().build();
                    runtime.map_err(ImportError::Thread).and_then(|runtime| {
                        runtime.block_on(set::read(&address, &key, &checkpoints, &meter, &sender))
                    })
                }
            };
            if let Err(error) = result {
                let _ = sender.blocking_send(Err(error));
            }
        };
        let thread = std::thread::Builder::new().name("reader".to_owned());
        thread.spawn(life).map_err(ImportError::Thread)?;
        Ok(pages)
    }
}
