//! The daemon with an exact filter. After any kill, it drops exactly the items whose fingerprints
//! have passed before. A forgotten fingerprint is removed from the filter.

use rustix::process::Signal;
use serde_json::Value;

use super::{Crawl, SINK, stop, urls};
use crate::util::binary::urlseen;
use crate::util::wait::{SOON, wait_until};

/// Makes a crawl that takes a snapshot every few hundred unseen items.
fn exact() -> Crawl {
    Crawl::new()
        .set("filter.kind=exact")
        .set("filter.threads=3")
        .set("storage.snapshot_bytes=4096")
        .set("source.batch=20")
}

/// Returns the items of the sink, in the order of [`urls`].
fn sink(crawl: &Crawl) -> Vec<String> {
    let items = crawl.list(SINK).into_iter().map(|item| String::from_utf8(item).unwrap());
    let mut items: Vec<String> = items.collect();
    items.sort_by_key(|item| (item.len(), item.clone()));
    items
}

fn filter(crawl: &Crawl) -> Value {
    crawl.status()["filter"].take()
}

#[test]
fn a_killed_daemon_loses_and_repeats_nothing() {
    let crawl = exact();
    let mut pushed = 0;
    for round in 1..=4 {
        crawl.push(&urls(pushed, 300));
        crawl.push(&urls(0, pushed));
        pushed += 300;
        let mut daemon = crawl.start();
        crawl.wait_for_sink(round * 150);
        daemon.signal(Signal::KILL);
        daemon.wait(SOON);
    }
    assert_eq!(crawl.drain().code, Some(0));
    crawl.push(&urls(0, pushed));
    assert_eq!(crawl.drain().count("unseen"), 0);
    assert!(sink(&crawl) == urls(0, pushed), "{} of {pushed}", crawl.len(SINK));

    let daemon = crawl.start();
    let filter = filter(&crawl);
    assert_eq!((&filter["keys"], &filter["error_rate"]), (&pushed.into(), &0.0.into()));
    assert_eq!(filter["lost_urls"], 0.0);
    assert!(filter["capacity"].as_u64() > filter["keys"].as_u64(), "{filter}");
    // Each fingerprint takes at least 128 bits.
    assert!(filter["bytes"].as_u64().unwrap() >= 16 * pushed as u64, "{filter}");
    assert!(!stop(daemon).stderr.contains("of what it is made for"));
    let shown = crawl.command("storage show", &[]).output();
    assert!(shown.text().contains(" exact, it grows by itself\n"), "{shown:?}");
}

#[test]
fn a_forgotten_fingerprint_leaves_the_filter_and_passes_once_more() {
    let crawl = exact();
    let (all, forgotten) = (urls(0, 500), urls(100, 30));
    crawl.push(&all);
    let mut daemon = crawl.start();
    crawl.wait_for_sink(500);
    let lines = forgotten.join("\n") + "\n";
    let output = crawl.command("forget", &["-"]).stdin(lines).output();
    assert_eq!(output.code(), Some(0), "{output:?}");
    wait_until(SOON, "470 fingerprints", || filter(&crawl)["keys"] == 470);
    assert_eq!(filter(&crawl)["forgotten"], 0, "no tombstone is kept");
    daemon.signal(Signal::KILL);
    daemon.wait(SOON);

    let daemon = crawl.start();
    wait_until(SOON, "470 fingerprints", || filter(&crawl)["keys"] == 470);
    for _ in 0..2 {
        crawl.push(&all);
    }
    crawl.wait_for_sink(530);
    crawl.wait_until_idle();
    wait_until(SOON, "500 fingerprints", || filter(&crawl)["keys"] == 500);
    stop(daemon);
    assert_eq!(crawl.drain().count("unseen"), 0);
    let mut expected = [all, forgotten].concat();
    expected.sort_by_key(|item| (item.len(), item.clone()));
    assert!(sink(&crawl) == expected, "{}", crawl.len(SINK));
}

/// The commands `explain`, `replay`, `compare`, `union` and `filter` support the kind `exact`.
#[test]
fn other_commands_support_the_kind_exact() {
    let crawl = exact();
    crawl.push(&urls(0, 100));
    crawl.drain();
    let seen = urls(0, 1);
    let explain = |item: &str| -> Value {
        let output = crawl.command("explain", &["--json", item]).output();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let daemon = crawl.start();
    let unseen = explain("http://example.com/unseen");
    assert_eq!(unseen["answer"]["how_sure"], "certain: it is an exact set", "{unseen}");
    stop(daemon);
    let explained = explain(&seen[0]);
    assert_eq!(explained["answer"]["verdict"], "seen", "{explained}");
    assert_eq!(explained["answer"]["is_certain"], true);

    let lines = [urls(0, 200), urls(100, 200)].concat().join("\n") + "\n";
    let output = crawl.command("replay", &["-", "--json"]).stdin(lines.clone()).output();
    let replayed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let lane = &replayed["kinds"][0];
    assert_eq!(
        (&lane["kind"], &lane["unseen"], &lane["wrong"]),
        (&"exact".into(), &300.into(), &0.into()),
        "{replayed}"
    );

    let dir = crawl.storage_dir();
    let dir = dir.to_str().unwrap();
    let compared = urlseen(["compare", "--json", dir, dir]).output();
    assert_eq!(compared.code(), Some(0), "{compared:?}");
    let compared: Value = serde_json::from_slice(&compared.stdout).unwrap();
    assert_eq!(compared["fingerprints"]["intersection"], 100.0, "{compared}");
    let united = crawl.server.folder().join("united");
    let output = urlseen(["union", "--output"]).arg(&united).arg(dir).arg(dir).output();
    assert_eq!(output.code(), Some(0), "{output:?}");

    let output = urlseen(["filter", "--storage"]).arg(&united).stdin(lines).output();
    assert_eq!(output.text(), urls(100, 200).join("\n") + "\n", "{output:?}");
}
