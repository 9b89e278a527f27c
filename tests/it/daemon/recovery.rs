//! Recovery: starts with every state of the storage folder, and rollbacks of Redis during a run.
//!
//! The numbered points are those of `ARCHITECTURE.md`, "Why nothing is lost or repeated".

use redis::Commands;
use rustix::process::Signal;

use super::{Crawl, READY, SINK, STATE, stop, urls};
use crate::util::wait::{SOON, wait_until};

/// Makes a crawl that takes a snapshot every few hundred unseen items.
fn with_snapshots() -> Crawl {
    Crawl::new()
        .set("filter.capacity=1000")
        .set("storage.snapshot_bytes=4096")
        .set("source.batch=20")
}

/// Points 5 and 7 of ARCHITECTURE.md: the filter follows a rollback of Redis. The second time,
/// Redis goes back to before the start of the daemon.
#[test]
fn a_running_daemon_follows_a_redis_that_went_back() {
    let mut crawl = with_snapshots();
    let mut daemon = crawl.start();
    crawl.push(&urls(0, 500));
    crawl.wait_until_idle();
    crawl.server.cli(&["save"]);
    crawl.push(&urls(500, 500));
    crawl.wait_until_idle();
    for save in ["of the run", "of an earlier run"] {
        crawl.server.restart();
        daemon.wait_for_line("came back with older data", SOON);
        wait_until(SOON, "recovery", || daemon.stderr().matches(READY).count() == 2);
        assert_eq!(crawl.len(SINK), 500);
        crawl.push(&urls(0, 1000));
        crawl.wait_for_sink(1000);
        crawl.wait_until_idle();
        let summary = stop(daemon);
        assert_eq!((summary.count("rollbacks"), summary.count("recoveries")), (1, 2));
        let expected: Vec<_> = urls(0, 1000).into_iter().map(String::into_bytes).collect();
        assert!(crawl.list(SINK) == expected, "{save}: {}", crawl.len(SINK));
        daemon = crawl.start();
        crawl.wait_until_idle();
    }
    // Batches that Redis lost were tested again, and are now kept.
    crawl.push(&urls(0, 1000));
    crawl.wait_until_idle();
    assert_eq!(stop(daemon).count("seen"), 1000);
    // The next start follows Redis, too.
    crawl.server.restart();
    crawl.push(&urls(0, 1000));
    assert_eq!(crawl.drain().count("unseen"), 500);
}

#[test]
fn a_running_daemon_ends_if_redis_lost_everything() {
    let mut crawl = Crawl::new();
    let mut daemon = crawl.start();
    crawl.push(&urls(0, 10));
    crawl.wait_until_idle();
    crawl.server.restart();
    daemon.wait_for_line("Redis knows nothing of this crawl", SOON);
    assert_eq!(daemon.output(SOON).code(), Some(3));
    assert!(crawl.dump().is_empty());
}

#[test]
fn a_deleted_state_is_not_taken_for_a_new_crawl() {
    let crawl = Crawl::new();
    let daemon = crawl.start();
    crawl.push(&urls(0, 10));
    crawl.wait_until_idle();
    let () = crawl.connection().del(STATE).unwrap();
    crawl.push(&urls(10, 10));
    let output = daemon.output(SOON);
    assert_eq!(output.code(), Some(3), "{output:?}");
    assert!(output.stderr.contains("Redis knows nothing of this crawl"), "{output:?}");
    assert_eq!((crawl.len(SINK), crawl.len(super::PROCESSING)), (10, 10));
}

#[test]
fn a_crawl_can_be_dropped() {
    let crawl = Crawl::new().set("sink.max_len=5").set("source.batch=5");
    crawl.push(&urls(0, 20));
    let mut daemon = crawl.start();
    daemon.wait_for_line("waiting: ", SOON);
    daemon.signal(Signal::KILL);
    daemon.wait(SOON);
    assert_eq!((crawl.len(SINK), crawl.len(super::PROCESSING)), (5, 15));
    assert_eq!(crawl.command("storage drop", &["--yes"]).output().code(), Some(0));
    assert_eq!((crawl.len(SINK), crawl.len(super::SOURCE)), (5, 15));
    assert!(!crawl.connection().exists::<_, bool>(STATE).unwrap());
    let crawl = crawl.set("sink.max_len=0").set("filter.capacity=5000");
    crawl.push(&urls(0, 20));
    assert_eq!(crawl.drain().count("unseen"), 20);
}
