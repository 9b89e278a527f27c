//! Analyses of filters and crawls that need no daemon: `plan`, `replay`, `explain`, overlaps. They
//! read, compute and return results. The commands of the root package print them, and the Python
//! package uses `explain`.

#![warn(clippy::print_stdout, clippy::print_stderr)]

use std::hash::{DefaultHasher, Hasher as _};

mod explain;
mod overlap;
mod plan;
mod replay;
mod suggest;

pub use explain::{Explained, LimitShown, Pair, RequestShown, StepShown, explain, pair};
pub use overlap::{Overlap, Totals};
pub use plan::{Figures, PlanError, Steady, Target, amount, grouped, lost_text, size};
pub use replay::{
    Crawl, Ending, Input, KeyRead, LaneReport, LaneSpec, Point, Report, Ruled, Setup, Tally,
    requests, run as replay, suggest,
};
pub use suggest::{Suggestion, Suggestions};

/// Returns a hash of bytes. It is the same in each run of the same program.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}
