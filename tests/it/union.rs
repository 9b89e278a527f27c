//! `urlseen compare` and its unions, with filters in folders and in Redis.

use std::path::PathBuf;

use redis::Commands;
use serde_json::Value;
use tempfile::TempDir;

use crate::daemon::Crawl;
use crate::util::binary::{Output, Run, urlseen};
use crate::util::redis::RedisServer;

fn urls(from: usize, count: usize) -> Vec<String> {
    (from..from + count).map(|number| format!("http://example.com/{number}")).collect()
}

/// Storage folders of `urlseen filter`, in a temporary folder.
struct Folders {
    place: TempDir,
}

impl Folders {
    fn new() -> Self {
        Self { place: TempDir::with_prefix("urlseen-union-").unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Returns the path of a folder as an argument.
    fn name(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Runs `urlseen filter` with a folder, and returns the unseen lines.
    #[track_caller]
    fn feed(&self, name: &str, options: &[&str], items: &[String]) -> Vec<String> {
        let run = urlseen(["filter", "--storage"]).arg(self.path(name));
        let run = options.iter().fold(run, Run::arg);
        let output = run.stdin(items.join("\n") + "\n").output();
        assert_eq!(output.code(), Some(0), "{output:?}");
        output.text().lines().map(str::to_owned).collect()
    }
}

const SHAPE: &[&str] =
    &["--kind", "native", "--capacity", "20000", "--error-rate", "1e-9", "--seed", "7"];

fn run(command: &str, arguments: &[&str]) -> Output {
    arguments.iter().fold(urlseen([command]), Run::arg).output()
}

#[track_caller]
fn compared(arguments: &[&str]) -> Value {
    let output = run("compare", &[&["--json"], arguments].concat());
    assert_eq!(output.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Checks that a number is within its error, and that the error is small.
#[track_caller]
fn holds(compared: &Value, name: &str, truth: f64) {
    let [number, error] = [name, "error"].map(|name| compared[name].as_f64().unwrap());
    assert!((number - truth).abs() <= error, "{name}: {truth}, {compared}");
    assert!(error <= 0.025 * compared["union"].as_f64().unwrap().max(1000.0), "{compared}");
}

/// A Bloom filter is compared within an error, and a filter that stores keys exactly.
#[test]
fn folders_are_compared_and_united() {
    for kind in ["native", "two-choice", "exact"] {
        let size: &[_] = if kind == "native" { &SHAPE[2..6] } else { &[] };
        let shape = [&["--kind", kind, "--seed", "7"], size].concat();
        let folders = Folders::new();
        folders.feed("a", &shape, &urls(0, 6000));
        folders.feed("b", &shape, &urls(4000, 8000));
        let (a, b, c) = (folders.name("a"), folders.name("b"), folders.name("c"));
        let truths = [("a", 6000.0), ("b", 8000.0), ("union", 12_000.0), ("intersection", 2000.0)];
        let united = run("compare", &["--json", &a, &b, "-o", &c]);
        assert_eq!(united.code(), Some(0), "{kind}: {united:?}");
        for found in [compared(&[&a, &b]), serde_json::from_slice(&united.stdout).unwrap()] {
            for (name, truth) in truths {
                holds(&found, name, truth);
            }
            assert_eq!(found["error"] == 0.0, kind != "native", "{kind}: {found}");
        }
        let table = run("compare", &[&a, &b]);
        assert!(table.text().contains("in A and B     "), "{kind}: {table:?}");
        assert!(!folders.path("c.uniting").exists(), "{kind}");
        // The union has seen exactly the URLs that one of the filters has seen.
        assert_eq!(folders.feed("c", &[], &urls(0, 12_010)).len(), 10, "{kind}");
        // The filter `a` is unchanged.
        assert_eq!(folders.feed("a", &[], &urls(5990, 20)).len(), 10, "{kind}");
        let again = run("compare", &[&a, &b, "-o", &c]);
        assert_eq!(again.code(), Some(2), "{kind}: {again:?}");
        assert!(again.stderr.contains("already exists"), "{kind}: {again:?}");
    }
}

#[test]
fn filters_with_different_parameters_are_shown_side_by_side() {
    let folders = Folders::new();
    folders.feed("a", SHAPE, &urls(0, 10));
    for (name, shape, field) in [
        ("seed", &[&SHAPE[..7], &["8"]].concat()[..], "seed"),
        ("capacity", &[&SHAPE[..3], &["20001"], &SHAPE[4..]].concat(), "capacity"),
        ("algorithm", &[SHAPE, &["--algorithm", "scrapy-redis"]].concat(), "fingerprint.algorithm"),
        ("kind", &["--kind", "exact"], "filter.kind"),
    ] {
        folders.feed(name, shape, &urls(0, 10));
        let (a, b) = (folders.name("a"), folders.name(name));
        for output in [run("compare", &[&a, &b]), run("compare", &[&a, &b, "-o", "c"])] {
            assert_eq!(output.code(), Some(2), "{output:?}");
            let marked =
                output.stderr.lines().find(|line| line.starts_with("* ") && line.contains(field));
            assert!(marked.is_some(), "{field}: {}", output.stderr);
        }
    }
    let missing = run("compare", &[&folders.name("a"), "redis://127.0.0.1:1/0"]);
    assert_eq!(missing.code(), Some(2), "{missing:?}");
    assert!(missing.stderr.contains("as the URL of Redis, # and the key"), "{missing:?}");
}

/// Makes two crawls whose filters are in the same place.
fn crawls(settings: &[&str]) -> [Crawl; 2] {
    [1, 2].map(|_| settings.iter().fold(Crawl::new(), |crawl, setting| crawl.set(setting)))
}

fn key(server: &RedisServer, key: &str) -> String {
    format!("{}#{key}", server.url())
}

#[test]
fn filters_in_redis_are_compared_and_united() {
    for kind in ["native", "pyrebloom", "redisson", "scrapy-redis-bloomfilter"] {
        let layout_is = format!("filter.kind={kind}");
        let small: &[_] = match kind {
            "native" => &["filter.capacity=20_000", "filter.seed=7"],
            "scrapy-redis-bloomfilter" => &["filter.bit=20"],
            _ => &["filter.capacity=20_000"],
        };
        let settings = [&["filter.place=redis", &layout_is], small].concat();
        let [one, other] = crawls(&settings);
        one.push(&urls(0, 3000));
        one.drain();
        other.push(&urls(2000, 3000));
        other.drain();
        let (a, b) = (key(&one.server, "demo:filter"), key(&other.server, "demo:filter"));
        let before = [one.dump(), other.dump()];
        let found = compared(&[&a, &b]);
        for (name, truth) in [("a", 3000.0), ("union", 5000.0), ("intersection", 1000.0)] {
            holds(&found, name, truth);
        }

        let target = RedisServer::start();
        let c = key(&target, "united:filter");
        let united = run("compare", &[&a, &b, "-o", &c]);
        assert_eq!(united.code(), Some(0), "{kind}: {united:?}");
        assert_eq!([one.dump(), other.dump()], before, "{kind}: what is read is not written to");
        holds(&compared(&[&a, &c]), "intersection", 3000.0);
        let mut connection = target.connection();
        let keys: Vec<String> = connection.keys("*").unwrap();
        assert!(keys.iter().all(|key| !key.contains(":new:")), "{kind}: {keys:?}");
        for key in &keys {
            assert_eq!(connection.ttl::<_, i64>(key).unwrap(), -1, "{kind}: {key} expires");
        }

        // A daemon can use the union.
        let crawl = settings.iter().fold(Crawl::on(target), |crawl, it| crawl.set(it));
        let crawl = crawl.set("filter.key=united:filter");
        crawl.push(&urls(0, 5010));
        assert_eq!(crawl.drain().count("unseen"), 10, "{kind}");
        let again = run("compare", &[&a, &b, "-o", &key(&crawl.server, "united:filter")]);
        assert_eq!(again.code(), Some(3), "{kind}: {again:?}");
        assert!(again.stderr.contains("holds a filter united:filter already"), "{again:?}");
    }
}

#[test]
fn filters_that_grow_by_layers_and_sets_are_refused() {
    for (kind, words) in [
        ("redis-lua-scaling", "redis-lua-scaling, and can be neither compared nor united"),
        ("scrapy-redis", "Redis itself counts and unites sets, with SINTERCARD"),
    ] {
        let kind_is = format!("filter.kind={kind}");
        let [one, _] = crawls(&["filter.place=redis", &kind_is]);
        one.push(&urls(0, 10));
        one.drain();
        let a = key(&one.server, "demo:filter");
        let refused = run("compare", &["--set", "filter.place=redis", "--set", &kind_is, &a, &a]);
        assert_eq!(refused.code(), Some(2), "{refused:?}");
        assert!(refused.stderr.contains(words), "{refused:?}");
    }
    let folders = Folders::new();
    folders.feed("a", &["--kind", "redisbloom", "--capacity", "1000"], &urls(0, 10));
    let refused = run("compare", &[&folders.name("a"), &folders.name("a"), "-o", "c"]);
    assert_eq!(refused.code(), Some(2), "{refused:?}");
    assert!(refused.stderr.contains("redisbloom, and can be neither compared"), "{refused:?}");
}

/// After a kill in the middle, no command accepts a part of the union as a filter.
#[test]
fn no_command_accepts_an_incomplete_union() {
    let folders = Folders::new();
    folders.feed("a", SHAPE, &urls(0, 100));
    std::fs::create_dir(folders.path("c.uniting")).unwrap();
    std::fs::write(folders.path("c.uniting").join("origin.tmp"), "half").unwrap();
    let (a, c) = (folders.name("a"), folders.name("c"));
    let united = run("compare", &[&a, &a, "-o", &c]);
    assert_eq!(united.code(), Some(0), "{united:?}");
    assert_eq!(folders.feed("c", &[], &urls(0, 101)).len(), 1);
    // If an operand is damaged, the command makes no folder.
    let files = std::fs::read_dir(folders.path("c")).unwrap();
    let snapshot = files
        .map(|file| file.unwrap().path())
        .find(|path| path.file_name().unwrap().to_string_lossy().starts_with("snapshot-"))
        .unwrap();
    let mut bytes = std::fs::read(&snapshot).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&snapshot, bytes).unwrap();
    let refused = run("compare", &[&folders.name("c"), &a, "-o", &folders.name("d")]);
    assert_eq!(refused.code(), Some(3), "{refused:?}");
    assert!(!folders.path("d").exists());
}

#[test]
fn a_folder_and_a_filter_in_redis_are_compared_beside_a_daemon() {
    let [here, there] = crawls(&["filter.kind=native", "filter.seed=7"]);
    let there = there.set("filter.place=redis");
    here.push(&urls(0, 2000));
    let daemon = here.start();
    here.wait_for_sink(2000);
    there.push(&urls(1000, 2000));
    there.drain();
    let a = here.storage_dir().display().to_string();
    let b = key(&there.server, "demo:filter");
    let found = compared(&[&a, &b]);
    holds(&found, "intersection", 1000.0);
    // The daemon still runs.
    here.push(&urls(2000, 10));
    here.wait_for_sink(2010);
    let c = here.server.folder().join("united");
    let united = run("compare", &[&a, &b, "-o", &c.display().to_string()]);
    assert_eq!(united.code(), Some(0), "{united:?}");
    let stopped = crate::daemon::stop(daemon);
    assert_eq!(stopped.count("unseen"), 2010);

    // Another daemon can use the new folder.
    let fresh = Crawl::new().set("filter.seed=7").set(&format!("storage.dir={}", c.display()));
    fresh.push(&urls(0, 3005));
    assert_eq!(fresh.drain().count("unseen"), 5);
    let checked = urlseen(["check", "--storage"]).arg(&c).arg("http://example.com/3004").output();
    assert_eq!(checked.code(), Some(0), "{checked:?}");
}

/// A native filter cannot remove a fingerprint, so what either filter forgot passes again.
#[test]
fn a_forgotten_url_passes_again_in_the_union() {
    for (kind, unseen) in [("native", 3), ("two-choice", 2)] {
        let settings = [&*format!("filter.kind={kind}"), "filter.seed=7"];
        let [one, other] = crawls(&settings);
        let forget = |crawl: &Crawl, items: &[&str]| {
            let daemon = crawl.start();
            let mut connection = crawl.connection();
            let () = connection.rpush("demo:forget", items).unwrap();
            crate::util::wait::wait_until(crate::util::wait::SOON, "forgotten", || {
                let keys = ["demo:forget", "urlseen:{demo:discovered}:forgetting"];
                connection.exists::<_, usize>(&keys).unwrap() == 0
            });
            crate::daemon::stop(daemon);
        };
        let url = |number: usize| format!("http://example.com/{number}");
        one.push(&[url(1), url(2), url(3), url(4)]);
        one.drain();
        other.push(&[url(1), url(2), url(5)]);
        other.drain();
        forget(&one, &[&url(1), &url(2), &url(3)]);
        forget(&other, &[&url(2)]);
        let c = one.server.folder().join("united").display().to_string();
        let (a, b) =
            (one.storage_dir().display().to_string(), other.storage_dir().display().to_string());
        let united = run("compare", &[&a, &b, "-o", &c]);
        assert_eq!(united.code(), Some(0), "{united:?}");
        let refused = run("compare", &[&a, &b, "-o", &key(&one.server, "united")]);
        let words =
            if kind == "native" { "4 fingerprints were forgotten" } else { "only in memory" };
        assert!(refused.stderr.contains(words), "{refused:?}");
        let [fresh, _] = crawls(&settings);
        let fresh = fresh.set(&format!("storage.dir={c}"));
        let all: Vec<String> = (1..=5).map(url).collect();
        fresh.push(&all);
        assert_eq!(fresh.drain().count("unseen"), unseen, "{kind}");
        fresh.push(&all);
        assert_eq!(fresh.drain().count("unseen"), 0, "{kind}");
    }
}
