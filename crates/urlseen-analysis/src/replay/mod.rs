//! A replay: what urlseen would do with a source, a file or a recorded stream, without doing it.
//!
//! ```text
//! feed (one thread) -> readers (fingerprints, in turn) -> exact set -> a lane for each kind
//! ```
//!
//! Items go in batches, in order. Whether a fingerprint was there before is known exactly; each
//! lane has a filter of its kind in this process's memory, judges what the exact set knows, and
//! counts where the two differ. Nothing is written anywhere: no lease, no key, no folder.

mod curve;
mod error;
mod exact;
mod feed;
mod keys;
mod lane;
mod reading;
mod report;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};

pub use curve::Point;
pub(crate) use error::ReplayError;
use exact::Exact;
use feed::ReplayFeed;
pub use feed::{Input, Seen};
pub use lane::LaneSpec;
use lane::{Judgable, Lane};
use reading::{Work, Worker};
pub use report::{Ending, KeyRead, LaneReport, Reason, Report, Tally};
use urlseen_core::filter::memory;
use urlseen_core::filter::native::Native;
use urlseen_engine::config::Config;
use urlseen_engine::flow::driver::{Audience, Progress};
use urlseen_engine::item::Options;

/// How many batches wait at each station.
const WAITING: usize = 16;

/// How often progress is told.
const TELL: Duration = Duration::from_millis(200);

/// After how many new fingerprints it is looked whether there is memory for more, and how much
/// there must be at least.
const LOOK: u64 = 1 << 18;
const SPARE: u64 = 256 << 20;

/// What is to be replayed, and how.
#[derive(Debug)]
pub struct Setup<'a> {
    /// The source, the filter's settings, the algorithm.
    pub config: &'a Config,
    /// How items are read.
    pub items: Options,
    /// How fingerprints are hashed by `native` and by the exact set.
    pub native: Native,
    /// The kinds that judge.
    pub specs: Vec<LaneSpec>,
    /// How many threads read items.
    pub threads: usize,
    /// What counts as seen from the begin on.
    pub seen: Vec<Seen>,
    /// What is replayed.
    pub input: Input,
    /// How many items at most.
    pub most: Option<u64>,
}

/// Replays until the input ends, or until `stop` is set: then the report is of what was read.
///
/// # Errors
/// It could not begin. What ends it later is in the report.
pub fn run(
    setup: Setup<'_>,
    stop: &Arc<AtomicBool>,
    audience: &mut dyn Audience,
) -> Result<Report, ReplayError> {
    let Setup { config, items, native, specs, threads, seen, input, most } = setup;
    let feed = ReplayFeed::open(config, input, seen, most, Arc::clone(stop))?;
    let (expected, memory) = (feed.expected(), Memory::of(&specs, feed.items()));
    memory.check()?;
    let lanes: Result<Vec<_>, _> =
        specs.into_iter().map(|spec| Lane::start(spec, native)).collect();
    let lanes: Vec<Running> = lanes?.into_iter().map(Running::start).collect::<Result<_, _>>()?;

    let (mut to_read, mut read, mut readers) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..threads.max(1) {
        let (hand_in, work) = bounded(WAITING);
        let (hand_over, done) = bounded(WAITING);
        let life = move || Worker::new(items, native).work(&work, &hand_over);
        let thread = thread::Builder::new().name(format!("reader-{number}"));
        readers.push(thread.spawn(life).map_err(ReplayError::Thread)?);
        to_read.push(hand_in);
        read.push(done);
    }
    let thread = thread::Builder::new().name("feed".to_owned());
    let feeding = thread.spawn(move || feed.run(&to_read)).map_err(ReplayError::Thread)?;

    let started = Instant::now();
    let mut judging = Judging { exact: Exact::new(), tally: Tally::default(), lanes };
    let mut progress = Progress { expected, ..Progress::default() };
    let out_of_memory = judging.all(&read, stop, &mut progress, audience);
    // Whoever waits to hand something over gives up.
    drop(read);
    let fed = ended(feeding);
    // One that panicked looks like the end of the input until it is asked.
    readers.into_iter().for_each(ended);
    let ending = match (fed.ended, out_of_memory) {
        (Err(error), _) => Ending::Failed(error),
        (Ok(()), true) => Ending::OutOfMemory,
        (Ok(()), false) if stop.load(Ordering::Relaxed) => Ending::Stopped,
        (Ok(()), false) => Ending::Whole,
    };
    judging.tell(&mut progress, audience);
    let Judging { exact, tally, lanes } = judging;
    let kinds = lanes.into_iter().map(Running::end).collect();
    Ok(Report {
        tally,
        kinds,
        keys: fed.keys,
        exact_keys: exact.len(),
        exact_bytes: exact.bytes(),
        seconds: started.elapsed().as_secs_f64(),
        ending,
    })
}

/// The memory that a replay takes from the begin on.
struct Memory {
    filters: u64,
    exact: u64,
}

impl Memory {
    fn of(specs: &[LaneSpec], expected: u64) -> Self {
        let filters = specs.iter().map(LaneSpec::bytes).fold(0, u64::saturating_add);
        Self { filters, exact: Exact::bytes_of(expected) }
    }

    /// Refuses what the machine has no memory for; passes where that cannot be known.
    fn check(&self) -> Result<(), ReplayError> {
        let Self { filters, exact } = *self;
        match memory::available() {
            Some(available) if available.bytes < filters.saturating_add(exact) => {
                Err(ReplayError::TooLarge { filters, exact, available })
            }
            _ => Ok(()),
        }
    }
}

/// What has been found out.
struct Judging {
    exact: Exact,
    tally: Tally,
    lanes: Vec<Running>,
}

impl Judging {
    /// Takes what was read, batch by batch in order, until there is no more; whether it ended for
    /// want of memory.
    fn all(
        &mut self,
        read: &[Receiver<reading::Readings>],
        stop: &AtomicBool,
        progress: &mut Progress,
        audience: &mut dyn Audience,
    ) -> bool {
        let (mut told, mut looked) = (Instant::now(), 0);
        // Batches were handed out in turn, and come back so.
        for done in read.iter().cycle() {
            let Ok(readings) = done.recv() else { return false };
            readings.page.bad.iter().for_each(|bad| audience.bad(bad));
            if !readings.is_given {
                progress.read = readings.page.read;
            }
            self.take(readings);
            if told.elapsed() >= TELL {
                self.tell(progress, audience);
                told = Instant::now();
            }
            if self.exact.len() >= looked + LOOK {
                looked = self.exact.len();
                let least = SPARE.max(self.exact.bytes() / 2);
                if memory::available().is_some_and(|available| available.bytes < least) {
                    stop.store(true, Ordering::Relaxed);
                    return true;
                }
            }
        }
        unreachable!("somebody reads")
    }

    fn tell(&self, progress: &mut Progress, audience: &mut dyn Audience) {
        progress.count.read = self.tally.items;
        audience.progress(progress);
    }

    fn take(&mut self, readings: reading::Readings) {
        let key_hashes = readings.key_hashes.iter();
        let new: Vec<bool> = key_hashes.map(|&key_hash| self.exact.insert(key_hash)).collect();
        self.tally.add(&readings, &new);
        let judgable = Arc::new(Judgable {
            items: self.tally.items,
            fingerprints: readings.fingerprints,
            key_hashes: readings.key_hashes,
            new,
            is_given: readings.is_given,
        });
        for lane in &self.lanes {
            // One that is gone has panicked, which is noticed at the end.
            let _ = lane.hand_in.send(Arc::clone(&judgable));
        }
    }
}

/// A lane on a thread of its own.
struct Running {
    hand_in: Sender<Arc<Judgable>>,
    thread: JoinHandle<LaneReport>,
}

impl Running {
    fn start(mut lane: Lane) -> Result<Self, ReplayError> {
        let (hand_in, work) = bounded::<Arc<Judgable>>(WAITING);
        let name = format!("lane-{}", lane.name());
        let life = move || {
            for judgable in work {
                lane.judge(&judgable);
            }
            lane.end()
        };
        let thread = thread::Builder::new().name(name).spawn(life).map_err(ReplayError::Thread)?;
        Ok(Self { hand_in, thread })
    }

    fn end(self) -> LaneReport {
        drop(self.hand_in);
        ended(self.thread)
    }
}

/// What a thread that has ended leaves; its panic is this thread's.
fn ended<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What is handed from the feed to the readers.
type ToReaders = [Sender<Work>];
