//! Analyses of filters and crawls that need no daemon: `plan`, `replay`, `explain`, overlaps. They
//! read, compute and return results. The commands print them. The Python package uses `explain`.

use std::hash::{DefaultHasher, Hasher as _};

mod explain;
mod found;
mod overlap;
mod plan;
mod replay;
mod sample;
mod suggest;

pub use explain::{Explained, explain};
pub(crate) use explain::{LimitShown, Pair, RequestShown, StepShown, pair};
pub(crate) use found::{Found, FoundKey, KeyUse, PossibleFilter, REDISBLOOM_TYPE, refusal, shell};
pub(crate) use overlap::{Overlap, Totals};
pub(crate) use plan::{Figures, PlanError, Steady, Target, amount, grouped, lost_text, size};
pub(crate) use replay::{
    Crawl, Input, KeyRead, LaneReport, LaneSpec, ReplayEnding, ReplayReport, Ruled, Setup, Tally,
    requests, run as replay, suggest,
};
pub(crate) use sample::SampleFit;
pub(crate) use suggest::{Suggestion, Suggestions};

/// Returns a hash of bytes. It is the same in each run of the same program.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}
