//! Filters in Redis of every kind, with one daemon or several.

use redis::Commands;

use super::items::{Random, seeds};
use super::{Crawl, REJECTED, SINK, stop, urls};
use crate::util::redis::RedisServer;
use crate::util::wait::{SOON, wait_until};

/// Every kind of filter in Redis, with settings for a small size.
pub(super) const LAYOUTS: [&[&str]; 8] = [
    &["filter.kind=native"],
    &["filter.kind=pyrebloom"],
    &["filter.kind=luw2007-bloomfilter"],
    &["filter.kind=scrapy-redis-bloomfilter", "filter.bit=20", "filter.hash_number=12"],
    &["filter.kind=scrapy-redis-bloomfilter-block-cluster", "filter.bit=20", "filter.block_num=3"],
    &["filter.kind=scrapy-redis"],
    &["filter.kind=redisson"],
    &["filter.kind=redis-lua-scaling", "filter.capacity=100"],
];

/// Makes a crawl whose filter is in Redis.
pub(super) fn crawl(kind: &[&str]) -> Crawl {
    on(RedisServer::start(), kind)
}

fn on(server: RedisServer, settings: &[&str]) -> Crawl {
    let crawl = Crawl::on(server).set("filter.place=redis");
    settings.iter().fold(crawl, |crawl, setting| crawl.set(setting))
}

/// Calls `test` with an empty crawl of each kind, which has a setting in addition. All crawls are
/// on the same server, one after the other.
fn with_each(kinds: &[&[&str]], setting: &str, test: impl Fn(&Crawl, &[&str])) {
    let mut server = RedisServer::start();
    for kind in kinds {
        server.cli(&["flushall"]);
        server.cli(&["config", "resetstat"]);
        let crawl = on(server, kind).set(setting);
        test(&crawl, kind);
        server = crawl.server;
    }
}

/// Makes items of several forms with many duplicates. Returns them with the expected outcome: the
/// emitted items in order, and the number of rejected items.
fn mixed(seed: u64, count: usize) -> (Vec<String>, Vec<String>, usize) {
    let mut random = Random::new(seed);
    let (mut items, mut onward, mut rejected) = (Vec::new(), Vec::new(), 0);
    let mut met = std::collections::HashSet::new();
    for _ in 0..count {
        let url = format!("http://example.com/{}", random.below(count / 3));
        let item = match random.below(10) {
            0 => format!(r#"{{"url":"{url}","dont_filter":true}}"#),
            1 => "mailto:a@b".to_owned(),
            2 => format!(r#"{{"url":"{url}"}}"#),
            _ => url.clone(),
        };
        if item.contains("dont_filter") {
            onward.push(item.clone());
        } else if item.starts_with("mailto") {
            rejected += 1;
        } else if met.insert(url) {
            onward.push(item.clone());
        }
        items.push(item);
    }
    (items, onward, rejected)
}

#[test]
fn every_kind_passes_unseen_items_once_and_in_order() {
    // With a cache of only one key, the daemon asks Redis about nearly every item.
    for (kinds, recent) in
        [(&LAYOUTS[..], "filter.recent=1"), (&LAYOUTS[..1], "filter.recent=100_000")]
    {
        with_each(kinds, recent, |crawl, kind| {
            let seed = seeds(&[11])[0];
            let (items, onward, rejected) = mixed(seed, 1500);
            crawl.push(&items);
            let summary = crawl.drain();
            let sink: Vec<_> =
                crawl.list(SINK).into_iter().map(|it| String::from_utf8(it).unwrap()).collect();
            assert_eq!(sink, onward, "{kind:?}, seed {seed}");
            assert_eq!(crawl.len(REJECTED), rejected, "{kind:?}");
            let unfiltered = onward.iter().filter(|it| it.contains("dont_filter")).count();
            let seen = items.len() - onward.len() - rejected;
            let fates = [onward.len() - unfiltered, seen, unfiltered, rejected];
            assert_eq!(summary.counts(), (items.len(), fates), "{kind:?}");
            let keys = summary.count("keys");
            let truth = onward.len() - unfiltered;
            assert!(keys.abs_diff(truth) <= truth / 10, "{kind:?}: {keys} for {truth}");
            assert!(!crawl.storage_dir().exists(), "a storage folder was made");
        });
    }
}

#[test]
fn the_work_of_a_commit_is_bounded() {
    // This filter has 64 hashes for each item, so the daemon divides the items into many commits.
    let crawl = crawl(&["filter.kind=imooc", "source.batch=5000"]);
    crawl.push(&urls(0, 5000));
    let summary = crawl.drain();
    assert_eq!(summary.counts(), (5000, [5000, 0, 0, 0]));
    assert!(summary.count("batches") > 50, "{summary:?}");
    let expected: Vec<_> = urls(0, 5000).into_iter().map(String::into_bytes).collect();
    assert_eq!(crawl.list(SINK), expected);
    // The filter's string has its full length from the start.
    assert_eq!(crawl.connection().strlen::<_, u64>("demo:filter_0").unwrap(), 1 << 29);
}

/// The daemon checks a few of the filter's keys five times a second. The filters of these kinds
/// have one key or three.
#[test]
fn a_daemon_notices_a_filter_that_another_program_emptied() {
    let kinds = [1, 4, 5].map(|kind| LAYOUTS[kind]);
    with_each(&kinds, "filter.recent=100_000", |crawl, _| {
        crawl.push(&urls(0, 300));
        let mut daemon = crawl.start();
        crawl.wait_for_sink(300);
        let keys: Vec<String> = crawl.connection().keys("demo:filter*").unwrap();
        // Before the test deletes the keys, the daemon must have seen data in all of them.
        let looks = || -> usize {
            let calls = crawl.server.cli(&["info", "commandstats"]);
            let of = |name: &str| calls.split_once(name)?.1.split_once(',')?.0.parse().ok();
            let names = ["bitcount", "scard"].map(|name| format!("cmdstat_{name}:calls="));
            names.iter().find_map(|name| of(name)).unwrap_or(0)
        };
        let so_far = looks();
        wait_until(SOON, "a look at all keys", || looks() > so_far + 2 * keys.len());
        let () = crawl.connection().del(keys).unwrap();
        daemon.wait_for_line("the filter demo:filter in Redis was emptied by another client", SOON);
        crawl.push(&urls(0, 300));
        crawl.wait_for_sink(600);
        stop(daemon);
    });
}

/// Returns the number of changes that Redis has made.
fn changes(crawl: &Crawl) -> String {
    let info = crawl.server.cli(&["info", "persistence"]);
    let line = info.lines().find(|line| line.starts_with("rdb_changes_since_last_save:"));
    line.expect("it says so").to_owned()
}

#[test]
fn every_kind_is_read_without_a_write_and_is_emptied_and_deleted() {
    with_each(&LAYOUTS, "filter.recent=1", |crawl, kind| {
        crawl.push(&urls(0, 50));
        assert_eq!(crawl.drain().count("unseen"), 50);
        crawl.server.cli(&["config", "resetstat"]);
        crawl.push(&urls(0, 50));
        assert_eq!(crawl.drain().count("seen"), 50);
        let calls = crawl.server.cli(&["info", "commandstats"]);
        assert!(calls.contains("cmdstat_hset"), "no commit: {calls}");
        for write in ["setrange", "bitfield:", "setbit", "sadd", "rpush:calls=2"] {
            assert!(!calls.contains(&format!("cmdstat_{write}")), "{kind:?}: {calls}");
        }
        check_commands_that_read(crawl, kind);
        // Without `--yes`, the command is refused.
        let asked = crawl.command("storage drop", &[]).output();
        assert_ne!(asked.code(), Some(0), "{asked:?}");
        assert_eq!(crawl.command("storage reset", &["--yes"]).output().code(), Some(0));
        crawl.push(&urls(0, 50));
        assert_eq!(crawl.drain().count("unseen"), 50);
        let dropped = crawl.command("storage drop", &["--yes"]).output();
        assert_eq!(dropped.code(), Some(0), "{dropped:?}");
        let left: Vec<String> = crawl.connection().keys("*").unwrap();
        assert_eq!(left, [SINK]);
    });
}

/// Runs commands that read the filter, which has 50 fingerprints, and change nothing.
fn check_commands_that_read(crawl: &Crawl, kind: &[&str]) {
    let changes = changes(crawl);
    let output = crawl.command("check", &["http://example.com/49", "http://n.org/"]).output();
    assert_eq!(output.code(), Some(1), "{output:?}");
    let verdicts = output.text().lines().map(|line| line.split('\t').next().unwrap());
    assert_eq!(verdicts.collect::<Vec<_>>(), ["seen", "unseen"], "{output:?}");
    let status = crawl.command("status", &[]).output();
    let is_set = kind[0].ends_with("=scrapy-redis");
    let size = if is_set { "exact; " } else { " % of 100" };
    for words in ["demo", "no daemon", "batch ", size, "at demo:filter"] {
        assert!(status.text().contains(words), "no {words:?} in {status:?}");
    }
    let filter = status.text().lines().find(|line| line.starts_with("filter ")).unwrap();
    let number = filter.strip_prefix("filter").unwrap().split("   fingerprints").next().unwrap();
    assert_eq!(number.trim().starts_with("about "), !is_set, "{filter}");
    assert_eq!(number.trim() == "50", is_set, "{filter}");
    let status = crawl.command("storage show", &["--json"]).output();
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["filter"]["kind"], kind[0].split_once('=').unwrap().1);
    assert_eq!(status["lists"]["sink"], 50);
    let lost = status["filter"]["lost_urls"].as_f64().unwrap();
    assert_eq!(lost > 0.0, !is_set, "{status}");
    assert!(status["head"]["seq"].as_u64() > Some(0), "{status}");
    assert_eq!(self::changes(crawl), changes, "a command changed something");
}

/// The crawl belongs to its own filter. Only `adopt` gives it another one.
#[test]
fn another_filter_is_refused_until_it_is_adopted() {
    let crawl = crawl(LAYOUTS[0]);
    crawl.push(&urls(0, 100));
    assert_eq!(crawl.drain().count("unseen"), 100);
    let other = crawl.set("filter.key=other");
    let refused = other.run(&["--drain"]).output();
    assert_eq!(refused.code(), Some(3), "{refused:?}");
    assert!(refused.stderr.contains("urlseen storage adopt"), "{refused:?}");
    let adopted = other.command("storage adopt", &[]).output();
    assert_eq!(adopted.code(), Some(0), "{adopted:?}");
    other.push(&urls(0, 100));
    assert_eq!(other.drain().count("unseen"), 100);
}
