//! `storage.archive`: emitted fingerprints are exported for scrapy-redis and Scrapy.

mod guide;

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use redis::Commands;
use rustix::process::Signal;
use serde_json::Value;

use crate::daemon::{Crawl, stop};
use crate::util::binary::{Output, urlseen};
use crate::util::redis::RedisServer;
use crate::util::wait::{SOON, wait_until};

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

/// Makes a fingerprint of hex digits. The leading bytes are evenly spread.
fn hex(number: usize) -> String {
    format!("{:02x}{number:038x}", number % 256)
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

/// The log has a batch that Redis has lost. The export must not include this batch.
#[test]
fn a_batch_that_redis_does_not_know_is_not_exported() {
    let mut crawl = on(RedisServer::start_with(&["--save", "3600 1000000"]));
    crawl.push(&urls(0, 100));
    crawl.drain();
    let () = redis::cmd("SAVE").query(&mut crawl.connection()).unwrap();
    let daemon = crawl.start();
    crawl.push(&urls(100, 50));
    crawl.wait_for_sink(150);
    daemon.signal(Signal::KILL);
    drop(daemon);
    crawl.server.restart();
    assert_eq!(exported(&crawl, &[]), fingerprints(&urls(0, 100)));
    let all = ["export", "--archive", "--storage"];
    let logged = lines(&urlseen(all).arg(crawl.storage_dir()).output());
    assert_eq!(logged, fingerprints(&urls(0, 150)), "without Redis, the export has the whole log");
    crawl.push(&urls(120, 50));
    crawl.drain();
    let expected = [urls(0, 100), urls(120, 50)].concat();
    assert_eq!(exported(&crawl, &[]), fingerprints(&expected));
}

/// Imports the fingerprints with these numbers.
fn import(crawl: &Crawl, numbers: Range<usize>) -> Output {
    let lines: String = numbers.map(|number| hex(number) + "\n").collect();
    crawl.command("import", &[]).stdin(lines).output()
}

/// Imports fingerprints with several runs. Each run ends after its snapshot, so that later runs
/// prune the log.
fn import_in_parts(crawl: &Crawl, numbers: Range<usize>) {
    for from in numbers.clone().step_by(5000) {
        let imported = import(crawl, from..numbers.end.min(from + 5000));
        assert_eq!(imported.code(), Some(0), "{imported:?}");
    }
}

#[test]
fn an_export_has_imported_keys_but_no_forgotten_keys_and_no_text_keys() {
    let crawl = crawl().set("source.item=fingerprint");
    crawl.push(&["a key".to_owned(), hex(1), hex(2), format!("{:064x}", 3)]);
    crawl.drain();
    let daemon = crawl.start();
    let forgotten = crawl.command("forget", &[&hex(1), &hex(2)]).output();
    assert_eq!(forgotten.code(), Some(0), "{forgotten:?}");
    let forgotten = || {
        let status = urlseen(["status", "--json", "--storage"]).arg(crawl.storage_dir()).output();
        serde_json::from_slice::<Value>(&status.stdout).unwrap()["asked"]["forgotten"].as_u64()
    };
    wait_until(SOON, "two forgotten", || forgotten() == Some(2));
    crawl.push(&[hex(2)]);
    crawl.wait_for_sink(5);
    let beside = crawl.command("export", &["--archive"]).output();
    assert_eq!(beside.code(), Some(3), "{beside:?}");
    assert!(beside.stderr.contains("is in use by"), "{beside:?}");
    stop(daemon);

    import_in_parts(&crawl, 10..50_000);
    assert!(parts(&crawl) > 0);
    let output = crawl.command("export", &["--archive"]).output();
    assert_eq!(output.code(), Some(1), "text is no fingerprint of Scrapy: {}", output.stderr);
    assert!(output.stderr.contains("; 1 keys are text and left out"), "{}", output.stderr);
    let all: BTreeSet<_> = output.text().lines().map(str::to_owned).collect();
    let expected = (10..50_000).map(hex).chain([hex(2), format!("{:064x}", 3)]);
    assert_eq!(all, expected.collect());
}

#[test]
fn an_archive_with_a_gap_is_exported_only_with_partial() {
    let crawl =
        Crawl::new().set("storage.snapshot_bytes=4096").set("storage.horizon_bytes=1_048_576");
    // A rollback of Redis never undoes an import, so the log is pruned as soon as snapshots cover
    // the import.
    import_in_parts(&crawl, 0..50_000);
    let crawl = crawl.set("storage.archive=true");
    let late = import(&crawl, 50_000..100_000);
    assert!(late.stderr.contains("lacks fingerprints from before record"), "{}", late.stderr);
    let shown = urlseen(["storage", "show", "--storage"]).arg(crawl.storage_dir()).output();
    assert!(
        shown.text().contains("; it lacks fingerprints from before record"),
        "{}",
        shown.text()
    );
    let refused = crawl.command("export", &["--archive"]).output();
    assert_eq!((refused.code(), refused.text()), (Some(2), ""), "{refused:?}");
    assert!(refused.stderr.contains("--partial"), "{refused:?}");
    let partial = exported(&crawl, &["--partial"]);
    assert!((50_000..100_000).map(hex).all(|line| partial.contains(&line)), "{}", partial.len());
    assert!(partial.len() < 100_000);

    let reset = crawl.command("storage reset", &["--yes"]).output();
    assert_eq!(reset.code(), Some(0), "{reset:?}");
    assert_eq!(exported(&crawl, &[]), BTreeSet::new());
}

#[test]
fn a_filter_in_redis_has_no_archive() {
    let crawl = Crawl::new().set("filter.place=redis");
    let output = crawl.command("export", &["--archive"]).output();
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("there is no archive"), "{output:?}");
}

#[test]
fn status_names_the_archive() {
    let crawl = crawl();
    crawl.push(&urls(0, 100));
    crawl.drain();
    let daemon = crawl.start();
    let status = urlseen(["status", "--storage"]).arg(crawl.storage_dir()).output();
    assert!(status.text().contains("archive      0 B; with the log it is complete"), "{status:?}");
    stop(daemon);
}
