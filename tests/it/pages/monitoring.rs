//! Rules for the files in `monitoring/`: they use only metrics that exist, and the guide explains
//! every alert.

use std::collections::BTreeSet;

use regex::Regex;

use super::{anchors, root};
use crate::tidy::report;

const ALERTS: &str = "monitoring/alerts.yml";
const GUIDE: &str = "docs/guides/monitoring.md";

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns what the first group of a pattern finds in a file.
fn found(path: &str, pattern: &str) -> BTreeSet<String> {
    let pattern = Regex::new(pattern).unwrap();
    pattern.captures_iter(&read(path)).map(|found| found[1].to_owned()).collect()
}

#[test]
fn alerts_and_dashboard_use_only_metrics_that_exist() {
    let known = found("docs/reference/metrics.md", r"(?m)^\| `((?:urlseen|process)_\w+)");
    let files = [ALERTS, "monitoring/alerts_test.yml", "monitoring/dashboard.json"];
    report(files.into_iter().flat_map(|path| {
        let used = found(path, r"\b((?:urlseen|process)_\w+)");
        let part = |name: &String| {
            let endings = ["_bucket", "_sum", "_count"];
            endings.into_iter().find_map(|it| name.strip_suffix(it)).map(str::to_owned)
        };
        let missing = used.into_iter().filter(|name| {
            !known.contains(name) && part(name).is_none_or(|whole| !known.contains(&whole))
        });
        missing.map(|name| format!("{path}: there is no metric {name}")).collect::<Vec<_>>()
    }));
}

#[test]
fn the_guide_explains_every_alert() {
    let alerts = found(ALERTS, r"(?m)- alert: (\w+)$");
    let explained = found(GUIDE, r"`(Urlseen\w+)`");
    let lacking = alerts.difference(&explained).map(|it| format!("{GUIDE}: lacks the alert {it}"));
    let too_many =
        explained.difference(&alerts).map(|it| format!("{GUIDE}: there is no alert {it}"));
    let runbooks = found(ALERTS, r"(?m)^ +runbook: (\S+)$");
    assert!(!alerts.is_empty() && !runbooks.is_empty(), "{ALERTS} has no alerts");
    let lost = runbooks.into_iter().filter(|runbook| {
        let (page, anchor) = runbook.split_once('#').unwrap_or((runbook, ""));
        !anchors(&read(page)).contains(anchor)
    });
    let lost = lost.map(|runbook| format!("{ALERTS}: {runbook} leads to no heading"));
    report(lacking.chain(too_many).chain(lost));
}

#[test]
fn every_alert_has_a_severity_texts_and_a_page() {
    let alerts = read(ALERTS);
    let alerts = alerts.split("- alert: ").skip(1);
    report(alerts.filter_map(|alert| {
        let needed = ["severity: ", "summary: ", "description: ", "runbook: "];
        let lacking = needed.iter().find(|it| !alert.contains(**it))?;
        Some(format!("{ALERTS}: {} lacks {lacking}", alert.lines().next()?))
    }));
}
