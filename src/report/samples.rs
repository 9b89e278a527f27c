//! Sample of the newest items, by fate and by rule, for people who watch a crawl.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use super::rules::ByRule;
use urlseen_engine::item::Fate;
use urlseen_engine::item::batch::{Batch, Ready};

/// Maximum number of items that are kept for each fate and each rule.
const KEPT: usize = 20;

/// Maximum number of bytes that are kept of an item.
const LONGEST: usize = 1 << 10;

/// Number of the newest sampled item of all partitions of this process.
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
