//! All requests of the admin endpoint, and their answers.

use std::collections::BTreeMap;
use std::fs;
use std::time::SystemTime;

use urlseen_cli::admin::{Backpressure, PartitionStatus, Phase, RouteStatus, Status};

use super::{Endpoint, ask, connect_tcp, status};
use crate::tidy::report;
use crate::util::sources::root;

#[test]
fn only_a_failed_daemon_is_unhealthy_and_a_daemon_that_cannot_work_is_not_ready() {
    let text = || "because".to_owned();
    let endpoint = Endpoint::new();
    for (phase, health, readiness) in [
        (Phase::Starting, 200, 503),
        (Phase::WaitingForFolder { holder: text() }, 200, 503),
        (Phase::WaitingForLease { holder: text() }, 200, 503),
        (Phase::Recovering, 200, 503),
        (Phase::Working, 200, 200),
        (Phase::Backpressure { by: Backpressure::Sink }, 200, 200),
        (Phase::RedisAway { trouble: text() }, 200, 503),
        (Phase::DiskAway { trouble: text() }, 200, 503),
        (Phase::Stopping, 200, 503),
        (Phase::Failed { reason: text() }, 503, 503),
    ] {
        endpoint.set(phase.clone());
        for (path, expected) in [("/healthz", health), ("/readyz", readiness)] {
            let answer = endpoint.get(path);
            assert_eq!(answer.status, expected, "{path} {phase:?}: {answer:?}");
            let body = if expected == 200 { "ok\n".to_owned() } else { format!("{phase}\n") };
            assert_eq!(answer.body, body, "{path}");
        }
    }
}

#[test]
fn the_status_in_json_has_every_field_of_the_status() {
    let endpoint = Endpoint::new();
    for phase in [Phase::Working, Phase::RedisAway { trouble: "gone".to_owned() }] {
        endpoint.set(phase.clone());
        let answer = endpoint.get("/status");
        assert_eq!(answer.status, 200);
        assert!(answer.head.contains("content-type: application/json"), "{answer:?}");
        let back: Status = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(back, status(phase));
    }
    let json: serde_json::Value = serde_json::from_str(&endpoint.get("/status").body).unwrap();
    assert_eq!(json["phase"]["name"], "redis-away");
    assert_eq!(json["since"], "1970-01-01T00:16:40.000Z");
}

#[test]
fn the_index_names_every_path() {
    let endpoint = Endpoint::new();
    let index = endpoint.get("/").body;
    for path in ["/healthz", "/readyz", "/status", "/metrics", "/check"] {
        assert!(index.contains(&format!(" {path} ")), "{index}");
    }
}

#[test]
fn other_paths_and_methods_get_different_errors() {
    let endpoint = Endpoint::new();
    assert_eq!(endpoint.get("/statuses").status, 404);
    assert_eq!(endpoint.get("/check").status, 405);
    assert_eq!(endpoint.post("/status", "").status, 405);
    let head = endpoint.request("HEAD /status HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(endpoint.request("nonsense\r\n\r\n").status, 400);
}

#[test]
fn a_configured_tcp_port_gives_the_same_answers_as_the_socket() {
    let mut endpoint = Endpoint::new();
    let address = endpoint.listen();
    assert!(address.ip().is_loopback());
    let answer = ask(connect_tcp(address), "GET /healthz HTTP/1.0\r\n\r\n");
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok\n"));
}

/// Returns the value of each metric. The key is the name with its labels.
fn samples(metrics: &str) -> BTreeMap<&str, f64> {
    let samples = metrics.lines().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name, value.parse().unwrap())
        })
        .collect()
}

#[test]
fn metrics_have_the_numbers_of_the_status() {
    let endpoint = Endpoint::new();
    let answer = endpoint.get("/metrics");
    assert!(answer.head.contains("content-type: application/openmetrics-text"), "{answer:?}");
    assert!(answer.body.ends_with("# EOF\n"), "{}", answer.body);
    let mut samples = samples(&answer.body);
    let age = samples.remove("urlseen_snapshot_age_seconds").unwrap();
    let since_1970 = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    assert!((since_1970 - 2000.0 - age).abs() < 60.0, "{age}");
    let expected = [
        (r#"urlseen_build_info{version="1.2.3",crawl="a \"crawl\""}"#, 1.0),
        ("urlseen_start_time_seconds", 1000.0),
        ("urlseen_ready", 1.0),
        (r#"urlseen_phase{phase="starting"}"#, 0.0),
        (r#"urlseen_phase{phase="waiting-for-folder"}"#, 0.0),
        (r#"urlseen_phase{phase="waiting-for-lease"}"#, 0.0),
        (r#"urlseen_phase{phase="recovering"}"#, 0.0),
        (r#"urlseen_phase{phase="working"}"#, 1.0),
        (r#"urlseen_phase{phase="backpressure"}"#, 0.0),
        (r#"urlseen_phase{phase="redis-away"}"#, 0.0),
        (r#"urlseen_phase{phase="disk-away"}"#, 0.0),
        (r#"urlseen_phase{phase="stopping"}"#, 0.0),
        (r#"urlseen_phase{phase="failed"}"#, 0.0),
        ("urlseen_seq", 17.0),
        ("urlseen_lease_seconds", 12.5),
        (r#"urlseen_items_total{fate="unseen"}"#, 1.0),
        (r#"urlseen_items_total{fate="seen"}"#, 2.0),
        (r#"urlseen_items_total{fate="unfiltered"}"#, 3.0),
        (r#"urlseen_passed_total{rule="list pages"}"#, 12.0),
        (r#"urlseen_items_total{fate="dropped"}"#, 18.0),
        (r#"urlseen_dropped_total{rule="scheme = '^mailto$'"}"#, 18.0),
        (r#"urlseen_items_total{fate="over-limit"}"#, 19.0),
        (r#"urlseen_over_limit_total{rule="hosts"}"#, 19.0),
        ("urlseen_over_limit_lost_total", 20.0),
        ("urlseen_own_fingerprints_total", 26.0),
        (r#"urlseen_list_items{list="over_limit"}"#, 25.0),
        (r#"urlseen_items_total{fate="rejected"}"#, 4.0),
        ("urlseen_rejects_dropped_total", 5.0),
        ("urlseen_source_lost_total", 0.0),
        ("urlseen_batches_total", 6.0),
        ("urlseen_batches_aborted_total", 7.0),
        ("urlseen_recoveries_total", 8.0),
        ("urlseen_rollbacks_total", 9.0),
        ("urlseen_snapshots_total", 10.0),
        ("urlseen_log_written_bytes_total", 11.0),
        (r#"urlseen_queries_total{answer="seen"}"#, 13.0),
        (r#"urlseen_queries_total{answer="unseen"}"#, 14.0),
        (r#"urlseen_queries_total{answer="full"}"#, 15.0),
        (r#"urlseen_queries_total{answer="forgotten"}"#, 17.0),
        (r#"urlseen_list_items{list="source"}"#, 21.0),
        (r#"urlseen_list_items{list="processing"}"#, 22.0),
        (r#"urlseen_list_items{list="sink"}"#, 23.0),
        (r#"urlseen_list_items{list="rejected"}"#, 24.0),
        ("urlseen_filter_keys", 31.0),
        ("urlseen_filter_capacity", 124.0),
        ("urlseen_filter_fill_ratio", 0.25),
        ("urlseen_filter_error_ratio", 1e-6),
        ("urlseen_filter_frozen_error_ratio", 2.5e-7),
        ("urlseen_filter_lost_urls", 0.5),
        ("urlseen_filter_generation", 61.0),
        ("urlseen_filter_next_generation_seconds", 89.5),
        (r#"urlseen_filter_generation_keys{age="0"}"#, 25.0),
        (r#"urlseen_filter_generation_keys{age="1"}"#, 0.0),
        (r#"urlseen_filter_generation_keys{age="2"}"#, 3.0),
        (r#"urlseen_filter_generation_keys{age="3"}"#, 0.0),
        (r#"urlseen_filter_generation_keys{age="4"}"#, 0.0),
        (r#"urlseen_filter_generation_keys{age="5"}"#, 1.0),
        ("urlseen_filter_expired_keys", 2.0),
        ("urlseen_filter_swept_keys_total", 9.0),
        ("urlseen_filter_bytes", 4096.0),
        ("urlseen_filter_tombstones", 16.0),
        ("urlseen_storage_snapshots", 3.0),
        ("urlseen_storage_log_bytes", 41.0),
    ];
    assert_eq!(samples, expected.into_iter().collect());
}

/// Status of a router, with a partition that is away.
fn route_status() -> RouteStatus {
    let partition = PartitionStatus {
        partition: 3,
        pushed: 5,
        waiting: 7,
        trouble: Some("no answer".to_owned()),
    };
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
    let samples = samples(&metrics);
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

#[test]
fn the_page_of_metrics_has_a_row_for_each_metric_and_no_other_rows() {
    let endpoint = Endpoint::new();
    let mut metrics = endpoint.get("/metrics").body;
    *endpoint.view.route.lock().unwrap() = Some(route_status());
    metrics.push_str(&endpoint.get("/metrics").body);
    let names = samples(&metrics);
    let mut names = names.keys().map(|name| name.split('{').next().unwrap()).collect::<Vec<_>>();
    names.dedup();
    let page = fs::read_to_string(root().join("docs/reference/metrics.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `urlseen_"));
    let rows = rows.map(|row| row.split(['`', '{']).next().unwrap()).collect::<Vec<_>>();
    let lacking = names.iter().filter(|name| !rows.contains(&&name["urlseen_".len()..]));
    let lacking = lacking.map(|name| format!("docs/reference/metrics.md: lacks {name}"));
    let too_many = rows.iter().filter(|row| !names.contains(&&*format!("urlseen_{row}")));
    let too_many =
        too_many.map(|row| format!("docs/reference/metrics.md: there is no metric urlseen_{row}"));
    report(lacking.chain(too_many));
}
