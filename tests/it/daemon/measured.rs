//! Measured error rate of the daemon's filter.

use rustix::process::Signal;
use serde_json::Value;

use super::{Crawl, SINK, stop, urls};
use crate::util::wait::{SOON, wait_until};

const URLS: usize = 60_000;

/// Makes a crawl whose filter loses more than one of a thousand URLs.
fn lossy() -> Crawl {
    Crawl::new()
        .set("filter.kind=native")
        .set("filter.capacity=20000")
        .set("filter.error_rate=1e-3")
}

/// Waits until the sample of a running daemon has this number of URLs. Returns the measured error
/// rate.
fn measured(crawl: &Crawl, asked: usize) -> Value {
    let mut measured = Value::Null;
    wait_until(SOON, "the sample", || {
        let output = crawl.command("status", &["--json"]).output();
        let mut status: Value = serde_json::from_slice(&output.stdout).unwrap();
        measured = status["filter"]["measured"].take();
        measured["asked"] == asked
    });
    measured
}

/// While the sample is not full, it has every URL of the crawl.
#[test]
fn the_sample_has_the_lost_urls_of_the_crawl() {
    let crawl = lossy();
    crawl.push(&urls(0, URLS));
    let daemon = crawl.start();
    crawl.wait_until_idle();
    let lost = URLS - crawl.len(SINK);
    assert!(lost > 40, "{lost}");
    let found = measured(&crawl, URLS);
    assert_eq!(found["wrong"], lost);
    let [rate, most] = ["error_rate", "error_rate_max"].map(|name| found[name].as_f64().unwrap());
    // The text of a number in JSON is not exact.
    assert!((rate * URLS as f64 - lost as f64).abs() < 1e-6, "{found}");
    assert!(most > rate && most < 2.0 * rate, "{found}");
    let output = crawl.command("status", &[]).output();
    assert!(output.text().contains("of 60,000 sampled URLs lost: error rate"), "{output:?}");

    // The end of a run saves the sample.
    stop(daemon);
    let mut daemon = crawl.start();
    assert_eq!(measured(&crawl, URLS), found);

    // After a kill, the sample has every URL that passed since the last snapshot, and not those
    // that were lost. These are lost again.
    crawl.push(&urls(URLS, 1000));
    crawl.wait_until_idle();
    let lost = URLS + 1000 - crawl.len(SINK);
    daemon.signal(Signal::KILL);
    daemon.wait(SOON);
    let daemon = crawl.start();
    crawl.push(&urls(0, URLS + 1000));
    crawl.wait_until_idle();
    assert_eq!(URLS + 1000 - crawl.len(SINK), lost);
    let found = measured(&crawl, URLS + 1000);
    assert_eq!((&found["wrong"], &found["error_rate_max"]), (&lost.into(), &Value::Null));
    let output = crawl.command("status", &[]).output();
    assert!(output.text().contains("sampled URLs lost: error rate at least"), "{output:?}");
    stop(daemon);
}

/// A filter that is loaded without its sample would not be measured.
#[test]
fn a_snapshot_has_the_sample() {
    let crawl = lossy().set("storage.snapshot_bytes=4096");
    crawl.push(&urls(0, 1000));
    let mut daemon = crawl.start();
    wait_until(SOON, "snapshot", || {
        let output = crawl.command("status", &["--json"]).output();
        let status: Value = serde_json::from_slice(&output.stdout).unwrap();
        status["storage"]["snapshots"].as_u64() > Some(1)
    });
    measured(&crawl, 1000);
    daemon.signal(Signal::KILL);
    daemon.wait(SOON);
    let daemon = crawl.start();
    // Those that were lost after the snapshot are lost again.
    crawl.push(&urls(0, 1000));
    measured(&crawl, 1000);
    stop(daemon);
}

#[test]
fn a_filter_with_one_shard_is_measured_too() {
    let crawl = lossy().set("filter.kind=redisbloom");
    crawl.push(&urls(0, 100));
    let daemon = crawl.start();
    measured(&crawl, 100);
    stop(daemon);
}
