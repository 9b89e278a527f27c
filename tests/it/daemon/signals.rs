//! Signals to a daemon. It finishes the batches in flight, and returns unread items to the source.

use redis::Commands;
use rustix::process::Signal;

use super::idle::commands;
use super::{Bytes, Crawl, LEASE, PROCESSING, SINK, SOURCE, Summary, stop, urls};
use crate::util::binary::Daemon;
use crate::util::wait::{SOON, wait_until};

/// Starts a daemon with 100 items in its source and a full sink. The daemon has read ahead as far
/// as permitted, and commits nothing.
fn backpressure(take_from: &str) -> (Crawl, Daemon) {
    let crawl = Crawl::new()
        .set("source.batch=5")
        .set("sink.max_len=5")
        .set(&format!("source.take_from={take_from}"));
    crawl.push(&urls(0, 100));
    let mut daemon = crawl.start();
    daemon.wait_for_line("waiting: demo:unseen holds 5 items", SOON);
    (crawl, daemon)
}

fn bytes(items: Vec<String>) -> Vec<Bytes> {
    items.into_iter().map(String::into_bytes).collect()
}

/// Returns the 100 items as two lists in order: the emitted items, and the waiting ones.
fn expected(take_from: &str) -> (Vec<Bytes>, Vec<Bytes>) {
    match take_from {
        "left" => (bytes(urls(0, 5)), bytes(urls(5, 95))),
        _ => (urls(95, 5).into_iter().rev().map(String::into_bytes).collect(), bytes(urls(0, 95))),
    }
}

/// A daemon that lingers (waits for further items before a claim) must stop at once when it gets a
/// signal.
#[test]
fn a_daemon_that_lingers_ends_when_asked() {
    let crawl = Crawl::new().set("source.linger=1s");
    let daemon = crawl.start();
    crawl.wait_until_idle();
    crawl.push(&urls(0, 1));
    let mut connection = crawl.connection();
    wait_until(SOON, "woken daemon", || {
        let clients: String = redis::cmd("INFO").arg("clients").query(&mut connection).unwrap();
        clients.contains("blocked_clients:0")
    });
    assert_eq!(stop(daemon).count("items"), 0);
    assert_eq!((crawl.len(SOURCE), crawl.len(SINK)), (1, 0));
    // The daemon has not claimed the item.
    assert_eq!(commands(&crawl).get("rename"), None);
}

#[test]
fn unread_items_return_to_an_empty_source_in_order() {
    for (take_from, signal) in [("left", Signal::TERM), ("right", Signal::INT)] {
        let (crawl, daemon) = backpressure(take_from);
        daemon.signal(signal);
        let summary = Summary::of(daemon.output(SOON));
        assert_eq!((summary.code, summary.ending()), (Some(0), "stopped"), "{summary:?}");
        let (out, waiting) = expected(take_from);
        assert_eq!(crawl.list(SINK), out);
        assert_eq!(crawl.list(SOURCE), waiting);
        assert_eq!(crawl.server.cli(&["exists", LEASE, PROCESSING]), "0");
        assert_eq!((summary.count("items"), summary.count("unseen")), (5, 5));
        assert_eq!((summary.count("source"), summary.count("processing")), (95, 0), "{summary:?}");
        assert!(summary.stderr.contains("95 unread items are back in the source"), "{summary:?}");
    }
}

#[test]
fn many_unread_items_return_in_several_calls() {
    // Both lists have more items than Lua passes in one call. The items of the shorter list move.
    for (take_from, claimed, later) in
        [("left", 15_000, 16_000), ("right", 15_000, 16_000), ("left", 16_000, 15_000)]
    {
        let crawl = Crawl::new()
            .set("sink.max_len=1")
            .set("source.batch=1")
            .set(&format!("source.take_from={take_from}"));
        crawl.push(&urls(0, claimed));
        let mut daemon = crawl.start();
        daemon.wait_for_line("waiting: demo:unseen holds 1 items", SOON);
        crawl.push(&urls(claimed, later));
        stop(daemon);
        let expected = if take_from == "left" {
            bytes(urls(1, claimed + later - 1))
        } else {
            bytes([urls(claimed, later), urls(0, claimed - 1)].concat())
        };
        assert!(crawl.list(SOURCE) == expected, "{take_from} {claimed} {later}");
    }
}

#[test]
fn with_two_long_lists_claimed_items_stay_claimed_and_are_read_first() {
    let crawl = Crawl::new().set("sink.max_len=1").set("source.batch=1");
    crawl.push(&urls(0, 100_002));
    let mut daemon = crawl.start();
    daemon.wait_for_line("waiting: demo:unseen holds 1 items", SOON);
    crawl.push(&urls(200_000, 100_001));
    let summary = stop(daemon);
    assert!(summary.stderr.contains("100001 unread items stay claimed"));
    assert_eq!((crawl.len(PROCESSING), crawl.len(SOURCE)), (100_001, 100_001));
    let counts = (summary.count("processing"), summary.count("source"));
    assert_eq!(counts, (100_001, 100_001), "{summary:?}");
    let () = crawl.connection().del(SINK).unwrap();
    let mut daemon = crawl.start();
    daemon.wait_for_line("waiting: demo:unseen holds 1 items", SOON);
    assert_eq!(crawl.list(SINK), bytes(urls(1, 1)));
}

#[test]
fn a_second_signal_ends_the_daemon_at_once() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let crawl = Crawl::new();
        let mut daemon = crawl.start();
        // Redis is paused, so that the daemon cannot end by itself.
        crawl.server.pause();
        daemon.signal(signal);
        daemon.wait_for_line("A second signal ends the process at once", SOON);
        daemon.signal(signal);
        let status = daemon.wait(SOON);
        crawl.server.resume();
        assert_eq!(status.code(), Some(code));
    }
}

#[test]
fn a_daemon_that_ends_without_redis_says_where_the_items_are() {
    let mut crawl = Crawl::new();
    crawl.push(&urls(0, 10));
    let mut daemon = crawl.start();
    crawl.wait_for_sink(10);
    crawl.server.kill();
    daemon.wait_for_line("Trying again in", SOON);
    daemon.signal(Signal::TERM);
    let output = daemon.output(SOON);
    assert_eq!(output.code(), Some(3), "{output:?}");
    let last = output.stderr.lines().last().unwrap();
    assert!(last.contains("stopped while Redis was away"), "{output:?}");
    assert!(last.contains("the lease ends by itself within 15 s"), "{output:?}");
}
