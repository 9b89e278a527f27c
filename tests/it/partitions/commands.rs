//! Commands on a crawl with several partitions.

use rustix::process::Signal;
use serde_json::Value;

use super::{Crawl, fingerprints, partition_of};
use crate::util::binary::Output;
use crate::util::wait::{SOON, wait_until};

impl Crawl {
    /// Runs a command to its end, and checks its exit status.
    #[track_caller]
    fn command(&self, arguments: &[&str], status: i32) -> Output {
        let ran = self.urlseen(arguments).output();
        assert_eq!(ran.code(), Some(status), "{arguments:?}: {}", ran.stderr);
        ran
    }
}

#[test]
fn status_has_a_line_for_each_partition_and_the_sums() {
    let crawl = Crawl::new();
    let items = fingerprints(400);
    let daemon = crawl.start(&["partitions.run=0-2"], &[0, 1, 2]);
    crawl.push(&items);
    let here = items.iter().filter(|it| partition_of(it) < 3).count();
    crawl.wait_for_sinks(here);
    wait_until(SOON, "counted items", || {
        let shown = crawl.command(&["status"], 0);
        let lines: Vec<_> = shown.text().lines().map(str::to_owned).collect();
        // There can be lines with the age of the lengths, with the age of the oldest item, and at
        // the end, once the filters have fingerprints, with the lost URLs.
        assert!(matches!(lines.len(), 6..=9), "{lines:?}");
        assert!(lines.iter().all(|line| line.len() <= 100), "{lines:?}");
        assert!(lines[1].contains("working") && lines[4].contains("no daemon"), "{lines:?}");
        lines[5].split_whitespace().any(|word| word == here.to_string())
    });
    let shown = crawl.command(&["status", "--json"], 0);
    let shown: Value = serde_json::from_str(shown.text()).unwrap();
    assert_eq!(shown["partitions"][1]["phase"]["name"], "working");
    assert_eq!(shown["partitions"][3], serde_json::json!({ "partition": 3 }));
    let one = crawl.command(&["status", "--partition", "2", "--json"], 0);
    let one: Value = serde_json::from_str(one.text()).unwrap();
    assert_eq!(one["partition"], 2);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.output(SOON).code(), Some(0));
}

#[test]
fn status_says_why_partitions_wait() {
    let crawl = Crawl::new();
    let daemon = crawl.start(&["redis.wait_replicas=1"], &[]);
    let lines = |count, words: &str| {
        wait_until(SOON, words, || {
            let shown = crawl.command(&["status"], 0);
            let (rows, reasons): (Vec<_>, Vec<_>) =
                shown.text().lines().filter(|it| it.contains(words)).partition(|it| it.len() < 101);
            [rows.len(), reasons.len()] == count
        });
    };
    lines([4, 0], "replicas-away");
    lines([0, 1], "partition 0, 1, 2, 3: waiting for replicas: 0 of 1 replicas (redis.wait_replic");
    drop(daemon);
}

/// Fails if the number in the overview is not the sum of the numbers of all partitions.
#[test]
fn status_has_the_lost_urls_of_all_partitions() {
    let crawl = Crawl::new();
    let settings = ["filter.kind=two-choice", "filter.grow_to=1000", "filter.error_rate=0.01"];
    let daemon = crawl.start(&[&settings[..], &["filter.capacity=1000"]].concat(), &[0, 1, 2, 3]);
    assert!(!crawl.command(&["status"], 0).text().contains("URLs lost"));
    let items = fingerprints(400);
    crawl.push(&items);
    // Some of them are lost.
    wait_until(SOON, "empty sources and filters with fingerprints", || {
        let shown = crawl.command(&["status", "--json"], 0);
        let shown: Value = serde_json::from_str(shown.text()).unwrap();
        let partitions = shown["partitions"].as_array().unwrap();
        let lost = partitions.iter().map(|status| status["filter"]["lost_urls"].as_f64().unwrap());
        let lost: Vec<f64> = lost.collect();
        let counted = partitions.iter().map(|status| status["counts"]["unseen"].as_u64().unwrap());
        let is_counted = counted.sum::<u64>() > 380 && lost.iter().all(|&lost| lost > 0.01);
        let shown = crawl.command(&["status"], 0);
        let line = shown.text().lines().last().unwrap();
        let number = line.strip_suffix("   URLs lost so far, by expectation");
        let number = number.and_then(|number| number.trim().strip_prefix("about "));
        let number = number.map_or(0.0, |number| number.parse::<f64>().unwrap());
        is_counted && (number / lost.iter().sum::<f64>() - 1.0).abs() < 0.01
    });
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.output(SOON).code(), Some(0));
}
