//! Commits that wait for replicas: `redis.wait_replicas`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::thread::sleep;
use std::time::Duration;

use redis::Commands;
use rustix::process::Signal;
use serde_json::Value;

use super::{Bytes, Crawl, PROCESSING, READY, SINK, SOURCE, len, stop, stop_process, urls};
use crate::util::redis::RedisServer;
use crate::util::wait::{SOON, wait_until};

/// Number of items that the daemon commits without an acknowledgement: three batches.
const IN_FLIGHT: usize = 30;

/// Part of the log line of a daemon that waits for replicas at its start.
const FEW: &str = "0 of 1 replicas (redis.wait_replicas) have acknowledged the lease";

/// Crawl that waits for one replica, and its primary's port.
fn crawl() -> (Crawl, String) {
    let (primary, port) = RedisServer::start_at_port(&[]);
    (Crawl::on(primary).set("redis.wait_replicas=1").set("source.batch=10"), port)
}

/// Pushes items, and waits until the daemon has committed as many of them as it may without the
/// replica.
fn push_without_replica(crawl: &Crawl, items: &[String]) {
    crawl.push(items);
    crawl.wait_for_sink(IN_FLIGHT);
    sleep(Duration::from_millis(300));
    assert_eq!(crawl.len(SINK), IN_FLIGHT);
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
        let mut daemon = crawl.start();
        crawl.wait_until_idle();
        replica.pause();
        let items = urls(0, 100);
        push_without_replica(&crawl, &items);
        if place == "local" {
            let line = "waiting: 1 of 1 replicas (redis.wait_replicas) have not acknowledged the \
                        last 3 commits";
            daemon.wait_for_line(line, SOON);
            wait_until(SOON, "phase", || {
                let status = crawl.command("status", &["--json"]).output();
                let status: Value = serde_json::from_str(status.text()).unwrap();
                assert_eq!(status["counts"]["unseen"], 0);
                assert_eq!(status["head"]["seq"], 0);
                status["phase"]["name"] == "backpressure" && status["phase"]["by"] == "replicas"
            });
        }
        replica.resume();
        if place == "local" {
            daemon.wait_for_line("the replicas have acknowledged all commits", SOON);
        }
        crawl.wait_for_sink(items.len());
        crawl.wait_until_idle();
        let summary = stop(daemon);
        assert_eq!(summary.counts(), (100, [100, 0, 0, 0]), "{summary:?}");
        assert_eq!(summary.count("batches_aborted"), 0);
        check_once(&crawl.list(SINK), &items);
    }
}

#[test]
fn a_failover_that_loses_unacknowledged_commits_needs_no_older_filter() {
    let (mut crawl, port) = crawl();
    let (replica, port) = crawl.server.start_replica(&port);
    // The replica needs a replica of its own, when it is the primary.
    let _last = replica.start_replica(&port);
    let place = crawl.storage_dir().with_file_name("primary");
    symlink(crawl.server.socket(), &place).unwrap();
    let mut daemon = crawl.run_at(&format!("unix://{}", place.display()), &["--json"]).start();
    daemon.wait_for_line(READY, SOON);
    crawl.wait_until_idle();

    // The replica gets the items, but not their commits.
    stop_process(&daemon);
    let items = urls(0, 100);
    crawl.push(&items);
    wait_until(SOON, "items in the replica", || len(&mut replica.connection(), SOURCE) == 100);
    replica.cli(&["replicaof", "127.0.0.1", "1"]);
    daemon.signal(Signal::CONT);
    push_without_replica(&crawl, &[]);
    crawl.server.kill();
    assert_eq!(len(&mut replica.connection(), SINK), 0);
    replica.cli(&["replicaof", "no", "one"]);
    fs::remove_file(&place).unwrap();
    symlink(replica.socket(), &place).unwrap();

    let mut connection = replica.connection();
    wait_until(SOON, "items in the sink", || {
        len(&mut connection, SINK) >= 100
            && connection.exists::<_, usize>(&[SOURCE, PROCESSING]).unwrap() == 0
    });
    let summary = stop(daemon);
    check_once(&connection.lrange::<_, Vec<Bytes>>(SINK, 0, -1).unwrap(), &items);
    assert_eq!(summary.counts(), (100, [100, 0, 0, 0]), "{summary:?}");
    assert_eq!(summary.count("rollbacks"), 0);
}

#[test]
fn a_daemon_commits_nothing_before_a_replica_has_the_lease() {
    let (crawl, port) = crawl();
    let items = urls(0, 100);
    crawl.push(&items);
    let mut daemon = crawl.run(&["--json"]).start();
    let line = daemon.wait_for_line(FEW, SOON);
    assert!(line.contains("or lower redis.wait_replicas"), "{line}");
    assert_eq!(stop(daemon).count("items"), 0);

    let mut daemon = crawl.run(&["--json"]).start();
    daemon.wait_for_line(FEW, SOON);
    assert!(!daemon.stderr().contains(READY), "{}", daemon.stderr());
    assert_eq!((crawl.len(SOURCE), crawl.len(SINK)), (100, 0));
    let _replica = crawl.server.start_replica(&port);
    crawl.wait_for_sink(100);
    crawl.wait_until_idle();
    assert_eq!(stop(daemon).count("unseen"), 100);
    check_once(&crawl.list(SINK), &items);
}

#[test]
fn a_stopped_daemon_does_not_wait_for_a_paused_replica() {
    let (crawl, port) = crawl();
    let (replica, _) = crawl.server.start_replica(&port);
    let daemon = crawl.start();
    crawl.wait_until_idle();
    replica.pause();
    let items = urls(0, 100);
    push_without_replica(&crawl, &items);
    let summary = stop(daemon);
    assert_eq!(summary.count("unseen"), IN_FLIGHT);
    let warning =
        "fewer than 1 replicas (redis.wait_replicas) have acknowledged the last 3 commits";
    assert!(summary.stderr.contains(warning), "{summary:?}");
    replica.resume();
    assert_eq!(crawl.drain().count("unseen"), 100 - IN_FLIGHT);
    check_once(&crawl.list(SINK), &items);
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
