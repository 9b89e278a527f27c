//! Commits that wait for replicas: `redis.wait_replicas`.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Bytes, Crawl, SINK, stop, urls};
use crate::util::redis::RedisServer;

/// Number of items that the daemon commits without an acknowledgement: three batches.
const IN_FLIGHT: usize = 30;

/// Crawl that waits for one replica, and its primary's port.
fn crawl() -> (Crawl, String) {
    let (primary, port) = RedisServer::start_at_port(&[]);
    (Crawl::on(primary).set("redis.wait_replicas=1").set("source.batch=10"), port)
}

/// Checks that a list has each of these items once.
#[track_caller]
fn check_once(list: &[Bytes], items: &[String]) {
    let found: BTreeSet<&[u8]> = list.iter().map(Vec::as_slice).collect();
    assert_eq!(found, items.iter().map(String::as_bytes).collect());
    assert_eq!(list.len(), items.len());
}

#[test]
fn commits_count_only_after_a_paused_replica_has_them() {
    for place in ["local", "redis"] {
        let (crawl, port) = crawl();
        let (replica, _) = crawl.server.start_replica(&port);
        let crawl = crawl.set(&format!("filter.place={place}"));
        let daemon = crawl.start();
        crawl.wait_until_idle();
        replica.pause();
        let items = urls(0, 100);
        crawl.push(&items);
        crawl.wait_for_sink(IN_FLIGHT);
        if place == "local" {
            let status = crawl.status();
            assert_eq!(
                (&status["counts"]["unseen"], &status["head"]["seq"]),
                (&json!(0), &json!(0))
            );
        }
        assert_eq!(crawl.len(SINK), IN_FLIGHT);
        replica.resume();
        crawl.wait_for_sink(items.len());
        crawl.wait_until_idle();
        let summary = stop(daemon);
        assert_eq!(summary.counts(), (100, [100, 0, 0, 0]), "{summary:?}");
        assert_eq!(summary.count("batches_aborted"), 0);
        check_once(&crawl.list(SINK), &items);
    }
}

#[test]
fn a_user_without_permission_for_wait_is_refused() {
    let crawl = Crawl::new().with_user("ann").set("redis.wait_replicas=1");
    crawl.server.cli(&["acl", "setuser", "ann", "-wait"]);
    let summary = crawl.run(&["--drain"]).output();
    assert_eq!(summary.code(), Some(3), "{summary:?}");
    assert!(summary.stderr.contains("ACL SETUSER ann +wait"), "{summary:?}");
    assert_eq!(crawl.set("redis.wait_replicas=0").drain().ending(), "drained");
}
