//! Filters in Redis that a daemon shares with programs of other projects. `scripts/data/kinds` has
//! a second implementation of their formats, without code of urlseen.

use std::process::Command;

use redis::Commands;

use super::shared::crawl;
use super::{Crawl, SINK};
use crate::util::sources::root;
use crate::util::wait::SOON;

/// Returns fingerprints of hex digits.
fn keys(range: std::ops::Range<u64>) -> Vec<String> {
    let digits = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    range.map(|number| format!("{:016x}{:024x}", digits(number), digits(number + 7))).collect()
}

/// Makes a crawl of fingerprints with a filter of this kind.
fn peer(kind: &str, capacity: u32) -> Crawl {
    let kind = format!("filter.kind={kind}");
    let capacity = format!("filter.capacity={capacity}");
    crawl(&[&kind, &capacity, "filter.error_rate=1e-9", "source.item=fingerprint"])
}

/// Adds keys with the script, or tests them. Returns the number of keys that were new, or that are
/// present.
fn oracle(crawl: &Crawl, kind: &str, capacity: &str, verb: &str, keys: &[String]) -> usize {
    let output = Command::new(root().join("scripts/data/kinds"))
        .args([kind, "--socket"])
        .arg(crawl.server.socket())
        .args(["demo:filter", capacity, "1e-9", verb])
        .args(keys)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    assert_eq!(lines.lines().count(), keys.len());
    lines.lines().filter(|line| *line == "1").count()
}

/// Runs the daemon on these keys. Returns the numbers of unseen and of seen ones.
fn drain(crawl: &Crawl, keys: &[String]) -> [usize; 2] {
    crawl.push(keys);
    let summary = crawl.drain();
    ["unseen", "seen"].map(|name| summary.count(name))
}

#[test]
fn a_daemon_and_another_program_share_a_filter_during_a_crawl() {
    // With this small capacity, the kind that grows adds layers.
    for (kind, size) in [("redisson", "1000"), ("redis-lua-scaling", "50")] {
        let crawl = peer(kind, size.parse().unwrap());
        let add = |range| oracle(&crawl, kind, size, "add", &keys(range));
        let has = |range| oracle(&crawl, kind, size, "has", &keys(range));
        assert_eq!(add(0..50), 50);
        assert_eq!(drain(&crawl, &keys(0..100)), [50, 50], "{kind}");
        assert_eq!(has(1000..1050), 0, "{kind}");
        assert_eq!(add(80..300), 200, "{kind}");
        assert_eq!(drain(&crawl, &keys(280..500)), [200, 20], "{kind}");
        assert_eq!(has(0..500), 500, "{kind}");
        let () = crawl.connection().del(SINK).unwrap();
    }
}

/// The filter grows by several layers within a batch. Its layers, and the project's count of items,
/// must be the same as after additions by the project.
#[test]
fn a_filter_that_grows_is_the_same_as_if_the_other_project_had_grown_it() {
    let kind = "redis-lua-scaling";
    let [ours, theirs] = [peer(kind, 50), peer(kind, 50)];
    let all = keys(0..400);
    assert_eq!(drain(&ours, &all), [400, 0]);
    assert_eq!(oracle(&theirs, kind, "50", "add", &all), 400);
    for key in ["count", "1", "2", "3", "4", "5"] {
        let of = |crawl: &Crawl| -> Vec<u8> {
            let mut bytes: Vec<u8> =
                crawl.connection().get(format!("demo:filter:{key}")).unwrap_or_default();
            // The first layer has its full length from the start.
            bytes.truncate(bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1));
            bytes
        };
        assert_eq!(of(&ours), of(&theirs), "layer {key}");
    }
}

#[test]
fn a_record_that_changes_in_the_middle_ends_the_run() {
    let crawl = peer("redisson", 200);
    let daemon = crawl.start();
    crawl.push(&keys(0..10));
    crawl.wait_for_sink(10);
    let mut connection = crawl.connection();
    let () = connection.del(("demo:filter", "{demo:filter}:config")).unwrap();
    oracle(&crawl, "redisson", "400", "add", &keys(0..1));
    crawl.push(&keys(20..30));
    let output = daemon.output(SOON);
    assert_eq!(output.code(), Some(3), "{output:?}");
    assert!(output.stderr.contains("made another filter in place of this one"), "{output:?}");
    assert_eq!(crawl.len(SINK), 10);
}
