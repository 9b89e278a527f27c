//! `urlseen replay`: it predicts exactly the results of a crawl, and changes nothing.

mod inputs;
mod suggestions;

use std::collections::BTreeMap;

use redis::Commands;
use serde_json::Value;

use crate::daemon::items::{Random, item, seeds};
use crate::daemon::{Crawl, Summary};
use crate::util::binary::{Output, urlseen};

/// Report that a replay with `--json` printed.
#[derive(Debug)]
struct Replayed {
    report: Value,
    code: Option<i32>,
}

impl Replayed {
    #[track_caller]
    fn of(output: &Output) -> Self {
        let report = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("no report ({error}): {output:?}"));
        Self { report, code: output.code() }
    }

    #[track_caller]
    fn count(&self, name: &str) -> usize {
        number(&self.report[name])
    }

    /// Returns the part of the report for a kind.
    #[track_caller]
    fn kind(&self, name: &str) -> &Value {
        let kinds = self.report["kinds"].as_array().unwrap();
        kinds.iter().find(|it| it["kind"] == name).unwrap_or_else(|| panic!("{kinds:?}"))
    }

    /// Returns the number of items, then of unseen, seen, unfiltered and rejected items.
    #[track_caller]
    fn counts(&self, kind: &str) -> (usize, [usize; 4]) {
        let lane = self.kind(kind);
        let rejected = self.count("rejected") + number(&lane["no_place"]);
        let unseen = number(&lane["unseen"]);
        (self.count("items"), [unseen, number(&lane["seen"]), self.count("unfiltered"), rejected])
    }
}

#[track_caller]
fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))).unwrap()
}

/// Returns every key with its value from `DUMP`.
fn dump(crawl: &Crawl) -> BTreeMap<String, Vec<u8>> {
    let mut connection = crawl.connection();
    let keys: Vec<String> = connection.keys("*").unwrap();
    let dump = |key: String| {
        let value = redis::cmd("DUMP").arg(&key).query(&mut connection).unwrap();
        (key, value)
    };
    keys.into_iter().map(dump).collect()
}

/// Makes `count` different URLs.
fn urls(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("http://example.com/{number}")).collect()
}

/// The daemon commits exactly the predicted items, and the replay changes nothing.
#[test]
fn the_daemon_judges_as_the_replay_predicted_with_every_kind() {
    let kinds: [&[&str]; 5] = [
        &["filter.kind=native", "filter.seed=7"],
        &["filter.kind=redisbloom"],
        &["filter.kind=pyrebloom", "filter.place=redis"],
        &["filter.kind=scrapy-redis-bloomfilter-block-cluster", "filter.place=redis"],
        &["filter.kind=scrapy-redis", "filter.place=redis"],
    ];
    let seed = seeds(&[21])[0];
    for settings in kinds {
        let mut crawl = Crawl::new();
        for setting in settings.iter().chain(&["filter.block_num=3", "source.take_from=right"]) {
            crawl = crawl.set(setting);
        }
        let mut random = Random::new(seed);
        let items: Vec<_> = (0..4000).map(|_| item(&mut random, 300).bytes).collect();
        crawl.push(&items);
        let before = dump(&crawl);
        let replayed = Replayed::of(&crawl.command("replay", &["--json"]).output());
        assert_eq!(dump(&crawl), before, "{settings:?}: nothing is changed");
        assert_eq!(replayed.code, Some(1), "some are rejected: {replayed:?}");
        let kind = settings[0].split_once('=').unwrap().1;
        let summary: Summary = crawl.drain();
        assert_eq!(replayed.counts(kind), summary.counts(), "{kind}, seed {seed}");
        assert_eq!(number(&replayed.kind(kind)["wrong"]), 0, "{replayed:?}");
        let key = &replayed.report["keys"][0];
        assert_eq!((&key["before"], &key["after"]), (&4000.into(), &4000.into()));
    }
}

/// The filter in Redis is far too small, so the daemon's scripts drop items wrongly. The replay
/// must predict the same items.
#[test]
fn wrong_drops_are_those_of_the_real_daemon() {
    const DISTINCT: usize = 1500;
    let cluster = "scrapy-redis-bloomfilter-block-cluster";
    for kind in ["pyrebloom", "scrapy-redis-bloomfilter", cluster] {
        let size = if kind == "pyrebloom" { "filter.error_rate=0.05" } else { "filter.bit=12" };
        let crawl = Crawl::new()
            .set("filter.place=redis")
            .set("filter.recent=1")
            .set(&format!("filter.kind={kind}"))
            .set(size)
            .set("source.batch=20")
            .set("filter.capacity=300");
        let items = [urls(DISTINCT), urls(DISTINCT)].concat();
        crawl.push(&items);
        let replayed = Replayed::of(&crawl.command("replay", &["--json"]).output());
        let summary: Summary = crawl.drain();
        assert_eq!(replayed.counts(kind), summary.counts(), "{kind}");
        let lane = replayed.kind(kind);
        let wrong = DISTINCT - number(&lane["unseen"]);
        assert_eq!(number(&lane["wrong"]), wrong, "{kind}");
        assert!(wrong > 100, "{kind}: {wrong}");
        let computed = lane["wrong_computed"].as_f64().unwrap();
        let deviation = 6.0 * computed.sqrt() + 1.0;
        assert!((wrong as f64 - computed).abs() < deviation, "{kind}: {wrong}, not {computed}");
        assert_eq!((replayed.count("new"), replayed.count("again")), (DISTINCT, DISTINCT));
    }
}

#[test]
fn all_kinds_judge_together_and_each_has_rows_and_a_curve() {
    let kinds = "native,imooc,pyrebloom,luw2007-bloomfilter,scrapy-redis-bloomfilter,\
                   block-cluster,redisbloom,scrapy-redis";
    let replay = |options: &[&str]| {
        let run = urlseen(["replay", "-", "--kinds", kinds].iter().chain(options));
        let run = run.stdin([urls(3000), urls(3000)].concat().join("\n"));
        let settings = ["filter.capacity=500", "filter.error_rate=0.1", "filter.bit=12"];
        let settings = settings.iter().chain(&["source.batch=100"]);
        let output = settings.fold(run, |run, setting| run.arg("--set").arg(setting)).output();
        assert_eq!(output.code(), Some(0), "{output:?}");
        output
    };
    let output = replay(&[]);
    for kind in kinds.split(',') {
        let rows = output.text().lines().filter(|line| line.contains(kind)).count();
        assert!(rows >= 2, "{kind}: {}", output.text());
    }
    let exact = output.text().lines().find(|line| line.starts_with("scrapy-redis ")).unwrap();
    let cells: Vec<_> = exact.split_whitespace().collect();
    assert_eq!(cells, ["scrapy-redis", "3,000", "3,000", "0", "0.00", "0"]);

    let replayed = Replayed::of(&replay(&["--json"]));
    let lanes = replayed.report["kinds"].as_array().unwrap();
    assert_eq!(lanes.len(), 8);
    for lane in lanes {
        let curve = lane["curve"].as_array().unwrap();
        let items: Vec<_> = curve.iter().map(|point| number(&point["items"])).collect();
        assert!(items.len() >= 60 && items.is_sorted() && items[0] <= 100, "{items:?}");
        let end = &curve[items.len() - 1];
        assert_eq!(number(&end["items"]), 6000, "{lane}");
        assert_eq!((number(&end["new"]), number(&end["again"])), (3000, 3000), "{lane}");
        assert_eq!((&end["wrong"], &end["expected"]), (&lane["wrong"], &lane["wrong_computed"]));
        assert_eq!(end["error_rate_now"], lane["error_rate_now"], "{lane}");
    }
}
