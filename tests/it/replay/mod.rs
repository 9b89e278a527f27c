//! `urlseen replay`: it predicts exactly the results of a crawl, and changes nothing.

mod inputs;
mod suggestions;

use std::collections::{BTreeMap, HashSet};

use redis::Commands;
use serde_json::Value;
use tempfile::TempDir;
use urlseen_core::filter::native::Native;
use urlseen_core::filter::redisbloom::Filter;
use urlseen_core::filter::{Capacity, ErrorRate, Seed, Sizing};
use urlseen_core::fingerprint::Fingerprint;

use crate::daemon::items::{Random, item, seeds};
use crate::daemon::{Crawl, Summary};
use crate::util::binary::{Output, urlseen};
use crate::util::sources::root;

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

/// Returns the fingerprints of the URLs.
fn fingerprints(urls: &[String]) -> Vec<Fingerprint> {
    let output = urlseen(["fingerprint"]).stdin(urls.join("\n") + "\n").output();
    output.text().lines().map(|line| Fingerprint::from_hex(line.as_bytes()).unwrap()).collect()
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

/// The model is an exact set of bit positions. A URL counts as seen if the set has all its
/// positions. The replay must count as many wrong drops as this model.
#[test]
fn wrong_drops_of_a_full_native_filter_are_those_of_a_set_of_positions() {
    const BATCH: usize = 50;
    let urls = urls(20_000);
    let sizing = Sizing::new(Capacity::new(3000).unwrap(), ErrorRate::new(0.01).unwrap());
    let native = Native::new(Seed::new(11), sizing.geometry);
    let (mut set, mut wrong) = (HashSet::new(), 0);
    for batch in fingerprints(&urls).chunks(BATCH) {
        let places = batch.iter().map(|fingerprint| {
            let key_hash = native.key_hash(fingerprint);
            native.positions(key_hash).map(|it| (key_hash.shard(), it)).collect::<Vec<_>>()
        });
        let places: Vec<_> = places.collect();
        let (seen, unseen): (Vec<_>, Vec<_>) =
            places.into_iter().partition(|key| key.iter().all(|place| set.contains(place)));
        wrong += seen.len();
        set.extend(unseen.into_iter().flatten());
    }
    let settings = ["capacity=3000", "error_rate=0.01", "seed=11"];
    let mut run = urlseen(["replay", "--json", "-", "--kinds", "native"]).stdin(urls.join("\n"));
    for setting in settings {
        run = run.arg("--set").arg(format!("filter.{setting}"));
    }
    let replayed = Replayed::of(&run.arg("--set").arg(format!("source.batch={BATCH}")).output());
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    let lane = replayed.kind("native");
    assert_eq!(number(&lane["wrong"]), wrong);
    assert!(wrong > 100, "{wrong}");
    assert_eq!(number(&lane["unseen"]), urls.len() - wrong);
    let computed = lane["wrong_computed"].as_f64().unwrap();
    assert!((wrong as f64 - computed).abs() < 3.0 * computed.sqrt(), "{wrong}, not {computed}");
    let full_after = number(&lane["full_after"]);
    assert!((3000..3200).contains(&full_after), "{full_after}");
}

#[test]
fn redisbloom_grows_and_errs_like_the_module() {
    let urls = urls(8000);
    let mut model = Filter::reserve(0.05, 200, 2, 1 << 24).unwrap();
    let fingerprints = fingerprints(&urls);
    let added = |it: &Fingerprint| model.add(it.to_string().as_bytes()).unwrap();
    let new = fingerprints.iter().map(added).filter(|&new| new).count();
    let replay = |more: &str| {
        let run = urlseen(["replay", "--json", "-", "--kinds", "redisbloom"]);
        let run = run.stdin(urls.join("\n")).arg("--set").arg("filter.capacity=200");
        let run = run.arg("--set").arg("filter.error_rate=0.05").arg("--set").arg(more);
        Replayed::of(&run.arg("--set").arg("source.batch=1").output())
    };
    let replayed = replay("filter.expansion=2");
    let lane = replayed.kind("redisbloom");
    assert_eq!((number(&lane["unseen"]), number(&lane["wrong"])), (new, urls.len() - new));
    assert_eq!((number(&lane["filter_bytes"]) as u64), model.bytes());
    // A full filter that cannot grow ends the replay, as it ends the daemon.
    let replayed = replay("filter.expansion=0");
    let lane = replayed.kind("redisbloom");
    assert!(lane["stopped"].as_str().unwrap().contains("200"), "{lane}");
    assert_eq!(number(&lane["unseen"]), 200, "{lane}");
    assert_eq!((replayed.count("items"), replayed.code), (8000, Some(0)));
}

#[test]
fn the_plot_of_a_healthy_crawl_shows_its_items_and_computed_rates() {
    let folder = TempDir::new().unwrap();
    let plot = |kinds: &str| {
        let path = folder.path().join("plot.svg");
        let run = urlseen(["replay", "-", "--kinds", kinds, "--plot"]).arg(&path);
        let run = run.arg("--set").arg("source.batch=100");
        let output = run.stdin([urls(3000), urls(3000)].concat().join("\n")).output();
        assert_eq!(output.code(), Some(0), "{output:?}");
        std::fs::read_to_string(&path).unwrap()
    };
    let svg = plot("native,exact");
    assert_eq!(svg.matches(">\n6k\n").count(), 2, "both plots have an axis of 6000 items: {svg}");
    let thin = svg.matches("<polyline fill=\"none\" opacity=\"0.6\"").count();
    assert_eq!(thin, 1, "the computed rate of native: {svg}");
    let svg = plot("exact");
    assert!(svg.contains("seen before") && !svg.contains("error rate"), "{svg}");
}

#[test]
fn all_kinds_judge_together_and_each_has_a_line_in_the_plot() {
    let folder = TempDir::new().unwrap();
    let plot = folder.path().join("plot.svg");
    let kinds = "native,imooc,pyrebloom,luw2007-bloomfilter,scrapy-redis-bloomfilter,\
                   block-cluster,redisbloom,scrapy-redis";
    let run = urlseen(["replay", "-", "--kinds", kinds, "--plot"]).arg(&plot);
    let run = run.stdin([urls(3000), urls(3000)].concat().join("\n"));
    let settings = ["filter.capacity=500", "filter.error_rate=0.1", "filter.bit=12"];
    let settings = settings.iter().chain(&["source.batch=100", "crawl.name=a<&b"]);
    let run = settings.fold(run, |run, setting| run.arg("--set").arg(setting));
    let output = run.output();
    assert_eq!(output.code(), Some(0), "{output:?}");
    for kind in kinds.split(',') {
        let rows = output.text().lines().filter(|line| line.contains(kind)).count();
        assert!(rows >= 2, "{kind}: {}", output.text());
    }
    let exact = output.text().lines().find(|line| line.starts_with("scrapy-redis ")).unwrap();
    let cells: Vec<_> = exact.split_whitespace().collect();
    assert_eq!(cells, ["scrapy-redis", "3,000", "3,000", "0", "0.00", "0"]);

    let svg = std::fs::read_to_string(&plot).unwrap();
    assert!(svg.contains(">\nnew\n") && svg.contains(">\nseen before\n"), "{svg}");
    // The plot does not draw a rate of 0, and names it only in the legend. A kind without wrong
    // drops has a counted rate of 0. The set has a computed rate of 0, too.
    let bold = svg.matches("stroke-width=\"2\" points=").count() - 2;
    let none = svg.matches("counted: 0, not drawn").count();
    assert_eq!(bold + none, 8, "{svg}");
    assert!(bold >= 5 && svg.contains("a&lt;&amp;b"), "{svg}");
    let parse = "import sys, xml.etree.ElementTree as tree; tree.parse(sys.argv[1])";
    let python = root().join(".venv/bin/python");
    let parsed = crate::util::binary::Run::of(python, ["-c", parse]).arg(&plot).output();
    assert_eq!(parsed.code(), Some(0), "{parsed:?}");
}
