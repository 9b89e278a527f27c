//! Plan of a round: the crawl and its faults. A seed decides everything.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;

use crate::proxy::Weather;

/// Values of `sink.kind`, with which the crawls take turns.
const SINKS: [&str; 2] = ["list", "zset"];

/// Longest time between the page before a fault and the fault.
const PAUSE_US: u64 = 30_000;

/// Share of the pages, in thousandths, that are fetched before the last fault at most.
const LAST: u64 = 850;

/// Kind of an injected fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A single spider is killed.
    Spider,
    /// All spiders are killed.
    AllSpiders,
    /// A spider is stopped until other spiders have taken its requests.
    Pause,
    /// The daemon `urlseen` is killed.
    Daemon,
    /// Redis is killed. It has synced everything to its disk.
    Redis,
    /// The connection of a spider is cut, after a random byte of a command or of an answer.
    Cut,
    /// The same, and Redis reads the rest of the command later.
    Late,
}

/// Faults of a round, in any order.
const KINDS: [Kind; 13] = [
    Kind::Spider,
    Kind::Spider,
    Kind::Spider,
    Kind::AllSpiders,
    Kind::Pause,
    Kind::Daemon,
    Kind::Daemon,
    Kind::Redis,
    Kind::Cut,
    Kind::Cut,
    Kind::Cut,
    Kind::Late,
    Kind::Late,
];

/// Fault at a moment of the crawl.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Strike {
    pub(crate) kind: Kind,
    /// Share of the pages, in thousandths, that are fetched before.
    pub(crate) share: u64,
    /// Time between these pages and the fault.
    pub(crate) pause: Duration,
    /// Network of the spiders from this fault on.
    pub(crate) weather: Weather,
}

#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) spiders: u64,
    pub(crate) partitions: u64,
    pub(crate) sink: &'static str,
    pub(crate) strikes: Vec<Strike>,
}

impl Plan {
    /// Draws a plan from its seed. Seeds in sequence take turns with the kinds of crawls.
    pub(crate) fn draw(seed: u64, spiders: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let sink = SINKS[usize::from(seed.is_multiple_of(2))];
        let partitions = if seed.is_multiple_of(2) { 4 } else { 1 };
        let mut kinds = KINDS;
        random.shuffle(&mut kinds);
        let mut shares: Vec<u64> = kinds.iter().map(|_| random.u64(0..LAST)).collect();
        shares.sort_unstable();
        let strikes = kinds.into_iter().zip(shares).map(|(kind, share)| Strike {
            kind,
            share,
            pause: Duration::from_micros(random.u64(0..PAUSE_US)),
            // A slow network makes the time longer in which a kill hits a command.
            weather: Weather { piece: None, delay: Duration::from_micros(random.u64(0..3_000)) },
        });
        Self { seed, spiders, partitions, sink, strikes: strikes.collect() }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { spiders, partitions, sink, .. } = self;
        write!(f, "{spiders} spiders, {sink}, {partitions} partitions")
    }
}
