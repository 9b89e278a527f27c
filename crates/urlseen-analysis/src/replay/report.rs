//! Report of a replay, without its words.

use std::collections::BTreeMap;

use serde::Serialize;

use super::curve::Point;
use super::error::ReplayError;
use urlseen_core::filter::Kind;
use urlseen_engine::config::ItemForm;
use urlseen_engine::flow::feed::Page;
use urlseen_engine::item::batch::{Batch, Judged};
use urlseen_engine::item::{Form, Unreadable};

/// Most different reasons that are kept apart.
const REASONS: usize = 50;

/// Bytes of an item that are kept, enough to know it by.
const SHOWN: usize = 1 << 10;

/// Results of a whole replay.
#[derive(Debug)]
pub struct Report {
    /// Counts of the items, apart from any kind.
    pub tally: Tally,
    /// Results of each kind, in the order in which they were named.
    pub kinds: Vec<LaneReport>,
    /// The keys that were read, if it was keys.
    pub keys: Vec<KeyRead>,
    /// Fingerprints in the exact set.
    pub exact_keys: u64,
    /// The memory that it took.
    pub exact_bytes: u64,
    /// Duration of the replay in seconds.
    pub seconds: f64,
    /// Reason that the replay ended.
    pub ending: Ending,
}

/// End of a replay, and the reason.
#[derive(Debug)]
pub enum Ending {
    /// The whole input was read.
    Whole,
    /// The replay was asked to stop.
    Stopped,
    /// The machine's memory was nearly used up.
    OutOfMemory,
    /// The input could not be read on.
    Failed(ReplayError),
}

/// Counts of the items, apart from any kind.
#[derive(Debug, Default, Clone)]
pub struct Tally {
    /// Number of items that were read.
    pub items: u64,
    /// Number of items of each form; an empty item has none.
    pub forms: BTreeMap<&'static str, u64>,
    /// Those that are passed on unchecked.
    pub unfiltered: u64,
    /// Of these, those that a rule lets pass, by its number.
    pub passed: Vec<u64>,
    /// Those with a fingerprint that was there before.
    pub again: u64,
    /// Those with a fingerprint that was not.
    pub new: u64,
    /// Those that cannot be read.
    pub rejected: u64,
    /// Reasons, with the number of items of each.
    pub rejects: BTreeMap<String, Reason>,
    /// Entries of streams without the field that has the item; they are among no other count.
    pub without: u64,
    /// Fingerprints that counted as seen from the start on, each once.
    pub given: u64,
    /// Malformed entries among these.
    pub given_bad: u64,
}

/// Why items cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// Number of items with this reason.
    pub items: u64,
    /// Place of the first such item.
    pub place: String,
    /// Beginning of that item.
    #[serde(skip)]
    pub item: Vec<u8>,
}

/// Key in Redis that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyRead {
    /// Name of the Redis key.
    pub key: String,
    /// Type of the key in Redis.
    #[serde(rename = "type")]
    pub kind: String,
    /// Length of the key before the replay.
    pub before: u64,
    /// And after; nothing where it was not read to its end.
    pub after: Option<u64>,
    /// Number of items that were read from it.
    pub read: u64,
}

/// Results of one kind of filter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LaneReport {
    /// Its kind, by its name in the configuration.
    #[serde(rename = "kind")]
    pub name: &'static str,
    /// Kind as a value, for programs.
    #[serde(skip)]
    pub kind: Kind,
    /// Number of items that it judged.
    pub items: u64,
    /// Those that are unseen to it.
    pub unseen: u64,
    /// Those that are seen to it.
    pub seen: u64,
    /// Of these, those that never came before: they would be lost to the crawl.
    pub wrong: u64,
    /// Those that it has no place for, which are rejected.
    pub no_place: u64,
    /// Number of wrong ones by the computed error rates.
    pub wrong_computed: f64,
    /// The computed error rate at the end.
    pub error_rate_now: f64,
    /// Fingerprints in the filter, those given at the start too.
    pub keys: u64,
    /// Number of fingerprints that it is made for, if it has one.
    pub capacity: Option<u64>,
    /// After how many items it held as many as it is made for.
    pub full_after: Option<u64>,
    /// Memory of the filter, the least and the most.
    #[serde(skip)]
    pub bytes: [u64; 2],
    /// Why it judged no more, if so: a daemon would have ended there.
    pub stopped: Option<String>,
    /// Why the filter cannot have the error rate that it is made for.
    pub warning: Option<String>,
    /// Points of the way to these results.
    pub curve: Vec<Point>,
}

impl LaneReport {
    /// The share of fingerprints that never came before and were taken for seen.
    pub fn error_rate(&self) -> f64 {
        self.curve.last().map_or(0.0, Point::measured)
    }
}

impl Tally {
    /// Adds a batch that counts as seen from the start.
    pub(super) fn add_given(&mut self, page: &Page, batch: &Batch<Judged>) {
        self.given += batch.added().len() as u64;
        self.given_bad += page.bad_count;
    }

    /// Adds a batch of items of this form.
    pub(super) fn add(&mut self, page: &Page, batch: &Batch<Judged>, form: Form) {
        self.items += batch.items().len() as u64;
        self.without += page.bad_count;
        self.new += batch.added().len() as u64;
        self.again += batch.seen_len() as u64;
        self.unfiltered += batch.unfiltered_len() as u64;
        for rule in batch.passed().map(usize::from) {
            if self.passed.len() <= rule {
                self.passed.resize(rule + 1, 0);
            }
            self.passed[rule] += 1;
        }
        // An empty item has no form.
        let items = batch.items().iter().filter(|item| !item.is_empty());
        let forms: Vec<ItemForm> = items.filter_map(|item| form.of(item)).collect();
        for run in forms.chunk_by(PartialEq::eq) {
            *self.forms.entry(run[0].name()).or_default() += run.len() as u64;
        }
        self.rejected += batch.rejects().len() as u64;
        for (index, (item, reason)) in batch.rejected_at().zip(batch.rejects()) {
            let mut words = words(reason);
            if !self.rejects.contains_key(&words) && self.rejects.len() >= REASONS {
                "other reasons".clone_into(&mut words);
            }
            let first = || Reason {
                items: 0,
                place: page.place(index).to_string(),
                item: item[..item.len().min(SHOWN)].to_vec(),
            };
            self.rejects.entry(words).or_insert_with(first).items += 1;
        }
    }
}

/// A reason, without what differs from item to item.
fn words(reason: &Unreadable) -> String {
    match reason {
        Unreadable::NotUtf8 { .. } => "the URL is not UTF-8".to_owned(),
        other => other.to_string(),
    }
}
