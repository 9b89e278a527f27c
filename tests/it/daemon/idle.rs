//! An idle crawl: it sends few commands to Redis and wakes at once.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use redis::Commands;

use super::{Crawl, SINK, SOURCE, stop, urls};
use crate::util::wait::{SOON, wait_until};

#[test]
fn an_item_pushed_into_an_idle_crawl_passes_at_once() {
    let crawl = Crawl::new();
    let daemon = crawl.start();
    let mut connection = crawl.connection();
    let items = urls(0, 50);
    let mut latencies = Vec::new();
    for item in &items {
        let pushed = Instant::now();
        let () = connection.rpush(SOURCE, item).unwrap();
        let (_, out): (String, String) = connection.blpop(SINK, SOON.as_secs_f64()).unwrap();
        assert_eq!(out, *item);
        latencies.push(pushed.elapsed());
    }
    latencies.sort_unstable();
    println!("p50 {:?}, p99 {:?}", latencies[25], latencies[49]);
    // The daemon waits for items up to a second at a time. If items had to wait for the end of this
    // second, 50 items would take half a minute.
    let total: Duration = latencies.iter().sum();
    assert!(total < Duration::from_secs(5), "{latencies:?}");
    stop(daemon);
}

#[test]
fn twenty_idle_crawls_send_fewer_than_thirty_commands_a_second() {
    let crawl = Crawl::new();
    // The daemon's timers start now. The slowest one checks the rejects list after 15 s.
    let daemon = crawl.start();
    let started = Instant::now();
    crawl.wait_until_idle();
    let before = commands(&crawl);
    let calls = |now: &HashMap<String, u64>, name: &str| {
        now.get(name).copied().unwrap_or(0) - before.get(name).copied().unwrap_or(0)
    };
    let mut after = before.clone();
    wait_until(2 * SOON, "look at the lengths of all lists", || {
        after = commands(&crawl);
        calls(&after, "eval") > 0
    });
    let took = started.elapsed().as_secs_f64();
    let kinds: HashMap<_, _> = after.keys().map(|name| (name, calls(&after, name))).collect();
    let a_second = kinds.values().sum::<u64>() as f64 / took;
    println!("{a_second:.2} commands a second in {took:.1} s, {kinds:?}");
    assert!(20.0 * a_second < 30.0, "{a_second} {kinds:?}");
    stop(daemon);
}

#[test]
fn a_small_batch_needs_a_claim_a_read_and_one_commit_script() {
    const BATCHES: usize = 20;
    let crawl = Crawl::new();
    let daemon = crawl.start();
    // The first windows are small, because the daemon does not know the sizes of the items yet.
    crawl.push(&urls(40 * BATCHES, 100));
    crawl.wait_for_sink(100);
    crawl.wait_until_idle();
    let calls = |name: &str| commands(&crawl).get(name).copied().unwrap_or(0);
    let before = ["evalsha", "exec", "eval", "lrange"].map(calls);
    for batch in 0..BATCHES {
        crawl.push(&urls(40 * batch, 40));
        crawl.wait_for_sink(40 * (batch + 1) + 100);
        crawl.wait_until_idle();
    }
    let after = ["evalsha", "exec", "eval", "lrange"].map(calls);
    let [evalsha, exec, eval, lrange] = std::array::from_fn(|index| after[index] - before[index]);
    let batches = BATCHES as u64;
    assert_eq!((exec, eval), (0, 0));
    assert!(lrange <= batches, "{lrange}");
    // The daemon also renews the lease.
    assert!((2 * batches..=2 * batches + 4).contains(&evalsha), "{evalsha}");
    stop(daemon);
}

/// If Redis has forgotten a script, a transaction notices this only after its push. So the script
/// of a small batch pushes the items itself.
#[test]
fn no_item_is_lost_or_repeated_if_redis_forgets_scripts() {
    let crawl = Crawl::new();
    let daemon = crawl.start();
    for batch in 0..5 {
        crawl.server.cli(&["script", "flush"]);
        crawl.push(&urls(10 * batch, 10));
        crawl.wait_for_sink(10 * (batch + 1));
    }
    assert_eq!(
        crawl.list(SINK),
        urls(0, 50).into_iter().map(String::into_bytes).collect::<Vec<_>>()
    );
    stop(daemon);
}

/// If a permission is removed between the start and a commit, the script must not fail after its
/// push.
#[test]
fn no_item_is_lost_or_repeated_if_a_permission_is_removed() {
    for command in ["rpush", "hset", "ltrim"] {
        let crawl = Crawl::new().with_user("crawler");
        let daemon = crawl.start();
        crawl.push(&urls(0, 10));
        crawl.wait_for_sink(10);
        crawl.wait_until_idle();
        crawl.server.cli(&["acl", "setuser", "crawler", &format!("-{command}")]);
        crawl.push(&urls(10, 10));
        let output = daemon.output(SOON);
        assert_eq!(output.code(), Some(3), "{output:?}");
        assert!(output.stderr.contains(&command.to_uppercase()), "{}", output.stderr);
        assert_eq!(crawl.len(SINK), 10, "{command}");
        crawl.server.cli(&["acl", "setuser", "crawler", &format!("+{command}")]);
        assert_eq!(crawl.drain().ending(), "drained");
        let expected: Vec<_> = urls(0, 20).into_iter().map(String::into_bytes).collect();
        assert_eq!(crawl.list(SINK), expected, "{command}");
    }
}

/// A run with `--drain` must not linger, that is, wait for further items before a claim.
#[test]
fn a_drain_does_not_linger() {
    let crawl = Crawl::new().set("source.linger=1s");
    for batch in 0..3 {
        crawl.push(&urls(10 * batch, 10));
        assert_eq!(crawl.drain().count("unseen"), 10);
    }
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
        .filter(|(name, _): &(String, u64)| name != "info" && name != "command|docs")
        .collect()
}
