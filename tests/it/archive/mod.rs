//! `storage.archive`: emitted fingerprints are exported for scrapy-redis and Scrapy.

mod guide;

use std::collections::BTreeSet;
use std::time::Duration;

use redis::Commands;
use rustix::process::Signal;
use serde_json::Value;

use crate::daemon::Crawl;
use crate::util::binary::{Output, urlseen};
use crate::util::redis::RedisServer;
use crate::util::wait::wait_until;

const SINK: &str = "demo:unseen";
const SET: &str = "demo:dupefilter";

/// Makes a crawl that takes snapshots often, and keeps as few of them as possible.
fn crawl() -> Crawl {
    on(RedisServer::start())
}

fn on(server: RedisServer) -> Crawl {
    Crawl::on(server)
        .set("storage.archive=true")
        .set("storage.snapshot_bytes=4096")
        .set("storage.horizon_bytes=1_048_576")
}

fn urls(from: usize, count: usize) -> Vec<String> {
    (from..from + count).map(|number| format!("http://example.com/{number}")).collect()
}

/// Returns the fingerprints of URLs in hex digits.
fn fingerprints(urls: &[String]) -> BTreeSet<String> {
    let output = urlseen(["fingerprint"]).stdin(urls.join("\n")).output();
    output.text().lines().map(str::to_owned).collect()
}

#[track_caller]
fn exported(crawl: &Crawl, arguments: &[&str]) -> BTreeSet<String> {
    lines(&crawl.command("export", &[&["--archive"], arguments].concat()).output())
}

#[track_caller]
fn lines(output: &Output) -> BTreeSet<String> {
    assert_eq!(output.code(), Some(0), "{output:?}");
    let lines: Vec<_> = output.text().lines().map(str::to_owned).collect();
    let all: BTreeSet<_> = lines.iter().cloned().collect();
    assert_eq!(lines.len(), all.len(), "a line was printed twice");
    all
}

fn shown(crawl: &Crawl) -> Value {
    let output =
        urlseen(["storage", "show", "--json", "--storage"]).arg(crawl.storage_dir()).output();
    assert_eq!(output.code(), Some(0), "{output:?}");
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["archive"].clone()
}

fn parts(crawl: &Crawl) -> u64 {
    shown(crawl)["parts"].as_u64().unwrap()
}

#[test]
fn after_many_kills_the_archive_has_all_items_of_the_sink() {
    let crawl = crawl();
    let mut pushed = 0;
    for round in 0..4 {
        let daemon = crawl.start();
        let before = parts(&crawl);
        // The kill comes during the archiving, or in the middle of a batch.
        if round % 2 == 0 {
            wait_until(Duration::from_mins(1), "a part of the archive", || {
                // A snapshot starts when the log has grown.
                crawl.push(&urls(pushed, 500));
                pushed += 500;
                parts(&crawl) > before
            });
        } else {
            crawl.push(&urls(pushed - 100, 2100));
            pushed += 2000;
            crawl.wait_for_sink(pushed - 1000);
        }
        daemon.signal(Signal::KILL);
        drop(daemon);
        let sink: Vec<String> = crawl.connection().lrange(SINK, 0, -1).unwrap();
        assert_eq!(exported(&crawl, &[]), fingerprints(&sink), "after round {round}");
    }
    crawl.drain();
    let sink: Vec<String> = crawl.connection().lrange(SINK, 0, -1).unwrap();
    assert_eq!(sink.len(), pushed);
    assert_eq!(exported(&crawl, &[]), fingerprints(&sink));
    assert!(parts(&crawl) > 1 && shown(&crawl)["lacks_before"].is_null(), "{}", shown(&crawl));

    let output = crawl.command("export", &["--archive-to-set", SET, "--json"]).output();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&told["fingerprints"], &told["new"]), (&pushed.into(), &pushed.into()));
    let set: BTreeSet<String> = crawl.connection().smembers(SET).unwrap();
    assert_eq!(set, fingerprints(&sink));
}
