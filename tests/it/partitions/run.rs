//! Processes that run the partitions of a crawl.

use redis::Commands;
use rustix::process::Signal;
use serde_json::Value;

use super::{Crawl, check_sinks, fingerprints, key, partition_of};
use crate::util::redis::free_port;
use crate::util::wait::{SOON, wait_until};

/// Gets a path of the admin endpoint at a port of loopback.
pub(super) fn get(port: &str, path: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let answer = reqwest::get(format!("http://127.0.0.1:{port}{path}")).await.unwrap();
        answer.text().await.unwrap()
    })
}

#[test]
fn a_process_runs_all_partitions_and_passes_each_item_once() {
    let crawl = Crawl::new();
    let items = fingerprints(2000);
    let port = free_port();
    let listen = format!("admin.listen=127.0.0.1:{port}");
    let daemon = crawl.start(&[&listen], &[0, 1, 2, 3]);
    crawl.push(&items);
    crawl.push(&items[..500]);
    crawl.wait_for_sinks(items.len());
    wait_until(SOON, "counted items", || {
        let status: Value = serde_json::from_str(&get(&port, "/status")).unwrap();
        let parts = status["partitions"].as_array().unwrap();
        let unseen = |part: &Value| part["counts"]["unseen"].as_u64().unwrap();
        let numbers: Vec<_> = parts.iter().map(|part| part["partition"].as_u64()).collect();
        assert_eq!(numbers, [Some(0), Some(1), Some(2), Some(3)]);
        parts.iter().map(unseen).sum::<u64>() == 2000
    });
    assert_eq!(get(&port, "/readyz"), "ok\n");
    let metrics = get(&port, "/metrics");
    for (metric, values) in [
        ("urlseen_items_total{fate=\"unseen\",crawl=\"demo\",partition=\"3\"}", 1),
        ("# TYPE urlseen_items_total counter", 1),
        ("urlseen_ready{crawl=\"demo\",partition=", 4),
        ("urlseen_build_info{version=", 1),
    ] {
        assert_eq!(metrics.matches(metric).count(), values, "{metric}: {metrics}");
    }
    check_sinks(&crawl, &items);
    daemon.signal(Signal::TERM);
    let ended = daemon.output(SOON);
    assert_eq!(ended.code(), Some(0), "{}", ended.stderr);
    let summary: Value = serde_json::from_str(ended.text()).unwrap();
    assert_eq!((summary["unseen"].as_u64(), summary["seen"].as_u64()), (Some(2000), Some(500)));
    // The filter of each partition is in its own folder, and a later process continues with it.
    crawl.push(&items);
    let ran = crawl.urlseen(&["run", "--drain", "--json"]).output();
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    check_sinks(&crawl, &items);
}

#[test]
fn a_partition_that_fails_does_not_stop_the_others() {
    let crawl = Crawl::new();
    crawl.connection().sadd::<_, _, ()>(key("demo:unseen", 1), "no list").unwrap();
    let mut daemon = crawl.start(&[], &[0, 2, 3]);
    let said = daemon.wait_for_line("partition{number=1}: the partition has ended", SOON);
    assert!(said.contains("ERROR") && said.contains(&key("demo:unseen", 1)), "{said}");
    let items: Vec<_> = fingerprints(400).into_iter().filter(|it| partition_of(it) != 1).collect();
    crawl.push(&items);
    let mut connection = crawl.connection();
    wait_until(SOON, "items of the other partitions", || {
        let length = |number| connection.llen::<_, usize>(key("demo:unseen", number)).unwrap();
        [0, 2, 3].map(length).iter().sum::<usize>() == items.len()
    });
    daemon.signal(Signal::TERM);
    let ended = daemon.output(SOON);
    assert_eq!(ended.code(), Some(3), "{}", ended.stderr);
}

/// The fingerprint of such an item would be in the wrong filter.
#[test]
fn an_item_of_another_partition_is_rejected_and_an_unfiltered_one_passes() {
    let crawl = Crawl::new();
    let fingerprint = "ff00000000000000000000000000000000000000";
    let unfiltered = r#"{"url": "https://example.com/", "dont_filter": true}"#;
    let mut connection = crawl.connection();
    for item in [fingerprint, unfiltered] {
        connection.rpush::<_, _, ()>(key("demo:discovered", 1), item).unwrap();
    }
    let ran = crawl.urlseen(&["run", "--drain"]).output();
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    assert_eq!(crawl.sinks()[1], [unfiltered]);
    let rejects: Vec<String> = connection.lrange(key("demo:rejected", 1), 0, -1).unwrap();
    let [reject] = &rejects[..] else { panic!("{rejects:?}") };
    let reject: Value = serde_json::from_str(reject).unwrap();
    let reason = "the fingerprint belongs to partition 3 of 4, and this is partition 1";
    assert_eq!(
        (reject["reason"].as_str(), reject["item"].as_str()),
        (Some(reason), Some(fingerprint))
    );
}
