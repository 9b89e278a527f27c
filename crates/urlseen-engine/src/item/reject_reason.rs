//! Reasons of rejects in a few words, so that they can be counted.

use serde::{Deserialize, Serialize};

use super::Unreadable;
use urlseen_core::choices;

choices! {
    /// Reason of a reject, without the details of the item. A new reason is one line here, and its
    /// place in [`RejectReason::of`].
    #[derive(PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    RejectReason {
        /// The item has no bytes.
        Empty = "empty",
        /// The URL is invalid or not UTF-8.
        Url = "url",
        /// The JSON is invalid, or has a value of the wrong type.
        Json = "json",
        /// The pickle is invalid, or has a value of the wrong type.
        Pickle = "pickle",
        /// The fingerprint is missing or malformed, or the filter cannot hold it.
        Fingerprint = "fingerprint",
        /// The `ttl` is not a time.
        Expiry = "expiry",
        /// The priority is not a finite number.
        Priority = "priority",
        /// The fingerprint belongs to another partition.
        Partition = "partition",
        /// The output for the sink is missing or too large.
        Output = "output",
        /// The item is larger than `source.item_bytes`.
        Size = "size",
    }
}

impl RejectReason {
    /// Returns the reason for a message.
    pub fn of(unreadable: &Unreadable) -> Self {
        match unreadable {
            Unreadable::Empty => Self::Empty,
            Unreadable::NotUtf8 { .. } | Unreadable::Url(_) | Unreadable::BeforeScheme { .. } => {
                Self::Url
            }
            Unreadable::Json(_) => Self::Json,
            Unreadable::Pickle(_) => Self::Pickle,
            Unreadable::NoTab
            | Unreadable::TabInFingerprint
            | Unreadable::Fingerprint
            | Unreadable::NoDigest { .. }
            | Unreadable::NoPlace(_) => Self::Fingerprint,
            Unreadable::Ttl => Self::Expiry,
            Unreadable::Priority { .. } => Self::Priority,
            Unreadable::OtherPartition { .. } => Self::Partition,
            Unreadable::NothingToEmit | Unreadable::Grown { .. } => Self::Output,
            Unreadable::TooLarge { .. } => Self::Size,
        }
    }
}
