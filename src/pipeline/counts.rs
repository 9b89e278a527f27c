//! Counts of a run since its start.

use serde::{Deserialize, Serialize};

use urlseen_engine::item::batch::{Batch, Ready};

/// Names of all fates of an item.
pub(crate) const FATES: [&str; 6] =
    ["unseen", "seen", "unfiltered", "dropped", "over-limit", "rejected"];

/// Declares the counters. A new counter needs one line here, and one line of code that counts.
macro_rules! counters {
    ($( $field:ident, $metric:literal: $help:literal $(, event: $event:literal)?; )+) => {
        /// Counts since the daemon was started. They never decrease.
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Counts {
            /// Committed items that were unseen. They are in the sink.
            pub unseen: u64,
            /// Committed items that had been seen before.
            pub seen: u64,
            /// Items that went to the sink without a check, because of `dont_filter` or a rule.
            pub unfiltered: u64,
            /// Items that a rule dropped.
            #[serde(default)]
            pub dropped: u64,
            /// Unseen items that were over a limit.
            #[serde(default)]
            pub over_limit: u64,
            /// Items that could not be read.
            pub rejected: u64,
            $( #[doc = concat!($help, ".")] #[serde(default)] pub $field: u64, )+
        }

        impl Counts {
            /// Returns name, help text and value of each metric, except those of items.
            pub(crate) fn metrics(&self) -> Vec<(&'static str, &'static str, u64)> {
                vec![$( ($metric, $help, self.$field) ),+]
            }

            /// Adds the counts of another partition.
            #[must_use]
            pub(crate) fn and(self, other: Self) -> Self {
                Self {
                    unseen: self.unseen + other.unseen,
                    seen: self.seen + other.seen,
                    unfiltered: self.unfiltered + other.unfiltered,
                    dropped: self.dropped + other.dropped,
                    over_limit: self.over_limit + other.over_limit,
                    rejected: self.rejected + other.rejected,
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

    /// Returns the numbers of committed items, in the order of [`FATES`].
    pub(crate) fn by_fate(&self) -> [u64; 6] {
        let Self { unseen, seen, unfiltered, dropped, over_limit, rejected, .. } = *self;
        [unseen, seen, unfiltered, dropped, over_limit, rejected]
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
        let unfiltered = count(batch.unfiltered_len());
        self.unseen += count(batch.onward_len()) - unfiltered;
        self.seen += count(batch.seen_len());
        self.unfiltered += unfiltered;
        self.dropped += count(batch.dropped().len());
        self.over_limit += count(batch.over_limit().len());
        self.rejected += count(batch.rejects().len());
        self.own_fingerprints += count(batch.own_fingerprints());
        self.batches += 1;
    }
}
