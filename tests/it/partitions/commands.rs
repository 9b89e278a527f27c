//! Commands on a crawl with several partitions.

use redis::Commands;
use rustix::process::Signal;
use serde_json::Value;

use super::{Crawl, check_sinks, fingerprints, key, partition_of};
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

    /// Passes items through the daemon.
    #[track_caller]
    fn pass(&self, fingerprints: &[String]) {
        self.push(fingerprints);
        self.command(&["run", "--drain"], 0);
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

#[test]
fn check_and_forget_find_the_partition_of_each_item() {
    let crawl = Crawl::new();
    let items = fingerprints(40);
    crawl.pass(&items);
    let asked: Vec<_> = ["check"].into_iter().chain(items.iter().map(String::as_str)).collect();
    let checked = crawl.command(&asked, 0);
    assert_eq!(checked.text().matches("seen\t").count(), 40);
    assert!(!checked.text().contains("unseen"), "{}", checked.text());
    crawl.command(&["check", "ff00000000000000000000000000000000000000"], 1);
    let asked: Vec<_> = ["forget"].into_iter().chain(items.iter().map(String::as_str)).collect();
    let said = crawl.command(&asked, 0);
    for number in 0..4 {
        assert!(said.text().contains(&key("demo:forget", number)), "{}", said.text());
    }
    let one = ["forget", "--partition", "0", "ff00000000000000000000000000000000000000"];
    let refused = crawl.command(&one, 1);
    assert!(refused.stderr.contains("belongs to another partition"), "{}", refused.stderr);
    let mut connection = crawl.connection();
    for number in 0..4 {
        connection.del::<_, ()>(key("demo:unseen", number)).unwrap();
    }
    crawl.pass(&items);
    check_sinks(&crawl, &items);
}

#[test]
fn rejects_of_all_partitions_are_requeued() {
    let crawl = Crawl::new();
    let mut connection = crawl.connection();
    for number in [1, 3] {
        connection.rpush::<_, _, ()>(key("demo:discovered", number), "no URL").unwrap();
    }
    crawl.command(&["run", "--drain"], 0);
    let listed = crawl.command(&["rejects", "list"], 0);
    assert_eq!(listed.text().matches("no URL").count(), 2, "{}", listed.text());
    crawl.command(&["rejects", "requeue"], 0);
    for number in [1, 3] {
        let length: usize = connection.llen(key("demo:discovered", number)).unwrap();
        assert_eq!(length, 1);
    }
    crawl.command(&["held", "list"], 0);
}

#[test]
fn after_a_reset_of_all_partitions_their_number_can_change() {
    let crawl = Crawl::new();
    let items = fingerprints(100);
    crawl.pass(&items);
    let shown = crawl.command(&["storage", "show"], 0);
    assert!(shown.text().contains("demo, partition 3 of 4"), "{}", shown.text());
    crawl.command(&["storage", "reset", "--yes", "--partition", "1"], 0);
    let refused = ["run", "--drain", "--set", "partitions.count=2"];
    crawl.command(&refused, 3);
    // One partition cannot be reset, so the table stays. A later reset completes the work.
    let folder = crawl.folder.path().join("storage/demo/2");
    let lock = std::fs::File::open(folder.join("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    let said = crawl.command(&["storage", "drop", "--yes"], 3);
    assert!(said.stderr.contains("partition 2 of 4: "), "{}", said.stderr);
    crawl.command(&refused, 3);
    drop(lock);
    crawl.command(&["storage", "drop", "--yes"], 0);
    crawl.command(&refused, 0);
}
