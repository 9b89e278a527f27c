//! Report of a run: a line of progress during the run, and a summary at its end.

use std::io::{self, Write};

use crate::admin::ByRule;
use crate::admin::printable::{json_text, stdout};
use crate::pipeline::{Ending, FilterStatus, Report};
use serde_json::{Value, json};
use urlseen_engine::config::SourceKind;
use urlseen_engine::engine::query::Asked;

use super::super::rows::{Rows, SUMMARY, filled, paced};

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

/// Prints the summary at the end of a run.
pub(super) fn summarize(
    source: SourceKind,
    report: &Report,
    rules: &ByRule,
    ending: Ending,
    json: bool,
) -> anyhow::Result<()> {
    if json {
        let mut value = serde_json::to_value(report)?;
        value["items"] = json!(report.counts.items());
        value["ending"] = serde_json::to_value(ending)?;
        if let (Some(value), Value::Object(rules)) =
            (value.as_object_mut(), serde_json::to_value(rules)?)
        {
            value.extend(rules);
        }
        writeln!(stdout(), "{}", json_text(&value.to_string()))?;
        return Ok(());
    }
    let mut rows = Rows::new(stdout(), SUMMARY);
    if source != SourceKind::None {
        items(&mut rows, report, rules)?;
    }
    let Asked { seen, unseen, full, forgotten } = report.asked;
    if source == SourceKind::None || report.asked != Asked::default() {
        rows.number("asked", report.asked.all(), format_args!("in {:.2} s", report.seconds))?;
        rows.number("", unseen, "answered as unseen")?;
        rows.number("", seen, "answered as seen")?;
        for (number, what) in
            [(full, "refused: no room"), (forgotten, "forgotten: they pass again")]
        {
            if number > 0 {
                rows.number("", number, what)?;
            }
        }
    }
    let FilterStatus { keys, fill, error_rate, .. } = report.filter;
    Ok(rows.number("filter", keys, filled(fill, error_rate))?)
}

/// Prints the numbers of items, by verdict.
fn items(rows: &mut Rows<impl Write>, report: &Report, rules: &ByRule) -> io::Result<()> {
    let (counts, ByRule { passed, dropped, over_limit, .. }) = (&report.counts, rules);
    rows.number("items", counts.items(), paced(counts.items(), report.seconds))?;
    rows.number("unseen", counts.unseen, "pushed to the sink")?;
    rows.number("seen", counts.seen, "not pushed")?;
    let why = if passed.is_empty() { "(dont_filter)" } else { "(dont_filter, rules)" };
    if counts.unfiltered > 0 || !passed.is_empty() {
        let words = format!("pushed to the sink unchecked {why}");
        rows.number("unfiltered", counts.unfiltered, words)?;
    }
    rows.by_rule(passed, |items| items.to_string())?;
    if !dropped.is_empty() {
        rows.number("dropped", counts.dropped, "by rules")?;
    }
    rows.by_rule(dropped, |items| items.to_string())?;
    if !over_limit.is_empty() {
        rows.number("over limit", counts.over_limit, "unseen, dropped by limits")?;
    }
    rows.by_rule(over_limit, |items| items.to_string())?;
    rows.number("rejected", counts.rejected, "unreadable, on the rejects list")?;
    counts.events().try_for_each(|(count, event)| rows.number("", count, event))
}
