//! Body and answer of `POST /raise`, with which a client sets the limit of one group.

use serde::{Deserialize, Serialize};

/// Body of `POST /raise`: another limit for one group of a rule of `[[limit]]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raise {
    /// Name of the rule in the configuration.
    pub limit: String,
    /// Whole name of the group.
    pub group: String,
    /// Maximum number of unseen items of the group.
    pub max: u64,
}

/// Reason why the limit was not set, as a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RaiseError(pub String);
