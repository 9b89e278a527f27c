//! Unreadable items of a flow, grouped by the reason why they cannot be read.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Serialize, Serializer};

use super::feed::Page;
use crate::item::batch::{Batch, Judged};
use crate::item::{ItemSummary, Unreadable};

/// Maximum number of different reasons that are counted separately.
const REASONS_MAX: usize = 50;

/// Maximum number of bytes that are kept of an item, so that a user can recognize it.
pub const SHOWN: usize = 1 << 10;

/// Reasons why items cannot be read, each with its items.
#[derive(Debug, Default, Clone)]
pub struct Reasons {
    by_words: BTreeMap<String, Reason>,
}

/// Items that cannot be read for the same reason.
#[derive(Debug, Clone, Serialize)]
pub struct Reason {
    /// The reason, without the parts that differ from item to item.
    #[serde(rename = "reason")]
    pub words: String,
    /// Number of these items.
    pub items: u64,
    /// Place of the first of them.
    pub place: String,
    /// The first of them, or its beginning.
    #[serde(serialize_with = "summary")]
    pub item: Vec<u8>,
}

fn summary<S: Serializer>(item: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&String::from_utf8_lossy(&ItemSummary::of(item).text))
}

impl Reasons {
    /// Adds the unreadable items of a batch, which were read from `page`. Calls `first` for each
    /// new reason, in the order of the items.
    pub fn add(&mut self, page: &Page, batch: &Batch<Judged>, mut first: impl FnMut(&Reason)) {
        for (index, (item, reason)) in batch.rejected_at().zip(batch.rejects()) {
            let mut words = words(reason);
            if !self.by_words.contains_key(&words) && self.by_words.len() >= REASONS_MAX {
                "other reasons".clone_into(&mut words);
            }
            match self.by_words.entry(words) {
                Entry::Occupied(mut known) => known.get_mut().items += 1,
                Entry::Vacant(new) => {
                    let place = page.place(index).to_string();
                    let item = item[..item.len().min(SHOWN)].to_vec();
                    let words = new.key().clone();
                    first(new.insert(Reason { words, items: 1, place, item }));
                }
            }
        }
    }

    /// Returns the number of items that cannot be read for this reason.
    pub fn count(&self, reason: &Unreadable) -> u64 {
        self.by_words.get(&words(reason)).map_or(0, |reason| reason.items)
    }

    /// Returns all reasons, with their items.
    pub fn iter(&self) -> impl Iterator<Item = &Reason> {
        self.by_words.values()
    }
}

impl Serialize for Reasons {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter())
    }
}

/// Returns the text of a reason without the parts that differ from item to item.
fn words(reason: &Unreadable) -> String {
    match reason {
        Unreadable::NotUtf8 { .. } => "the URL is not UTF-8".to_owned(),
        other => other.to_string(),
    }
}
