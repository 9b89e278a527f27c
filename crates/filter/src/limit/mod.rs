//! Limits: at most so many unseen items of a group, such as a host.
//!
//! The groups of an item follow from its canonical URL, before the rules `[[same]]` change it. An
//! item may belong to groups of several rules. It is over the limit if one of its groups is full.

mod by;
mod group;
mod paths;
mod rule;

pub use by::By;
pub use group::{Counted, Counts, Group};
pub use paths::pattern;
pub use rule::{Claim, LimitRule, Limits};

/// Maximum number of groups, and of values of parameters, whose items are counted. The counts take
/// at most 132 MiB of memory: 33 bytes for each place of a table of 2^22 places. While a snapshot
/// is written, they take up to 320 MiB.
pub const GROUPS_MAX: usize = 3_500_000;
