//! Limits of unseen items, in whole crawls.

use std::path::{Path, PathBuf};

use redis::Commands;
use rustix::process::Signal;

use super::{Crawl, READY, REJECTED, SINK, Summary, stop};
use crate::util::binary::Daemon;
use crate::util::wait::{SOON, wait_until};

/// Redis key of the over-limit list.
const OVER: &str = "demo:over-limit";

const RULES: &str = r"
[[limit]]
name = 'calendar'
host = '^a\.x$'
path = '^/cal/'
by = 'pattern'
max = 3

[[limit]]
name = 'hosts'
by = 'host'
max = 10

[[limit]]
name = 'lists'
path = '^/list$'
by = 'parameter'
parameter = 'page'
max = 2
";

/// Writes a configuration file with these rules, and returns its path.
fn file(crawl: &Crawl, rules: &str) -> PathBuf {
    let file = crawl.server.folder().join("rules.toml");
    std::fs::write(&file, rules).unwrap();
    file
}

/// Starts a daemon with a configuration file, and waits until it is ready.
fn start(crawl: &Crawl, file: &Path) -> Daemon {
    let mut daemon = crawl.run(&["--json", "--config"]).arg(file).start();
    daemon.wait_for_line(READY, SOON);
    daemon
}

fn drain(crawl: &Crawl, rules: &str) -> Summary {
    let run = crawl.run(&["--drain", "--json", "--config"]).arg(file(crawl, rules)).output();
    Summary::of(run)
}

/// Returns the standard output of a command that must succeed.
#[track_caller]
fn said(crawl: &Crawl, command: &str, arguments: &[&str]) -> String {
    let rules = crawl.server.folder().join("rules.toml");
    let output = crawl.command(command, arguments).arg("--config").arg(rules).output();
    assert_eq!(output.code(), Some(0), "{output:?}");
    output.text().to_owned()
}

/// Returns the number of items on the over-limit list.
fn over(crawl: &Crawl) -> usize {
    crawl.connection().hlen(OVER).unwrap()
}

/// Returns the URLs of some months of a calendar.
fn months(numbers: std::ops::Range<u32>) -> Vec<String> {
    numbers.map(|number| format!("http://a.x/cal/{}/{}", 2000 + number / 12, number % 12)).collect()
}

#[test]
fn items_over_a_limit_go_to_the_list_once_with_their_reason() {
    for kind in ["native", "two-choice", "exact"] {
        let crawl = Crawl::new().set(&format!("filter.kind={kind}")).set("filter.threads=2");
        crawl.push(&months(0..5));
        crawl.push(&["http://a.x/list?page=1", "http://a.x/list?page=2&b=1"]);
        crawl.push(&["http://a.x/list?page=3", "http://a.x/list?b=2&page=1"]);
        let escaped = r#"{"url": "http://b.x/é", "meta": {"a": "\u0001"}}"#;
        crawl.push(&[escaped]);
        let summary = drain(&crawl, RULES);
        assert_eq!(summary.counts(), (10, [7, 0, 0, 0]), "{kind}");
        assert_eq!((summary.count("over_limit"), over(&crawl)), (3, 3), "{kind}");
        let by_rule = &summary.values["over_limit_by_rule"];
        let items: Vec<_> = (0..3).map(|at| by_rule[at]["items"].as_u64().unwrap()).collect();
        assert_eq!(items, [2, 0, 1], "{kind}");
        // A repeat of an item over the limit is not seen, and is on the list once.
        crawl.push(&months(3..5));
        let summary = drain(&crawl, RULES);
        assert_eq!((summary.count("seen"), summary.count("over_limit")), (0, 2), "{kind}");
        assert_eq!((over(&crawl), crawl.len(REJECTED)), (3, 0), "{kind}");
        let list = said(&crawl, "limits list", &["--json"]);
        let groups: Vec<_> = list.lines().map(|line| line.split_once(",\"ex").unwrap().0).collect();
        let calendar = r#"{"limit":"calendar","group":"a.x/cal/*/*","items":2"#;
        assert_eq!(groups, [calendar, r#"{"limit":"lists","group":"a.x/list?page","items":1"#]);
    }
}

/// Returns URLs of one host.
fn pages(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("http://c.x/p{number}")).collect()
}

#[test]
fn counts_are_exact_after_kills() {
    let crawl = Crawl::new().set("storage.snapshot_bytes=4096").set("source.batch=20");
    let rules = RULES.replace("max = 10", "max = 500");
    let path = file(&crawl, &rules);
    for round in 0..5 {
        crawl.push(&pages(100 * round..100 * (round + 1)));
        let mut daemon = crawl.run(&["--config"]).arg(&path).start();
        crawl.wait_for_sink(100 * round + 50);
        daemon.signal(Signal::KILL);
        daemon.wait(SOON);
    }
    crawl.push(&pages(500..600));
    drain(&crawl, &rules);
    assert_eq!((crawl.len(SINK), over(&crawl)), (500, 100));
}

#[test]
fn counts_follow_a_redis_that_went_back() {
    for snapshots in ["storage.snapshot_bytes=4096", "storage.snapshot_bytes=1_000_000"] {
        let mut crawl = Crawl::new().set("source.batch=20").set(snapshots);
        let path = file(&crawl, &RULES.replace("max = 10", "max = 800"));
        let mut daemon = crawl.run(&["--json", "--config"]).arg(&path).start();
        crawl.push(&pages(0..500));
        crawl.wait_until_idle();
        crawl.server.cli(&["save"]);
        crawl.push(&pages(500..1000));
        crawl.wait_until_idle();
        assert_eq!((crawl.len(SINK), over(&crawl)), (800, 200));
        crawl.server.restart();
        daemon.wait_for_line("came back with older data", SOON);
        crawl.push(&pages(1000..1400));
        crawl.wait_for_sink(800);
        crawl.wait_until_idle();
        assert_eq!((crawl.len(SINK), over(&crawl)), (800, 100));
        stop(daemon);
    }
}

#[test]
fn a_raised_limit_lets_the_requeued_items_through() {
    let crawl = Crawl::new();
    let path = file(&crawl, RULES);
    let daemon = start(&crawl, &path);
    crawl.push(&months(0..10));
    crawl.push(&["http://b.x/"]);
    crawl.wait_for_sink(4);
    let raise = |max: &str| {
        let group = ["--limit", "calendar", "--group", "a.x/cal/*/*", "--max", max];
        said(&crawl, "limits raise", &group)
    };
    assert_eq!(raise("5"), "the limit of a.x/cal/*/* is 5 now\n");
    let requeue = || said(&crawl, "limits requeue", &["--limit", "calendar", "--group", "cal"]);
    assert_eq!(requeue(), "7 put back to demo:discovered, 0 stay\n");
    crawl.wait_for_sink(6);
    crawl.wait_until_idle();
    stop(daemon);
    assert_eq!((crawl.len(SINK), over(&crawl)), (6, 5));
    // The limit also holds for the next run, and can be set while no daemon runs.
    crawl.push(&months(10..11));
    assert_eq!(drain(&crawl, RULES).count("over_limit"), 1);
    raise("8");
    requeue();
    assert_eq!(drain(&crawl, RULES).count("unseen"), 3);
    let mut all: Vec<_> = crawl.list(SINK);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 9, "each item passes once, byte for byte");
    let arguments = ["--limit=other", "--group=a", "--max=1", "--config"];
    let refused = crawl.command("limits raise", &arguments).arg(&path).output();
    assert_eq!(refused.code(), Some(2));
    assert!(refused.stderr.contains(r#"there are: "calendar", "hosts", "lists""#), "{refused:?}");
}

#[test]
fn a_full_list_takes_no_more_items_and_the_daemon_counts_them() {
    let crawl = Crawl::new().set("over_limit.max_len=4");
    crawl.push(&months(0..10));
    let summary = drain(&crawl, RULES);
    assert_eq!((summary.count("over_limit"), summary.count("over_limit_lost")), (7, 3));
    assert_eq!(over(&crawl), 4);
    assert_eq!(summary.stderr.matches("further items over a limit are counted").count(), 1);
}

#[test]
fn a_tap_and_metrics_name_the_limit() {
    let crawl = Crawl::new();
    let path = file(&crawl, RULES);
    let daemon = start(&crawl, &path);
    crawl.push(&months(0..4));
    let tap = crawl.command("tap", &["--fate=over-limit", "--count=1"]).output();
    assert!(tap.text().ends_with("http://a.x/cal/2000/3   (the rule \"calendar\")\n"), "{tap:?}");
    wait_until(SOON, "a status with the item", || {
        let status = crawl.command("status", &["--json"]).output();
        let status: serde_json::Value = serde_json::from_str(status.text()).unwrap();
        (&status["counts"]["over_limit"], &status["lists"]["over_limit"]) == (&1.into(), &1.into())
    });
    stop(daemon);
}
