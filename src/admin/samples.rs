//! Answer to `GET /samples`: the newest items, by fate and rule.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use urlseen_engine::item::ItemSummary;

use super::ItemText;
use super::printable::printable;
use crate::report::{Sampled, moment};

/// Item of the sample, as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sample {
    /// Number of the item. A later item has a higher number.
    pub(crate) number: u64,
    /// Time of the item's commit.
    #[serde(with = "moment")]
    pub(crate) time: SystemTime,
    /// Fate of the item: `unseen`, `seen`, `unfiltered`, `dropped` or `rejected`.
    pub(crate) fate: String,
    /// Name of the rule that decided the fate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<String>,
    /// Reason why the item was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// URL that the item equals by the rules `[[same]]`, if they change its canonical URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) same_as: Option<String>,
    /// Short text about the item, for people.
    pub(crate) text: String,
    /// URL of a request, if the item is more than this URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// First bytes of the item.
    pub(crate) item: ItemText,
}

impl Sample {
    /// Shows a sampled item. `same_as` is the URL that it equals by the rules `[[same]]`.
    pub fn new(same_as: Option<String>, sampled: Sampled) -> Self {
        let Sampled { number, time, fate, rule, reason, item } = sampled;
        let ItemSummary { text, url } = ItemSummary::of(&item);
        let (fate, text) = (fate.to_owned(), printable(&text, None));
        Self { number, time, fate, rule, reason, same_as, text, url, item: ItemText::of(&item) }
    }
}
