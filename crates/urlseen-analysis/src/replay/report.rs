//! What a replay found out.

use std::collections::BTreeMap;

use serde::Serialize;

use super::curve::Point;
use super::error::ReplayError;
use super::reading::Readings;
use urlseen_core::filter::Kind;
use urlseen_engine::item::Unreadable;

/// How many different reasons are kept apart.
const REASONS: usize = 50;

/// All of it.
#[derive(Debug)]
pub struct Report {
    /// What was counted of items, whatever judges them.
    pub tally: Tally,
    /// What each kind made of them, in the order in which they were named.
    pub kinds: Vec<LaneReport>,
    /// The keys that were read, if it was keys.
    pub keys: Vec<KeyRead>,
    /// Fingerprints in the exact set.
    pub exact_keys: u64,
    /// The memory that it took.
    pub exact_bytes: u64,
    /// How long it took.
    pub seconds: f64,
    /// How it ended.
    pub ending: Ending,
}

/// How a replay ended.
#[derive(Debug)]
pub enum Ending {
    /// With the input.
    Whole,
    /// It was asked to stop.
    Stopped,
    /// The machine's memory was nearly used up.
    OutOfMemory,
    /// The input could not be read on.
    Failed(ReplayError),
}

/// What was counted of items, whatever judges them.
#[derive(Debug, Default, Clone)]
pub struct Tally {
    /// Items that were read.
    pub items: u64,
    /// How many had each form; an empty one has none.
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
    /// Why, with how many.
    pub rejects: BTreeMap<String, Reason>,
    /// Entries of streams without the field that has the item; they are among no other count.
    pub without: u64,
    /// Fingerprints that counted as seen from the begin on, each once.
    pub given: u64,
    /// What was to be such and is no fingerprint.
    pub given_bad: u64,
}

/// Why items cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// How many.
    pub items: u64,
    /// Where the first stands.
    pub place: String,
    /// What it begins with.
    #[serde(skip)]
    pub item: Vec<u8>,
}

/// A key that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyRead {
    /// Its name.
    pub key: String,
    /// What it holds.
    #[serde(rename = "type")]
    pub kind: String,
    /// How long it was before.
    pub before: u64,
    /// And after; nothing where it was not read to its end.
    pub after: Option<u64>,
    /// How many items were read from it.
    pub read: u64,
}

/// What a kind made of the items.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LaneReport {
    /// Its kind, by its name in the configuration.
    #[serde(rename = "kind")]
    pub name: &'static str,
    /// The same as a value.
    #[serde(skip)]
    pub kind: Kind,
    /// Items that it judged.
    pub items: u64,
    /// Those that are unseen to it.
    pub unseen: u64,
    /// Those that are seen to it.
    pub seen: u64,
    /// Of these, those that never came before: they would be lost to the crawl.
    pub wrong: u64,
    /// Those that it has no place for, which are rejected.
    pub no_place: u64,
    /// How many wrong ones the computed error rates come to.
    pub wrong_computed: f64,
    /// The computed error rate at the end.
    pub error_rate_now: f64,
    /// Fingerprints in the filter, those given at the begin too.
    pub keys: u64,
    /// How many it is made for, where it is made for a number.
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
    /// How it came there.
    pub curve: Vec<Point>,
}

impl LaneReport {
    /// The share of fingerprints that never came before and were taken for seen.
    pub fn error_rate(&self) -> f64 {
        self.curve.last().map_or(0.0, Point::measured)
    }
}

impl Tally {
    /// Adds a batch, of whose fingerprints those are `new` that never came before.
    pub(super) fn add(&mut self, readings: &Readings, new: &[bool]) {
        let all = new.len() as u64;
        let new = new.iter().filter(|&&new| new).count() as u64;
        if readings.is_given {
            self.given += new;
            self.given_bad += readings.page.bad_count;
            return;
        }
        self.items += readings.page.items.len() as u64;
        self.without += readings.page.bad_count;
        self.new += new;
        self.again += all - new;
        self.unfiltered += readings.unfiltered;
        for &(form, count) in &readings.forms {
            *self.forms.entry(form.name()).or_default() += count;
        }
        for &rule in &readings.passed {
            let rule = usize::from(rule);
            if self.passed.len() <= rule {
                self.passed.resize(rule + 1, 0);
            }
            self.passed[rule] += 1;
        }
        self.rejected += readings.rejects.len() as u64;
        for (place, item, reason) in &readings.rejects {
            let mut words = words(reason);
            if !self.rejects.contains_key(&words) && self.rejects.len() >= REASONS {
                "other reasons".clone_into(&mut words);
            }
            let first = || Reason { items: 0, place: place.clone(), item: item.clone() };
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
