//! Limits of unseen items, in whole crawls.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Crawl, READY, stop};
use crate::util::binary::Daemon;
use crate::util::wait::{SOON, wait_until};

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

/// Returns the URLs of some months of a calendar.
fn months(numbers: std::ops::Range<u32>) -> Vec<String> {
    numbers.map(|number| format!("http://a.x/cal/{}/{}", 2000 + number / 12, number % 12)).collect()
}

#[test]
fn a_tap_and_metrics_name_the_limit() {
    let crawl = Crawl::new();
    let path = file(&crawl, RULES);
    let daemon = start(&crawl, &path);
    crawl.push(&months(0..4));
    let tap = crawl.command("tap", &["--fate=over-limit", "--count=1"]).output();
    assert!(tap.text().ends_with("http://a.x/cal/2000/3   (the rule \"calendar\")\n"), "{tap:?}");
    let status = || -> serde_json::Value {
        let status = crawl.command("status", &["--json"]).output();
        serde_json::from_str(status.text()).unwrap()
    };
    wait_until(SOON, "a status with the item", || status()["counts"]["over_limit"] == 1);
    let group = json!({"rule": "calendar", "group": "a.x/cal/*/*", "items": 1});
    assert_eq!(status()["over_limit_by_group"], json!([group]));
    // The filter does not have the item.
    crawl.push(&months(3..4));
    wait_until(SOON, "both items", || status()["counts"]["over_limit"] == 2);
    stop(daemon);
}
