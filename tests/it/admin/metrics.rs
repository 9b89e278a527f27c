//! Metrics of the admin endpoint, in both formats.

use std::collections::BTreeMap;
use std::fs;
use std::time::SystemTime;

use urlseen_cli::report::{Phase, RouteStatus, RoutedStatus};

use super::{Answer, Endpoint};
use crate::tidy::report;
use crate::transcripts::assert_recorded;
use crate::util::sources::root;

/// Media type that Prometheus names first.
const OPEN_METRICS: &str = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5";

impl Endpoint {
    /// Asks for the metrics in a format.
    fn metrics(&self, accept: &str) -> Answer {
        self.request(&format!("GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n"))
    }
}

/// Returns the value of each metric of a crawl. The key is the name with its labels, without the
/// label `crawl`, which all of urlseen's metrics have.
fn samples(metrics: &str, crawl: &str) -> BTreeMap<String, f64> {
    let lines = metrics.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.map(|line| line.rsplit_once(' ').unwrap());
    pairs
        .map(|(name, value)| {
            let (name, labels) = name.split_once('{').unwrap_or((name, ""));
            let own = labels.replace(&format!("crawl=\"{crawl}\""), "");
            assert_eq!(own != labels, name.starts_with("urlseen_"), "{name}{labels}");
            let own = own.replace(",,", ",").replace(",}", "}").replace("{,", "{");
            let own = own.trim_start_matches(',').trim_end_matches('}');
            let name = if own.is_empty() { name.to_owned() } else { format!("{name}{{{own}}}") };
            (name, value.parse().unwrap())
        })
        .collect()
}

#[test]
fn metrics_have_the_numbers_of_the_status() {
    let endpoint = Endpoint::new();
    let answer = endpoint.metrics(OPEN_METRICS);
    assert!(answer.head.contains("content-type: application/openmetrics-text"), "{answer:?}");
    assert!(answer.body.ends_with("# EOF\n"), "{}", answer.body);
    // The samples of the process differ from run to run.
    let lines = answer.body.lines().filter(|line| !line.contains("process_"));
    let lines = lines.map(|line| line.replace(env!("CARGO_PKG_VERSION"), "[VERSION]") + "\n");
    assert_recorded("admin/metrics.txt", lines.collect());
}

#[test]
fn metrics_show_this_process() {
    let endpoint = Endpoint::new();
    let one = samples(&endpoint.get("/metrics").body, r#"a \"crawl\""#);
    assert_eq!(one.get("process_start_time_seconds"), Some(&1000.0));
    assert!(one["process_resident_memory_bytes"] > 1e6, "{one:?}");
    assert!(one["process_virtual_memory_bytes"] > one["process_resident_memory_bytes"], "{one:?}");
    assert!(one["process_threads"] >= 2.0, "{one:?}");
    assert!(one["process_max_fds"] >= one["process_open_fds"], "{one:?}");
    let files: Vec<_> = (0..100).map(|_| fs::File::open("/dev/null").unwrap()).collect();
    let two = samples(&endpoint.get("/metrics").body, r#"a \"crawl\""#);
    // Other tests run in this process at the same time, and open and close files.
    assert!(two["process_open_fds"] >= files.len() as f64, "{two:?}");
    assert!(two["process_cpu_seconds_total"] >= one["process_cpu_seconds_total"], "{two:?}");
}

#[test]
fn both_formats_have_the_same_samples() {
    let endpoint = Endpoint::new();
    let (open, text) = (endpoint.metrics(OPEN_METRICS), endpoint.metrics("text/plain"));
    assert!(text.head.contains("content-type: text/plain; version=0.0.4"), "{text:?}");
    for answer in [&open, &text] {
        assert!(answer.head.contains("vary: accept"), "{answer:?}");
    }
    let names = |answer: &Answer| {
        let samples = samples(&answer.body, r#"a \"crawl\""#);
        samples.into_keys().collect::<Vec<_>>()
    };
    assert_eq!(names(&open), names(&text));
    let described = |answer: &Answer, metric: &str| {
        let lines = answer.body.lines().filter(|line| line.starts_with('#'));
        let lines = lines.filter(|line| line.split(' ').nth(2) == Some(metric));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let help = |name: &str| format!("# HELP {name} Batches committed");
    let counter = |name: &str| vec![help(name), format!("# TYPE {name} counter")];
    assert_eq!(described(&open, "urlseen_batches"), counter("urlseen_batches"));
    assert_eq!(described(&text, "urlseen_batches_total"), counter("urlseen_batches_total"));
    assert_eq!(described(&text, "urlseen_build_info")[1], "# TYPE urlseen_build_info gauge");
    assert!(!text.body.contains("# EOF"), "{}", text.body);
}

/// Status of a router, with a partition that is away.
fn route_status() -> RouteStatus {
    let partition =
        RoutedStatus { partition: 3, pushed: 5, waiting: 7, trouble: Some("no answer".to_owned()) };
    RouteStatus {
        crawl: "demo".to_owned(),
        version: "1.2.3".to_owned(),
        pid: 4711,
        since: SystemTime::UNIX_EPOCH,
        phase: Phase::Working,
        source: "demo:discovered".to_owned(),
        routed: 4,
        partitions: vec![partition],
    }
}

#[test]
fn the_metrics_of_a_router_name_a_partition_that_is_away() {
    let endpoint = Endpoint::new();
    *endpoint.view.route.lock().unwrap() = Some(route_status());
    let metrics = endpoint.get("/metrics").body;
    let samples = samples(&metrics, "demo");
    for (name, value) in [
        ("urlseen_routed_items_total", 4.0),
        (r#"urlseen_route_pushed_items_total{partition="3"}"#, 5.0),
        (r#"urlseen_route_waiting_items{partition="3"}"#, 7.0),
        (r#"urlseen_route_up{partition="3"}"#, 0.0),
        ("urlseen_ready", 1.0),
    ] {
        assert_eq!(samples.get(name), Some(&value), "{name}: {metrics}");
    }
    assert_eq!(endpoint.get("/readyz").status, 200);
    let status: serde_json::Value = serde_json::from_str(&endpoint.get("/status").body).unwrap();
    assert_eq!(status["partitions"][0]["trouble"], "no answer");
}

/// Returns the names of the metrics, without the endings of a histogram's samples.
fn names(metrics: &str) -> Vec<String> {
    let described = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let names = described.map(|line| line.split(' ').next().unwrap().to_owned());
    names.collect()
}

#[test]
fn the_page_of_metrics_has_a_row_for_each_metric_and_no_other_rows() {
    let endpoint = Endpoint::new();
    let mut metrics = endpoint.get("/metrics").body;
    *endpoint.view.route.lock().unwrap() = Some(route_status());
    metrics.push_str(&endpoint.get("/metrics").body);
    let names = names(&metrics);
    let page = fs::read_to_string(root().join("docs/reference/metrics.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let rows = rows.filter(|row| row.starts_with("urlseen_") || row.starts_with("process_"));
    let rows = rows.map(|row| row.split(['`', '{']).next().unwrap()).collect::<Vec<_>>();
    let lacking = names.iter().filter(|name| !rows.contains(&name.as_str()));
    let lacking = lacking.map(|name| format!("docs/reference/metrics.md: lacks {name}"));
    let too_many = rows.iter().filter(|row| names.iter().all(|name| name != *row));
    let too_many =
        too_many.map(|row| format!("docs/reference/metrics.md: there is no metric {row}"));
    report(lacking.chain(too_many));
}
