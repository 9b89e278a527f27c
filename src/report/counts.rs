//! Counts of a run since its start, durations of its operations, and a sample of the newest items,
//! by fate and by rule, for people who watch a crawl.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use tracing::warn;
use urlseen_engine::item::batch::{Batch, Ready};
use urlseen_engine::item::{Fate, RejectReason};
use urlseen_filter::choice::Choice as _;
use urlseen_filter::histogram::Histogram;

use super::rules::ByRule;

/// Declares the counters: those of the fates of items, then the others. A new counter needs one
/// line here, and one line of code that counts.
macro_rules! counters {
    (
        fates { $( $fate:ident, $name:literal: $meaning:literal; )+ }
        $( $field:ident, $metric:literal: $help:literal $(, event: $event:literal)?; )+
    ) => {
        /// Names of all fates of an item.
        pub(crate) const FATES: [&str; 6] = [$( $name ),+];

        /// Counts since the daemon was started. They never decrease.
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Counts {
            $( #[doc = concat!($meaning, ".")] #[serde(default)] pub $fate: u64, )+
            $( #[doc = concat!($help, ".")] #[serde(default)] pub $field: u64, )+
        }

        impl Counts {
            /// Returns the numbers of committed items, in the order of [`FATES`].
            pub(crate) fn by_fate(&self) -> [u64; FATES.len()] {
                [$( self.$fate ),+]
            }

            /// Returns name, help text and value of each metric, except those of items.
            pub(crate) fn metrics(&self) -> Vec<(&'static str, &'static str, u64)> {
                vec![$( ($metric, $help, self.$field) ),+]
            }

            /// Adds the counts of another run.
            #[must_use]
            pub(crate) fn and(self, other: Self) -> Self {
                Self {
                    $( $fate: self.$fate + other.$fate, )+
                    $( $field: self.$field + other.$field, )+
                }
            }

            /// Returns the count and the name of each unhealthy event that has happened. A healthy
            /// run has no such events.
            pub(crate) fn events(&self) -> impl Iterator<Item = (u64, &'static str)> {
                let all: Vec<(u64, &str)> = vec![$( $( (self.$field, $event), )? )+];
                all.into_iter().filter(|&(count, _)| count > 0)
            }
        }
    };
}

counters! {
    fates {
        unseen, "unseen": "Committed items that were unseen. They are in the sink";
        seen, "seen": "Committed items that had been seen before";
        unfiltered, "unfiltered":
            "Items that went to the sink without a check, because of `dont_filter` or a rule";
        dropped, "dropped": "Items that a rule dropped";
        over_limit, "over-limit": "Unseen items that were over a limit";
        rejected, "rejected": "Items that could not be read";
    }
    rejects_dropped, "rejects_dropped": "Rejects dropped from a full list",
        event: "rejects were dropped from a full list";
    own_fingerprints, "own_fingerprints": "Items with a fingerprint of their own";
    batches, "batches": "Batches committed";
    batches_aborted, "batches_aborted": "Batches that were not committed and were tested again",
        event: "batches were not committed and were tested again";
    recoveries, "recoveries": "Times that the filter was loaded from the folder";
    rollbacks, "rollbacks": "Rollbacks of the filter because Redis came back with older data",
        event: "rollbacks, because Redis came back with older data";
    snapshots, "snapshots": "Snapshots finished";
    snapshots_failed, "snapshots_failed": "Snapshots that could not be taken",
        event: "snapshots could not be taken";
    reconnects, "redis_reconnects": "Connections to Redis in place of a lost one";
}

impl Counts {
    /// Returns the number of all committed items.
    pub fn items(&self) -> u64 {
        self.by_fate().into_iter().sum()
    }

    /// Adds committed batches. If the filter is in Redis, `unseen` is the number of their unseen
    /// items.
    pub(crate) fn add<'a>(
        &mut self,
        batches: impl IntoIterator<Item = &'a Batch<Ready>>,
        unseen: Option<u64>,
    ) {
        let before = *self;
        batches.into_iter().for_each(|batch| self.add_batch(batch));
        if let Some(unseen) = unseen {
            let judged = self.unseen - before.unseen + (self.seen - before.seen);
            self.unseen = before.unseen + unseen.min(judged);
            self.seen = before.seen + judged.saturating_sub(unseen);
        }
    }

    fn add_batch(&mut self, batch: &Batch<Ready>) {
        let count = |number: usize| number as u64;
        let unfiltered = count(batch.findings.unfiltered.len());
        self.unseen += count(batch.findings.onward.len()) - unfiltered;
        self.seen += count(batch.seen_len());
        self.unfiltered += unfiltered;
        self.dropped += count(batch.dropped().len());
        self.over_limit += count(batch.findings.over_limit.len());
        self.rejected += count(batch.rejects().len());
        self.own_fingerprints += count(batch.findings.own_fingerprints);
        self.batches += 1;
    }
}

/// Numbers of rejected items by reason. A reason without items is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByReason(pub BTreeMap<RejectReason, u64>);

impl ByReason {
    /// Adds the rejects of a committed batch. Logs a warning about the first one for each reason.
    pub(crate) fn add(&mut self, batch: &Batch<Ready>) {
        for (_, unreadable) in batch.rejects() {
            let items = self.0.entry(RejectReason::of(unreadable)).or_default();
            if *items == 0 {
                warn!(
                    "an item was rejected: {unreadable}. urlseen rejects list shows it; further \
                     rejects of this kind are only counted (urlseen_rejects_total)"
                );
            }
            *items += 1;
        }
    }

    /// Returns the word and the number of every reason.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let items = |reason| self.0.get(reason).copied().unwrap_or_default();
        RejectReason::ALL.iter().map(move |(word, reason)| (*word, items(reason)))
    }
}

/// Declares the durations. A new one needs one line here, and one line of code that observes it.
macro_rules! times {
    ($( $field:ident, $metric:literal: $help:literal; )+) => {
        /// Durations of a daemon's operations since its start.
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Times {
            $( #[doc = concat!($help, ".")] pub $field: Histogram, )+
        }

        impl Times {
            /// Returns name, help text and values of each metric.
            pub(crate) fn metrics(&self) -> Vec<(&'static str, &'static str, Histogram)> {
                vec![$( ($metric, $help, self.$field) ),+]
            }
        }
    };
}

times! {
    commit, "commit_seconds": "Time from sending a commit until Redis has answered it";
    judge, "judge_seconds": "Time from passing a batch to the threads until it is judged";
    log_sync, "log_sync_seconds": "Time that a sync of the log took";
    recovery, "recovery_seconds": "Time that loading the filter took";
    round_trip, "redis_round_trip_seconds": "Time from any other request until Redis answers it";
}

/// Maximum number of items that are kept for each fate and each rule.
const KEPT: usize = 20;

/// Maximum number of bytes that are kept of an item.
const LONGEST: usize = 1 << 10;

/// Number of the newest sampled item of this process.
static NEWEST: AtomicU64 = AtomicU64::new(0);

/// Returns a higher number than before. It is at least the number of microseconds since 1970, so
/// that numbers also increase from one process to the next.
fn number(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros();
    let since = u64::try_from(since).unwrap_or_default();
    let next = |newest: u64| since.max(newest + 1);
    let step = |newest| Some(next(newest));
    NEWEST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step).map_or(since, next)
}

/// Committed item that belongs to the sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampled {
    /// Number of the item in the sample. A later item has a higher number.
    pub number: u64,
    /// Time of the item's commit.
    pub time: SystemTime,
    /// Name of the fate, as in the metric `urlseen_items_total`.
    pub fate: &'static str,
    /// Name of the rule that decided the fate.
    pub rule: Option<String>,
    /// Reason why the item could not be read.
    pub reason: Option<String>,
    /// First bytes of the item, at most 1 KiB.
    pub item: Vec<u8>,
}

/// Sample of the newest committed items, which threads share.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples(Arc<Mutex<ByFate>>);

/// Items of the sample by fate and rule, the oldest first.
type ByFate = BTreeMap<(&'static str, Option<String>), VecDeque<Sampled>>;

impl Samples {
    /// Adds the last items of a committed batch. `rules` has the names of the rules.
    pub(crate) fn add(&self, batch: &Batch<Ready>, rules: &ByRule) {
        let (time, mut kept) = (SystemTime::now(), self.lock());
        for (item, fate) in batch.last_items(KEPT) {
            let number = number(time);
            let (fate, rule, reason) = match fate {
                Fate::Unseen => ("unseen", None, None),
                Fate::Seen => ("seen", None, None),
                Fate::Unfiltered(rule) => {
                    ("unfiltered", rule.map(|it| &rules.passed[usize::from(it)]), None)
                }
                Fate::Dropped(rule) => ("dropped", Some(&rules.dropped[usize::from(rule)]), None),
                Fate::OverLimit(rule) => {
                    ("over-limit", Some(&rules.over_limit[usize::from(rule)]), None)
                }
                Fate::Rejected(why) => ("rejected", None, Some(why.to_string())),
            };
            let rule = rule.map(|it| it.rule.clone());
            let items = kept.entry((fate, rule.clone())).or_default();
            if items.len() == KEPT {
                items.pop_front();
            }
            let item = item[..item.len().min(LONGEST)].to_vec();
            items.push_back(Sampled { number, time, fate, rule, reason, item });
        }
    }

    /// Returns the items with higher numbers than `after`, in the order of their numbers.
    pub(crate) fn after(&self, after: u64) -> Vec<Sampled> {
        let kept = self.lock();
        let newer = kept.values().flatten().filter(|it| it.number > after);
        let mut newer: Vec<_> = newer.cloned().collect();
        newer.sort_unstable_by_key(|it| it.number);
        newer
    }

    fn lock(&self) -> MutexGuard<'_, ByFate> {
        self.0.lock().expect("no holder panics")
    }
}
