//! Report of a run: a line of progress while it lasts, a summary at its end.

use std::fmt;
use std::io::{self, Write};

use crate::admin::Passed;
use crate::admin::printable::{json_text, stdout};
use crate::pipeline::{Ending, FilterStatus, Report};
use serde_json::json;
use urlseen_engine::config::SourceKind;
use urlseen_engine::engine::query::Asked;

/// One line that says how the work goes.
pub(super) struct RunProgress<'a> {
    pub(super) source: SourceKind,
    pub(super) now: &'a Report,
    pub(super) before: Option<&'a Report>,
}

impl fmt::Display for RunProgress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { counts, asked, seconds, source, processing, filter } = self.now;
        let FilterStatus { fill, error_rate, .. } = filter;
        let since = self.before.map_or(0.0, |before| before.seconds);
        let rate = |now: u64, of: fn(&Report) -> u64| {
            (now - self.before.map_or(0, of)) as f64 / (seconds - since).max(1e-3)
        };
        if self.source != SourceKind::None {
            let rate = rate(counts.items(), |before| before.counts.items());
            let (items, unseen) = (counts.items(), counts.unseen);
            let waiting = source + processing;
            write!(f, "{items} items, {unseen} unseen, {rate:.0}/s, {waiting} waiting, ")?;
        }
        if self.source == SourceKind::None || *asked != Asked::default() {
            let rate = rate(asked.all(), |before| before.asked.all());
            write!(f, "{} asked, {} unseen, {rate:.0}/s, ", asked.all(), asked.unseen)?;
        }
        write!(f, "filter {:.1} % full, error rate {error_rate:.1e}", 100.0 * fill)
    }
}

/// Prints the result of a run.
pub(super) fn summarize(
    source: SourceKind,
    report: &Report,
    passed: &[Passed],
    ending: Ending,
    json: bool,
) -> anyhow::Result<()> {
    let mut out = stdout();
    if json {
        let mut value = serde_json::to_value(report)?;
        value["items"] = json!(report.counts.items());
        value["ending"] = serde_json::to_value(ending)?;
        if !passed.is_empty() {
            value["passed"] = serde_json::to_value(passed)?;
        }
        writeln!(out, "{}", json_text(&value.to_string()))?;
        return Ok(());
    }
    if source != SourceKind::None {
        items(&mut out, report, passed)?;
    }
    let Asked { seen, unseen, full, forgotten } = report.asked;
    if source == SourceKind::None || report.asked != Asked::default() {
        writeln!(out, "asked      {:>12}   in {:.2} s", report.asked.all(), report.seconds)?;
        writeln!(out, "           {unseen:>12}   answered as unseen")?;
        writeln!(out, "           {seen:>12}   answered as seen")?;
        for (number, what) in [(full, "not done: no room"), (forgotten, "to pass once more")] {
            if number > 0 {
                writeln!(out, "           {number:>12}   {what}")?;
            }
        }
    }
    let FilterStatus { keys, fill, error_rate, .. } = report.filter;
    let fill = 100.0 * fill;
    writeln!(
        out,
        "filter     {keys:>12}   fingerprints, {fill:.1} % full, error rate now {error_rate:.1e}"
    )?;
    Ok(())
}

/// Writes the numbers of items, by verdict.
fn items(out: &mut impl Write, report: &Report, passed: &[Passed]) -> io::Result<()> {
    let counts = &report.counts;
    let items = counts.items();
    let rate = items as f64 / report.seconds.max(1e-9);
    writeln!(out, "items      {items:>12}   {:.2} s, {rate:.0} a second", report.seconds)?;
    writeln!(out, "unseen     {:>12}   pushed on", counts.unseen)?;
    writeln!(out, "seen       {:>12}   dropped", counts.seen)?;
    let why = if passed.is_empty() { " (dont_filter)" } else { " (dont_filter, rules)" };
    if counts.unfiltered > 0 || !passed.is_empty() {
        writeln!(out, "unfiltered {:>12}   pushed on unchecked{why}", counts.unfiltered)?;
    }
    for Passed { rule, items } in passed {
        writeln!(out, "           {items:>12}   of these by the rule {rule:?}")?;
    }
    writeln!(out, "rejected   {:>12}   not readable, on the rejects list", counts.rejected)?;
    for (count, event) in counts.events() {
        writeln!(out, "           {count:>12}   {event}")?;
    }
    Ok(())
}
