//! Releases: each version goes on with the crawls of all earlier releases, and each place that
//! names the version names the same one.

use std::fs;
use std::path::{Path, PathBuf};

use redis::Commands;
use regex::Regex;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tempfile::TempDir;

use crate::tidy::report;
use crate::util::binary::{Run, urlseen};
use crate::util::redis::RedisServer;
use crate::util::sources::{pages, root};

/// Contents of a crawl of a release, as `scripts/vectors releases` recorded them.
#[derive(Deserialize)]
struct Expected {
    snapshots: usize,
    records: u64,
    seen: Vec<String>,
    unseen: Vec<String>,
    over_limit: Vec<String>,
}

/// Copy of a crawl of a release, on a Redis with the keys that the release left there.
struct Crawl {
    server: RedisServer,
    folder: TempDir,
    expected: Expected,
}

impl Crawl {
    /// Copies a crawl. If `is_set` is false, the copied configuration does not set the kind and the
    /// error rate of the filter.
    fn copy(from: &Path, is_set: bool) -> Self {
        let (server, folder) = (RedisServer::start(), TempDir::new().unwrap());
        let copied = Run::of("cp", ["-r"]).arg(from.join(".")).arg(folder.path()).output();
        assert_eq!(copied.code(), Some(0), "{copied:?}");
        let mut connection = server.connection();
        for command in read::<Vec<Vec<String>>>(&folder.path().join("redis.json")) {
            let () = redis::cmd(&command[0]).arg(&command[1..]).query(&mut connection).unwrap();
        }
        if !is_set {
            let path = folder.path().join("config.toml");
            let text = fs::read_to_string(&path).unwrap();
            let is_kept =
                |line: &&str| !["kind = ", "error_rate = "].iter().any(|it| line.starts_with(it));
            let lines: Vec<&str> = text.lines().filter(is_kept).collect();
            fs::write(&path, lines.join("\n")).unwrap();
        }
        let expected = read(&folder.path().join("expected.json"));
        Self { server, folder, expected }
    }

    /// Runs a command to its end. Returns its standard output.
    #[track_caller]
    fn run(&self, words: &[&str], input: &[String]) -> String {
        let run = urlseen(words)
            .arg("--config")
            .arg(self.folder.path().join("config.toml"))
            .arg("--set")
            .arg(format!("redis.url={}", self.server.url()))
            .arg("--set")
            .arg(format!("storage.dir={}", self.folder.path().join("storage").display()));
        let output = run.stdin(input.join("\n")).output();
        let text = output.text();
        assert_eq!(output.code(), Some(0), "{words:?} said:\n{text}{}", output.stderr);
        text.to_owned()
    }

    /// Lets the daemon judge items. Returns the numbers of items that were seen, unseen and
    /// over a limit, and of all items.
    #[track_caller]
    fn judge(&self, items: &[String]) -> [u64; 4] {
        let mut connection = self.server.connection();
        for item in items {
            let () = connection.rpush("demo:discovered", item).unwrap();
        }
        let summary = json(&self.run(&["run", "--drain", "--json"], &[]));
        ["seen", "unseen", "over_limit", "items"].map(|name| summary[name].as_u64().unwrap())
    }
}

#[track_caller]
fn read<T: DeserializeOwned>(path: &Path) -> T {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

#[test]
fn crawls_of_all_releases_go_on() {
    let releases = folders_in(&root().join("tests/data/releases"));
    assert!(!releases.is_empty(), "no release");
    for release in releases {
        let crawls = folders_in(&release);
        assert!(crawls.len() >= 4, "crawls are missing in {}", release.display());
        for crawl in crawls {
            println!("{}", crawl.display());
            for is_set in [true, false] {
                check(&Crawl::copy(&crawl, is_set));
            }
        }
    }
}

fn check(crawl: &Crawl) {
    let Expected { snapshots, records, seen, unseen, over_limit } = &crawl.expected;
    let shown = json(&crawl.run(&["storage", "show", "--json"], &[]));
    let logs = shown["log"].as_array().unwrap();
    let shown_records: u64 = logs.iter().map(|log| log["records"].as_u64().unwrap()).sum();
    let shown_snapshots = shown["snapshots"].as_array().unwrap().len();
    assert_eq!((shown_snapshots, shown_records), (*snapshots, *records), "{shown}");
    assert_eq!(shown["damages"], Value::Array(Vec::new()));
    crawl.run(&["config", "check"], &[]);
    crawl.run(&["check", "-"], seen);

    let count = |items: &[String]| u64::try_from(items.len()).unwrap();
    assert_eq!(crawl.judge(seen), [count(seen), 0, 0, count(seen)]);
    assert_eq!(crawl.judge(unseen), [0, count(unseen), 0, count(unseen)]);
    assert_eq!(crawl.judge(over_limit), [0, 0, count(over_limit), count(over_limit)]);
    // The present version reads its own continuation of the folder, too.
    assert_eq!(crawl.judge(unseen), [count(unseen), 0, 0, count(unseen)]);
    assert_eq!(crawl.server.connection().llen("demo:unseen"), Ok(unseen.len()));
}

/// Pages and packages name the version, so that readers can copy their commands.
/// `PLACES` of `scripts/release` changes these places.
#[test]
fn every_place_names_the_same_version() {
    let version = env!("CARGO_PKG_VERSION");
    let named = Regex::new(r"\burlseen[_:](\d+\.\d+\.\d+)").unwrap();
    let mut texts: Vec<_> = pages().into_iter().map(|page| (page.path, page.text)).collect();
    let manifest = "packaging/kubernetes.yaml";
    texts.push((manifest.to_owned(), fs::read_to_string(root().join(manifest)).unwrap()));
    let places = texts.iter().flat_map(|(path, text)| {
        named.captures_iter(text).map(move |found| (path.as_str(), found[1].to_owned()))
    });
    let project = "integrations/scrapy/pyproject.toml";
    let scrapy: toml::Table = fs::read_to_string(root().join(project)).unwrap().parse().unwrap();
    let scrapy = scrapy["project"]["version"].as_str().unwrap().to_owned();
    let places = places.chain([(project, scrapy)]).collect::<Vec<_>>();
    assert!(places.len() > 3, "few places name the version: {places:?}");
    let other = places.iter().filter(|(_, named)| named != version);
    report(other.map(|(path, named)| format!("{path} names {named}, the version is {version}")));
}
