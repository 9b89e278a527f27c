//! Answer to `GET /samples`: the newest items, by fate and rule.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::ItemText;
use crate::pipeline::{Sampled, moment};

/// Item of the sample, as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Sample {
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
    /// First bytes of the item.
    pub(crate) item: ItemText,
}

impl From<Sampled> for Sample {
    fn from(Sampled { number, time, fate, rule, reason, item }: Sampled) -> Self {
        Self { number, time, fate: fate.to_owned(), rule, reason, item: ItemText::of(&item) }
    }
}
