//! A crawl with nothing to do: it hardly asks Redis anything, and wakes at once.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use redis::Commands;

use super::{Crawl, SINK, SOURCE, stop, urls};
use crate::util::wait::{SOON, wait_until};

#[test]
fn an_item_pushed_into_an_idle_crawl_is_out_without_any_wait() {
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
    // One wait is a second: had it to end first, 50 items would take half a minute.
    let total: Duration = latencies.iter().sum();
    assert!(total < Duration::from_secs(5), "{latencies:?}");
    stop(daemon);
}

#[test]
fn an_idle_crawl_asks_redis_a_question_a_second() {
    let crawl = Crawl::new();
    let daemon = crawl.start();
    crawl.push(&urls(0, 10));
    crawl.wait_for_sink(10);
    crawl.wait_until_idle();
    // The first wait begins; then two whole ones pass.
    let calls = |name: &str| commands(&crawl).get(name).copied().unwrap_or(0);
    let begin = calls("blmove");
    let before: u64 = commands(&crawl).values().sum();
    let started = Instant::now();
    wait_until(SOON, "two more waits", || calls("blmove") >= begin + 2);
    assert!(started.elapsed() > Duration::from_millis(900), "{:?}", started.elapsed());
    let after: u64 = commands(&crawl).values().sum();
    // Two waits, as many looks for what is to be forgotten (or one more), the question about the
    // source, a renewal with its script, and no more.
    assert!(after - before <= 2 + 3 + 8, "{before} {after} {:?}", commands(&crawl));
    stop(daemon);
}

/// How often each command was called, the test's own `INFO` and connections aside.
fn commands(crawl: &Crawl) -> HashMap<String, u64> {
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
