//! Numbers of rejected items by reason.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracing::warn;

use urlseen_engine::item::RejectReason;
use urlseen_engine::item::batch::{Batch, Ready};

/// Numbers of rejected items by reason. A reason without items is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByReason(BTreeMap<RejectReason, u64>);

impl ByReason {
    /// Adds the rejects of a committed batch. Logs a warning about the first one for each reason.
    pub(super) fn add(&mut self, batch: &Batch<Ready>) {
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

impl FromIterator<(RejectReason, u64)> for ByReason {
    fn from_iter<I: IntoIterator<Item = (RejectReason, u64)>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}
