//! Report of a run: a line of progress during the run, and a summary at its end.

use crate::admin::ByRule;
use crate::pipeline::{Ending, FilterStatus, Report};
use indicatif::HumanCount;
use serde::Serialize;
use urlseen_engine::config::SourceKind;
use urlseen_engine::engine::query::Asked;

use super::super::rows::{CRAWL, Rows, answer, filled, paced};
use super::super::status;

/// Returns the line of progress during a run. Its rates are for the time since the report `before`.
pub(super) fn progress(source: SourceKind, report: &Report, before: Option<&Report>) -> String {
    let Report { counts, asked, seconds, source: waiting, processing, filter } = report;
    let since = before.map_or(0.0, |before| before.seconds);
    let rate = |now: u64, of: fn(&Report) -> u64| {
        (now - before.map_or(0, of)) as f64 / (seconds - since).max(1e-3)
    };
    let mut parts = Vec::new();
    if source != SourceKind::None {
        let rate = rate(counts.items(), |before| before.counts.items());
        let (items, unseen, waiting) = (counts.items(), counts.unseen, waiting + processing);
        parts.push(format!("{items} items, {unseen} unseen, {rate:.0}/s, {waiting} waiting"));
    }
    if source == SourceKind::None || *asked != Asked::default() {
        let rate = rate(asked.all(), |before| before.asked.all());
        parts.push(format!("{} asked, {} unseen, {rate:.0}/s", asked.all(), asked.unseen));
    }
    let (fill, error_rate) = (100.0 * filter.fill, filter.error_rate);
    parts.push(format!("filter {fill:.1} % full, error rate {error_rate:.1e}"));
    parts.join(", ")
}

/// Summary of a run, as `--json` prints it.
#[derive(Serialize)]
struct RunShown<'a> {
    #[serde(flatten)]
    report: &'a Report,
    items: u64,
    ending: Ending,
    #[serde(flatten)]
    rules: &'a ByRule,
}

/// Prints the summary at the end of a run.
pub(super) fn summarize(
    source: SourceKind,
    report: &Report,
    rules: &ByRule,
    ending: Ending,
    json: bool,
) -> anyhow::Result<()> {
    let shown = RunShown { report, items: report.counts.items(), ending, rules };
    answer(json.then(|| serde_json::to_string(&shown)).transpose()?, |out| {
        let mut rows = Rows::new(out, CRAWL);
        let (counts, seconds) = (&report.counts, report.seconds);
        if source != SourceKind::None {
            status::items(&mut rows, counts, rules, paced(counts.items(), seconds))?;
        }
        if source == SourceKind::None || report.asked != Asked::default() {
            status::asked(&mut rows, &report.asked, format_args!("in {seconds:.2} s"))?;
        }
        let FilterStatus { keys, fill, error_rate, .. } = report.filter;
        rows.number("filter", HumanCount(keys), filled(fill, error_rate))
    })
}
