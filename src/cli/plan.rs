//! `urlseen plan`: computes the memory and the error rates of a filter.

use crate::analysis::{Figures, PlanError, Steady, Target, amount};

use crate::cli::prelude::*;

/// Show the memory and error rate of each kind of filter, before a crawl.
///
/// For each kind, the command prints the bits, the hashes, the memory, the error rate beyond the
/// capacity, and the number of URLs that the whole crawl loses. A URL is lost if it is unseen and
/// the filter reports it as seen. With --lost, the command chooses the error rates. With
/// --expire-after and --unseen-per-day, it prints the memory of a filter of the kind two-choice
/// whose fingerprints expire.
///
/// Examples:
/// ```text
/// urlseen plan --capacity 1e8 --error-rate 1e-8  # memory for 100 million URLs
/// urlseen plan --capacity 1e9 --lost 0.1         # the whole crawl loses at most 0.1 URLs
/// ```
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Plan {
    /// Number of URLs of the crawl, such as 1e9, `100_000_000` or 10M
    #[arg(long, value_name = "N", default_value = "10M")]
    capacity: Capacity,
    /// Share of unseen URLs that a filter at its capacity may report as seen, from 1e-12 to 0.1
    #[arg(long, value_name = "P", default_value = "1e-6")]
    error_rate: ErrorRate,
    /// Largest expected number of URLs that the whole crawl loses, such as 0.1. The command chooses
    /// the error rate of each kind
    #[arg(long, value_name = "URLS", conflicts_with = "error_rate", value_parser = amount)]
    lost: Option<f64>,
    /// Time after which fingerprints expire (`filter.expire_after`), such as 30d. With
    /// --unseen-per-day, the command prints the memory of such a filter, which stays the same once
    /// fingerprints expire
    #[arg(
        long, value_name = "TIME", requires = "unseen_per_day",
        conflicts_with_all = ["capacity", "lost"],
    )]
    expire_after: Option<ExpireAfter>,
    /// Number of unseen URLs a day, with those that pass again, such as 5M
    #[arg(long, value_name = "URLS", requires = "expire_after", value_parser = amount)]
    unseen_per_day: Option<f64>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

pub(super) fn run(plan: &Plan) -> anyhow::Result<Outcome> {
    if let Some((expire_after, unseen_per_day)) = plan.expire_after.zip(plan.unseen_per_day) {
        let steady = Steady::of(expire_after, unseen_per_day, plan.error_rate)?;
        let json = plan.json.then(|| serde_json::to_string_pretty(&steady)).transpose()?;
        return answer(json, |mut out| steady.print(&mut out));
    }
    let target = plan.lost.map_or(Target::ErrorRate(plan.error_rate), Target::Lost);
    let figures = Figures::of(plan.capacity, target).map_err(|error| match error {
        error @ PlanError::Lost { .. } => usage(format!(
            "--lost is too small for the kind native: {error}. Give a larger --lost, or set \
             filter.kind = \"exact\", which loses none"
        )),
        error => error.into(),
    })?;
    let json = plan.json.then(|| serde_json::to_string_pretty(&figures)).transpose()?;
    answer(json, |mut out| figures.print(&mut out))
}
