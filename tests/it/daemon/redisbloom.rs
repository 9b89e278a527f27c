//! The daemon with a filter of the kind `redisbloom`. After any kill, it gives the same answers as
//! a filter of RedisBloom with the same fingerprints.

use rustix::process::Signal;
use urlseen_core::filter::redisbloom::Filter;

use super::{Crawl, READY, SINK, stop};
use crate::util::wait::{SOON, wait_until};

/// Makes a crawl whose filter grows soon, and has a high error rate.
fn growing() -> Crawl {
    with(&["filter.capacity=200", "filter.error_rate=0.02", "storage.snapshot_bytes=4096"])
}

fn with(settings: &[&str]) -> Crawl {
    let crawl = Crawl::new().set("filter.kind=redisbloom").set("source.batch=20");
    settings.iter().fold(crawl, |crawl, setting| crawl.set(setting))
}

/// Makes an empty filter with the parameters of [`growing`].
fn empty() -> Filter {
    Filter::reserve(0.02, 200, 2, 1 << 20).unwrap()
}

/// Makes different fingerprints of hex digits.
fn digests(from: usize, count: usize) -> Vec<String> {
    let scattered = |number: usize| (number as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060);
    (from..from + count).map(|number| format!("{:040x}", scattered(number))).collect()
}

/// Builds the filter of all fingerprints in the sink, in order.
fn model(crawl: &Crawl) -> Filter {
    let mut model = empty();
    for item in crawl.list(SINK) {
        model.add(&item).unwrap();
    }
    model
}

/// Checks that `urlseen check` agrees with the filter, for items of the filter and for other items.
#[track_caller]
fn assert_answers(crawl: &Crawl, model: &Filter, items: &[String]) {
    let lines = items.join("\n") + "\n";
    let output = crawl.command("check", &["-"]).stdin(lines).output();
    let verdicts: Vec<_> = output.text().lines().map(|line| line.starts_with("seen\t")).collect();
    let due: Vec<_> = items.iter().map(|item| model.contains(item.as_bytes())).collect();
    assert!(verdicts == due, "{output:?}");
    assert!(due.contains(&true) && due.contains(&false));
}

#[test]
fn a_killed_daemon_recovers_exactly_the_committed_fingerprints() {
    let crawl = growing();
    let mut pushed = 0;
    for round in 1..=8 {
        crawl.push(&digests(pushed, 300));
        crawl.push(&digests(0, pushed));
        pushed += 300;
        let mut daemon = crawl.start();
        crawl.wait_for_sink(round * 150);
        daemon.signal(Signal::KILL);
        daemon.wait(SOON);
    }
    assert_eq!(crawl.drain().code, Some(0));
    let model = model(&crawl);
    assert!(model.layers().len() > 3);
    let (all, others) = (digests(0, pushed), digests(10_000, 5000));
    assert!(all.iter().all(|item| model.contains(item.as_bytes())), "one is lost");
    let mut sink = crawl.list(SINK);
    sink.sort();
    sink.dedup();
    assert_eq!(sink.len(), crawl.len(SINK), "one was emitted twice");
    // The command works with and without a running daemon.
    assert_answers(&crawl, &model, &others);
    let daemon = crawl.start();
    assert_answers(&crawl, &model, &others);
    let status = crawl.status();
    let filter = &status["filter"];
    assert_eq!(
        (&filter["keys"], &filter["capacity"]),
        (&model.size().into(), &model.capacity().into())
    );
    assert_eq!(filter["bytes"], model.bytes());
    let rate = filter["error_rate"].as_f64().unwrap();
    assert!((rate / model.error_rate_now() - 1.0).abs() < 1e-6, "{rate}");
    let (lost, missing) = (filter["lost_urls"].as_f64().unwrap(), (pushed - sink.len()) as f64);
    // The standard deviation of a count is its square root.
    assert!((lost - missing).abs() < 4.0 * lost.sqrt(), "{lost} by expectation, {missing} in fact");
    stop(daemon);
}

/// Point 7 of ARCHITECTURE.md: the filter follows a rollback of Redis, also to a time before it
/// grew by a layer.
#[test]
fn the_filter_follows_a_redis_that_went_back() {
    let mut crawl = growing();
    crawl.push(&digests(0, 150));
    let mut daemon = crawl.start();
    crawl.wait_until_idle();
    crawl.server.cli(&["save"]);
    let before = model(&crawl);
    crawl.push(&digests(150, 800));
    crawl.wait_until_idle();
    assert!(model(&crawl).layers().len() > before.layers().len());
    crawl.server.restart();
    daemon.wait_for_line("came back with older data", SOON);
    wait_until(SOON, "recovery", || daemon.stderr().matches(READY).count() == 2);
    assert_answers(&crawl, &before, &digests(0, 3000));
    crawl.push(&digests(0, 950));
    crawl.wait_until_idle();
    stop(daemon);
    assert_answers(&crawl, &model(&crawl), &digests(0, 3000));
}
