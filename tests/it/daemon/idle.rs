//! Small batches: their commands, refused commits, and the wait for further items.

use std::collections::HashMap;

use redis::Commands;

use super::{Crawl, SINK, stop, urls};
use crate::util::wait::{SOON, wait_until};

#[test]
fn a_small_batch_needs_a_claim_a_read_and_one_commit_script() {
    const BATCHES: usize = 5;
    let crawl = Crawl::new();
    let daemon = crawl.start();
    // The first windows are small, because the daemon does not know the sizes of the items yet.
    crawl.push(&urls(40 * BATCHES, 100));
    crawl.wait_for_sink(100);
    crawl.wait_until_idle();
    // Only renewals of the lease use `PEXPIRE`.
    let calls = || {
        let commands = commands(&crawl);
        ["evalsha", "pexpire", "exec", "lrange"].map(|name| *commands.get(name).unwrap_or(&0))
    };
    let before = calls();
    for batch in 0..BATCHES {
        crawl.push(&urls(40 * batch, 40));
        crawl.wait_for_sink(40 * (batch + 1) + 100);
        crawl.wait_until_idle();
    }
    let after = calls();
    let [scripts, renewals, transactions, reads] =
        std::array::from_fn(|index| after[index] - before[index]);
    let batches = BATCHES as u64;
    assert_eq!((scripts - renewals, transactions), (2 * batches, 0));
    assert!(reads <= batches, "{reads}");
    stop(daemon);
}

/// A run with `--drain` must not linger, that is, wait for further items before a claim.
#[test]
fn a_drain_does_not_linger() {
    let crawl = Crawl::new().set("source.linger=1s");
    crawl.push(&urls(0, 10));
    assert_eq!(crawl.drain().count("unseen"), 10);
    assert_eq!(commands(&crawl).get("blmove"), None);
}

/// While commits wait for room in the sink, the daemon must not linger (wait for further items)
/// before its next claim.
#[test]
fn a_daemon_with_waiting_commits_does_not_linger() {
    let crawl = Crawl::new().set("source.linger=1s").set("sink.max_len=5").set("source.batch=5");
    crawl.push(&urls(0, 10));
    let mut daemon = crawl.start();
    daemon.wait_for_line("waiting: demo:unseen holds 5 items", SOON);
    crawl.push(&urls(10, 5));
    assert_eq!(commands(&crawl).get("blmove"), None);
    let mut out: Vec<String> = Vec::new();
    let mut connection = crawl.connection();
    wait_until(SOON, "all items", || {
        let some: Vec<String> = connection.lpop(SINK, std::num::NonZero::new(5)).unwrap();
        out.extend(some);
        out.len() == 15
    });
    assert_eq!(out, urls(0, 15));
    stop(daemon);
}

/// Returns the number of calls of each command, without the commands of the test itself.
pub(super) fn commands(crawl: &Crawl) -> HashMap<String, u64> {
    let info = crawl.server.cli(&["info", "commandstats"]);
    info.lines()
        .filter_map(|line| {
            let (name, values) = line.trim().strip_prefix("cmdstat_")?.split_once(':')?;
            let calls = values.strip_prefix("calls=")?.split(',').next()?.parse().ok()?;
            Some((name.to_owned(), calls))
        })
        .filter(|(name, _): &(String, u64)| name != "info")
        .collect()
}
