//! Replay: shows the effect that urlseen would have on the items of files or Redis keys. The files
//! and keys are not changed.
//!
//! ```text
//! feed -> engine with an exact filter -> a lane for each kind
//! ```
//!
//! The driver judges the items by a filter of the kind `exact`, so the engine knows which
//! fingerprints are new. Each lane is a thread with a filter of one kind in memory. A lane judges
//! the same items, and counts the new fingerprints that it reports as seen. A replay writes no
//! lease, no Redis key and no folder.

mod curve;
mod judging;
mod keys;
mod lane;
mod report;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::{anyhow, bail};
use judging::Judging;
use keys::Keys;
pub(crate) use lane::LaneSpec;
pub(crate) use report::{KeyRead, LaneReport, ReplayEnding, ReplayReport, Ruled, Tally};
use tokio::runtime::Builder;
use urlseen_engine::engine::store::Local;
use urlseen_engine::engine::{Engine, EngineError, Parts, Threads, Works, WorksError, query};
use urlseen_engine::flow::driver::{Audience, Flow, FlowError};
use urlseen_engine::flow::feed::{Feed, FeedError, Page};
use urlseen_engine::flow::import::Origin;
use urlseen_engine::flow::input;
use urlseen_engine::flow::records::Records;
use urlseen_engine::item::{Form, Options, OwnedRequest, Reader};
use urlseen_filter::memory::gib;
use urlseen_filter::{Kind, Seed, memory};
use urlseen_redis::RedisAddress;
use urlseen_redis::protocol::Source;

use crate::analysis::suggest::Suggestions;

/// Input and filters of a replay.
#[derive(Debug)]
pub(crate) struct Setup<'a> {
    /// Crawl that is replayed.
    pub(crate) crawl: Crawl<'a>,
    /// Options for reading items.
    pub(crate) items: Options,
    /// Seed of the exact filter, and of all compared filters whose kind has a seed.
    pub(crate) seed: Seed,
    /// Specs of the compared filters, one for each lane.
    pub(crate) specs: Vec<LaneSpec>,
    /// Number of threads that read items; 0 for the number of processors.
    pub(crate) threads: usize,
    /// Fingerprints that count as seen from the start.
    pub(crate) seen: Vec<Origin>,
    /// Items that are replayed.
    pub(crate) input: Input,
    /// Maximum number of items that are replayed.
    pub(crate) most: Option<u64>,
}

/// Crawl that is replayed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crawl<'a> {
    /// Server with the keys that are read.
    pub(crate) address: &'a RedisAddress,
    /// Order in which the items of a list are read.
    pub(crate) list: Source,
    /// Maximum number of items of a batch.
    pub(crate) batch: usize,
}

/// Items that are replayed.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    /// Records of these files, or of standard input if the list is empty.
    Files(Vec<PathBuf>, Records),
    /// Lists, sorted sets and sets in Redis, in the order in which they are read.
    Keys(Vec<String>),
}

/// Replays until the input ends, or until `stop` is set. The report covers the items that were
/// read.
///
/// # Errors
/// The replay could not start. If the replay fails after its start, the report states the reason
/// instead.
pub(crate) fn run(
    setup: Setup<'_>,
    stop: &Arc<AtomicBool>,
    audience: &mut dyn Audience,
) -> anyhow::Result<ReplayReport> {
    let Setup { crawl, items, seed, specs, threads, seen, input, most } = setup;
    let Opened { feed, count, rows } = open(input, crawl, most)?;
    let exact = Kind::EXACT.read(&|_| None)?.reseeded(seed);
    let filters = specs.iter().map(|spec| spec.bytes).fold(0, u64::saturating_add);
    check_memory(filters, exact.outlook(count)?.bytes[1])?;
    let mut judging = Judging::start(specs, seed, &items)?;
    let mut engine = Engine::start(&Parts::local(exact, items.clone(), Threads::start(threads)?))?;
    if judging.needs_seen() {
        engine.keeps_seen = true;
    }
    let works = Local::volatile(engine).work(query::open(0).1).map_err(FeedError::Thread)?;
    let mut replay = Replay { works, judging: &mut judging, audience, stop };

    let started = Instant::now();
    let digests = Options::new(Form::Digest, items.fingerprint.clone());
    let ended = replay.given(seen, &digests).and_then(|()| replay.flow(feed, &items, false));
    let ending = match ended {
        Ok(Ok(())) if stop.load(Ordering::Relaxed) => ReplayEnding::Stopped,
        Ok(Ok(())) => ReplayEnding::Whole,
        Ok(Err(error)) => ReplayEnding::Failed(error.into()),
        Err(error) => match error.downcast_ref() {
            Some(FlowError::Works(WorksError::Engine(EngineError::Full(_)))) => {
                ReplayEnding::OutOfMemory
            }
            _ => ReplayEnding::Failed(error),
        },
    };
    let fill = replay.works.engine.handle.gauge.fill();
    let (tally, kinds) = judging.end();
    Ok(ReplayReport {
        tally,
        kinds,
        keys: std::mem::take(&mut rows.lock().expect("no holder panics")),
        exact_keys: fill.counted,
        exact_bytes: fill.bytes,
        seconds: started.elapsed().as_secs_f64(),
        ending,
    })
}

/// Returns the requests of the input, in order. Skips items that are none.
///
/// # Errors
/// The input cannot be read.
pub(crate) fn requests(
    input: Input,
    items: Options,
    crawl: Crawl<'_>,
    most: Option<u64>,
) -> anyhow::Result<impl Iterator<Item = Result<OwnedRequest, FeedError>> + use<>> {
    let mut reader = Reader::new(items);
    Ok(open(input, crawl, most)?.feed.pages.flat_map(move |page| {
        let requests = page.map(|Page { items, .. }| {
            let keys = (0..items.len()).filter_map(|index| items.key(index).ok());
            keys.filter_map(|item| reader.outline(item).ok()?.request).map(Ok).collect()
        });
        requests.unwrap_or_else(|error| vec![Err(error)])
    }))
}

/// Searches the input for rules that would save requests, until the input ends or `stop` is set.
///
/// # Errors
/// The input cannot be read.
pub(crate) fn suggest(
    input: Input,
    items: Options,
    crawl: Crawl<'_>,
    most: Option<u64>,
    stop: &AtomicBool,
) -> anyhow::Result<Suggestions> {
    let spec = items.fingerprint.clone();
    let requests = requests(input, items, crawl, most)?;
    let requests = requests.take_while(|_| !stop.load(Ordering::Relaxed));
    Ok(crate::analysis::suggest::suggest(spec, requests)?)
}

/// Input that was opened.
struct Opened {
    feed: Feed,
    /// Number of items; 0 if it is unknown.
    count: u64,
    /// Numbers of items that were read from each key in Redis.
    rows: Arc<Mutex<Vec<KeyRead>>>,
}

/// Opens the input of a replay, cut into the pages of a crawl.
fn open(input: Input, crawl: Crawl<'_>, most: Option<u64>) -> anyhow::Result<Opened> {
    let mut rows = Arc::default();
    let (feed, count) = match input {
        Input::Files(files, records) => {
            let feed = input::records(files, records).keys_alone();
            // `feed.expected` is a number of bytes. The number of bytes of the first `most` items
            // is unknown.
            let expected = if most.is_none() { feed.expected } else { 0 };
            (Feed { expected, ..feed }, 0)
        }
        Input::Keys(keys) => {
            let keys = Keys::open(crawl, keys, most.unwrap_or(u64::MAX))?;
            rows = Arc::clone(&keys.rows);
            let expected = keys.expected();
            (Feed { expected, pages: Box::new(keys) }, expected)
        }
    };
    Ok(Opened { feed: cut(feed, crawl.batch, most), count, rows })
}

/// Replay that is running.
struct Replay<'a> {
    works: Works,
    judging: &'a mut Judging,
    audience: &'a mut dyn Audience,
    stop: &'a Arc<AtomicBool>,
}

impl Replay<'_> {
    /// Adds to all filters the fingerprints that count as seen from the start.
    fn given(&mut self, seen: Vec<Origin>, options: &Options) -> anyhow::Result<()> {
        for origin in seen {
            let failed =
                |error| anyhow!("the fingerprints that count as seen cannot be read: {error}");
            let feed = origin.open(Vec::new()).map_err(failed)?;
            self.flow(feed, options, true)?.map_err(failed)?;
        }
        Ok(())
    }

    /// Passes all items of a feed through the engine to the lanes.
    fn flow(
        &mut self,
        feed: Feed,
        options: &Options,
        is_given: bool,
    ) -> anyhow::Result<Result<(), FeedError>> {
        self.works.engine.read_as(options.clone());
        self.judging.is_given = is_given;
        let (Feed { expected, mut pages }, stop) = (feed, Arc::clone(self.stop));
        // When `stop` is set, the page that is being read is still counted.
        let pages =
            std::iter::from_fn(
                move || {
                    if stop.load(Ordering::Relaxed) { None } else { pages.next() }
                },
            );
        let feed = Feed { expected, pages: Box::new(pages) };
        let flow = Flow {
            works: &mut self.works,
            pages: feed.spawn()?,
            effect: Some(self.judging),
            fill: None,
            remedy: "",
            audience: self.audience,
        };
        let runtime = Builder::new_current_thread().enable_all().build();
        let (_, ended) = runtime.map_err(FeedError::Thread)?.block_on(flow.run())?;
        Ok(ended)
    }
}

/// Cuts a feed into pages of at most `batch` items, and ends the feed after `most` items.
fn cut(Feed { expected, mut pages }: Feed, batch: usize, most: Option<u64>) -> Feed {
    let mut left = most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
    let pages = std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let page = pages.next()?.map(|page| page.truncated(left));
        left -= page.as_ref().map_or(0, |page| page.items.len());
        Some(page)
    });
    let pages = pages.flat_map(move |page| match page {
        Ok(page) => page.split(batch).map(Ok).collect(),
        Err(error) => vec![Err(error)],
    });
    Feed { expected, pages: Box::new(pages) }
}

/// Checks that a replay fits into the available memory. `filters` and `exact` are the bytes of the
/// filters and of the exact set. If the available memory is unknown, the check succeeds.
fn check_memory(filters: u64, exact: u64) -> anyhow::Result<()> {
    match memory::available() {
        Some(available) if available.bytes < filters.saturating_add(exact) => {
            bail!(
                "this does not fit: the filters of the kinds take {:.2} GiB and the exact set \
                 {:.2} GiB, and {:.2} GiB are available {}; replay fewer kinds (--kinds) or items \
                 (--count), lower filter.capacity, or give the process more memory",
                gib(filters),
                gib(exact),
                gib(available.bytes),
                available.limit
            )
        }
        _ => Ok(()),
    }
}
