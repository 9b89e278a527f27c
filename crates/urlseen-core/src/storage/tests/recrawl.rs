//! A year of a crawl whose fingerprints expire, with a simulated clock. Each URL passes within its
//! window, none before, and none is lost: with kills, rollbacks, snapshots, growth, stops, and
//! clocks that are set to another time. Cites the rules G2, G3 and G6.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use super::super::{
    Copied, Doubt, FilterStorage, Folder, GenerationClock, LiveFilter, Logged, Moment, Restore,
    Section, StoragePolicy, StorageSpec, Target, TimesOfDay,
};
use super::random::{Random, seeds};
use super::sim::SimDisk;
use crate::filter::choice::Fsync;
use crate::filter::expire_after::ExpireAfter;
use crate::filter::generation::Generation;
use crate::filter::lifetime::{Lifetime, Lifetimes};
use crate::filter::{FilterSpec, ForgettingFilter, KeyHasher, Kind, Parameters, ShardId, Verdict};
use crate::fingerprint::{Algorithm, Fingerprint};
use crate::limit::Counted;
use crate::storage::head::{Head, Position};

const DAY: Duration = Duration::from_hours(24);

/// Longest time after which a URL passes again.
const LAST: Duration = Duration::from_hours(36 * 24);

/// Clocks that are wrong by a minute count as right.
const NEARLY: Duration = Duration::from_mins(30);

/// Number of different URLs. The filter begins much smaller.
const URLS: usize = 3000;

/// Returns the lifetime of a URL. One of 16 never passes again.
fn lifetime(url: usize) -> Lifetime {
    match url % 16 {
        0 => Lifetime::FOREVER,
        days => Lifetime::at_least(DAY * u32::try_from(6 * days).unwrap(), expire_after()),
    }
}

/// Returns the first and the last time after which a URL passes again.
fn window(url: usize) -> Option<(Duration, Duration)> {
    let days = |days: usize| DAY * u32::try_from(days).unwrap();
    match url % 16 {
        0 => None,
        it => Some((days(6 * it.min(5)), days(6 * it.min(5) + 6))),
    }
}

fn expire_after() -> ExpireAfter {
    "30d".parse().unwrap()
}

/// Filter in memory, with its position.
#[derive(Clone)]
struct Live {
    hasher: KeyHasher,
    state: Arc<Mutex<(ForgettingFilter, Position)>>,
}

impl Live {
    fn new() -> Self {
        let filter = parameters().build(0, 1).unwrap();
        let filter = ForgettingFilter::new(filter, Arc::default());
        let state = Arc::new(Mutex::new((filter, Position::START)));
        Self { hasher: parameters().hasher(), state }
    }

    fn with<T>(&self, work: impl FnOnce(&mut ForgettingFilter) -> T) -> T {
        work(&mut self.state.lock().unwrap().0)
    }

    fn is_seen(&self, url: usize) -> bool {
        let mut verdicts = Vec::new();
        self.with(|it| it.test(&[self.hasher.key_hash(&fingerprint(url))], &mut verdicts));
        verdicts == [Verdict::Seen]
    }

    /// Inserts URLs that were let through in a generation.
    fn let_through(&self, urls: &[usize], generation: Generation) {
        for &url in urls {
            self.insert(&[fingerprint(url)], lifetime(url).stored_in(generation));
        }
    }

    fn insert(&self, fingerprints: &[Fingerprint], generation: Generation) {
        let key_hashes: Vec<_> = fingerprints.iter().map(|it| self.hasher.key_hash(it)).collect();
        self.with(|filter| filter.insert_in(generation, &key_hashes)).unwrap();
    }

    fn generation(&self) -> Generation {
        self.with(|filter| filter.kind().gauge().generations()).unwrap().now
    }
}

impl Restore for Live {
    fn clear(&mut self) {
        self.with(ForgettingFilter::clear);
    }

    fn load(&mut self, section: Section, body: &mut dyn Read) -> io::Result<()> {
        self.with(|filter| filter.load(section.shard, section.keys, section.len, body))
    }

    fn load_tombstone(&mut self, _: ShardId, _: u128) {
        panic!("the kind removes keys");
    }

    fn add(&mut self, fingerprints: Vec<Fingerprint>, generation: Generation, _: Position) {
        self.insert(&fingerprints, generation);
    }

    fn forget(&mut self, _: Vec<Fingerprint>, _: Position) {
        panic!("nothing is forgotten");
    }

    fn begin_generation(&mut self, generation: Generation) {
        self.with(|filter| filter.begin_generation(generation));
    }
}

impl LiveFilter for Live {
    fn copy(&self, shard: ShardId, buffer: Vec<u8>) -> Option<Copied> {
        let state = self.state.lock().unwrap();
        let (blob, tombstones) = state.0.save(shard, buffer);
        Some(Copied { blob, at: state.1, tombstones })
    }

    fn copy_counts(&self) -> (Vec<Counted>, Position) {
        (Vec::new(), self.state.lock().unwrap().1)
    }

    fn stand(&self, at: Position) {
        self.state.lock().unwrap().1 = at;
    }

    fn saved_bytes(&self) -> u64 {
        0
    }

    #[cfg(feature = "simulation")]
    fn is_stepped(&self) -> bool {
        true
    }
}

fn parameters() -> Parameters {
    let value = |name| match name {
        "filter.capacity" => Some("200".to_owned()),
        "filter.grow_to" => Some("1000000".to_owned()),
        "filter.error_rate" => Some("1e-9".to_owned()),
        "filter.expire_after" => Some(expire_after().to_string()),
        "filter.seed" => Some("7".to_owned()),
        _ => None,
    };
    Kind::TWO_CHOICE.read(&value).unwrap()
}

fn fingerprint(url: usize) -> Fingerprint {
    let mut raw = [0; 20];
    let spread = (url as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    raw[..16].copy_from_slice(&spread.to_be_bytes());
    Fingerprint::Raw20(raw)
}

/// Batch of URLs that passed, as the log has it.
struct Batch {
    /// Each URL, with the time at which it had passed before.
    urls: Vec<(usize, Option<Duration>)>,
    logged: Logged,
    is_committed: bool,
}

/// Crawl, and what must be true of it.
struct Crawl {
    disk: SimDisk,
    live: Live,
    storage: FilterStorage<Live>,
    clock: GenerationClock,
    /// Generation that began last in this run.
    begun: Option<Generation>,
    doubt: Option<Doubt>,
    random: Random,
    /// True time since 1970, which no clock need show.
    time: Duration,
    /// True time at the boot of the machine.
    boot: Duration,
    /// True if a clock was wrong at the start of the run.
    was_wrong: bool,
    /// True time at which each URL last passed.
    passed: BTreeMap<usize, Duration>,
    /// Batches of the present history, the oldest first.
    batches: Vec<Batch>,
    /// Until this time, URLs may pass later than their window, because a clock was doubted.
    doubted: Duration,
    /// Numbers of passes, repeated passes, and doubts.
    counts: [u64; 3],
}

fn policy() -> StoragePolicy {
    StoragePolicy { fsync: Fsync::Always, ..StoragePolicy::default() }
}

fn spec() -> StorageSpec {
    let filter = FilterSpec { parameters: parameters(), fingerprint: Algorithm::Scrapy.into() };
    StorageSpec { crawl: "demo".to_owned(), filter }
}

impl Crawl {
    fn new(seed: u64) -> Self {
        let (disk, live) = (SimDisk::default(), Live::new());
        let folder = Folder::open_on(disk.dir()).unwrap();
        let mut storage = FilterStorage::new(live.clone(), folder, policy());
        storage.begin(&spec(), Head::START).unwrap();
        let time = 20_000 * DAY;
        let (clock, doubt) = begin(&live, &mut storage, [time; 2]);
        let mut crawl = Self {
            clock,
            begun: None,
            doubt,
            disk,
            live,
            storage,
            random: Random::new(seed),
            time,
            boot: time,
            was_wrong: false,
            passed: BTreeMap::new(),
            batches: Vec::new(),
            doubted: Duration::ZERO,
            counts: [0; 3],
        };
        crawl.begin_due();
        crawl
    }

    /// Begins the generation of the present time.
    fn begin_due(&mut self) {
        let due = self.clock.generation_at(Moment::new("boot", self.time.abs_diff(self.boot)));
        if self.begun.is_none_or(|begun| due > begun) {
            self.storage.begin_generation(due).unwrap();
            self.live.begin_generation(due);
            self.begun = Some(due);
        }
    }

    fn step(&mut self) {
        match self.random.below(40) {
            0 => self.restart(Duration::ZERO, 0),
            1 => {
                let stop = DAY * u32::try_from(self.random.below(20)).unwrap();
                self.restart(stop, 0);
            }
            2 => {
                let batches = self.random.below(4);
                self.restart(Duration::ZERO, batches);
            }
            3 => {
                self.storage.begin_snapshot(None).unwrap();
                self.storage.wait_for_snapshot().unwrap().unwrap();
            }
            4..8 => _ = self.live.with(ForgettingFilter::sweep),
            8..14 => {
                self.time += Duration::from_secs(self.random.next() % (2 * DAY).as_secs());
                self.begin_due();
            }
            14..25 => self.commit(),
            _ => self.judge(),
        }
    }

    /// Judges some URLs, and logs those that pass.
    fn judge(&mut self) {
        let open = self.batches.iter().filter(|batch| !batch.is_committed);
        let in_flight: Vec<usize> = open.flat_map(|it| it.urls.iter().map(|it| it.0)).collect();
        let mut urls = Vec::new();
        for _ in 0..20 {
            let url = self.random.below(URLS);
            if in_flight.contains(&url) || urls.iter().any(|&(other, _)| other == url) {
                continue;
            }
            let before = self.passed.get(&url).copied();
            let age = before.map(|before| self.time.checked_sub(before).unwrap());
            if self.live.is_seen(url) {
                let age = age.expect("only a URL that has passed is seen");
                let is_late = window(url).is_some_and(|(_, last)| age >= last + NEARLY);
                assert!(!is_late || self.time < self.doubted, "passes too late: {age:?}");
                continue;
            }
            if let Some(age) = age {
                let (first, _) = window(url).expect("a URL that expires");
                assert!(age + NEARLY >= first, "passes too early: {age:?}");
                self.counts[1] += 1;
            }
            urls.push((url, before));
            self.counts[0] += 1;
        }
        let added: Vec<_> = urls.iter().map(|&(url, _)| fingerprint(url)).collect();
        let mut lifetimes = Lifetimes::default();
        for (index, &(url, _)) in urls.iter().enumerate() {
            lifetimes.push(index, lifetime(url));
        }
        let mut group = self.storage.journal().unwrap().group();
        group.append(&added, &lifetimes, &[]).unwrap();
        let logged = group.finish().unwrap()[0].logged();
        for &(url, _) in &urls {
            self.passed.insert(url, self.time);
        }
        self.batches.push(Batch { urls, logged, is_committed: false });
    }

    /// Commits the oldest batch in flight. Its keys are set in the generation of its record, even
    /// if another one has begun (rule G6).
    fn commit(&mut self) {
        let Some(batch) = self.batches.iter_mut().find(|batch| !batch.is_committed) else { return };
        batch.is_committed = true;
        let urls: Vec<_> = batch.urls.iter().map(|&(url, _)| url).collect();
        self.live.let_through(&urls, batch.logged.generation);
        self.live.stand(batch.logged.at);
    }

    /// Kills the process, and starts it again after a time. Redis has lost some of its batches.
    fn restart(&mut self, after: Duration, lost: usize) {
        let committed = self.batches.iter().filter(|batch| batch.is_committed).count();
        for batch in self.batches.drain(committed.saturating_sub(lost)..).rev() {
            for (url, before) in batch.urls {
                match before {
                    Some(before) => self.passed.insert(url, before),
                    None => self.passed.remove(&url),
                };
            }
        }
        let head = self.batches.last().map_or(Head::START, |batch| batch.logged.at.head);
        self.time += after;
        self.boot = self.time;
        self.disk = self.disk.after_kill();
        self.live = Live::new();
        let folder = Folder::open_on(self.disk.dir()).unwrap();
        self.storage = FilterStorage::new(self.live.clone(), folder, policy());
        self.storage.recover(Target::At(head)).unwrap();
        let times = self.shown();
        (self.clock, self.doubt) = begin(&self.live, &mut self.storage, times);
        self.begun = None;
        if self.was_wrong {
            // The time since the start of the last run may not count.
            self.doubted = self.time + LAST + LAST;
        }
        self.counts[2] += u64::from(self.doubt.is_some());
        assert!(self.doubt.is_none() || self.time < self.doubted, "{:?}", self.doubt);
        self.begin_due();
    }

    /// Draws the times that both clocks show. One of them, or both, may be minutes to years behind;
    /// one may also be ahead. Then both are right at the next start, because two clocks that are
    /// set by the same time cannot be told from a stop.
    fn shown(&mut self) -> [Duration; 2] {
        let by = [1, 31 * 24 * 60, 800 * 24 * 60][self.random.below(3)] * Duration::from_mins(1);
        let (now, behind, ahead) = (self.time, self.time.saturating_sub(by), self.time + by);
        let choices = [[behind, now], [now, behind], [behind, behind], [ahead, now], [now, ahead]];
        let is_wrong = !std::mem::take(&mut self.was_wrong) && self.random.once_in(3);
        if is_wrong {
            self.was_wrong = true;
            return choices[self.random.below(choices.len())];
        }
        [now; 2]
    }
}

/// Begins the generations of a run. Returns its clock, and the reason if the time since the last
/// run does not count.
fn begin(
    live: &Live,
    storage: &mut FilterStorage<Live>,
    times: [Duration; 2],
) -> (GenerationClock, Option<Doubt>) {
    let [local, redis] = times.map(|time| UNIX_EPOCH + time);
    let (last, times) = (storage.folder.timing(), TimesOfDay { local, redis: Some(redis) });
    let recorded = live.generation();
    let now = Moment::new("boot", Duration::ZERO);
    let (clock, timing, doubt) = GenerationClock::new(expire_after(), recorded, last, times, now);
    storage.folder.record_timing(&timing).unwrap();
    (clock, doubt)
}

#[test]
fn each_url_passes_within_its_window_for_a_year() {
    for seed in seeds(12) {
        let mut crawl = Crawl::new(seed);
        let end = crawl.time + 365 * DAY;
        while crawl.time < end {
            crawl.step();
        }
        let [passed, again, doubts] = crawl.counts;
        assert!(again > 500 && doubts > 5, "{seed}: {passed}, {again}, {doubts}");
    }
}
