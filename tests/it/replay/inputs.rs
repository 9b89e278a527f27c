//! Inputs of a replay, and its refusals.

use std::io::Write;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use redis::Commands;
use rustix::process::Signal;
use tempfile::TempDir;

use super::{Replayed, dump, fingerprints, urls};
use crate::daemon::Crawl;
use crate::pickles::vectors;
use crate::util::binary::{Run, urlseen};
use crate::util::wait::{SOON, wait_until};

/// Replays the data of scrapy-redis in Redis, as a user who has only read permissions.
#[test]
fn a_read_only_user_is_enough_for_a_running_scrapy_redis_crawl() {
    let crawl = Crawl::new();
    let mut connection = crawl.connection();
    let (mut read, mut unfiltered, mut refused) = (std::collections::BTreeSet::new(), 0, 0);
    let mut pickles = std::collections::BTreeMap::new();
    for vector in vectors() {
        pickles.insert(vector.pickle(), vector);
    }
    for (score, (pickle, vector)) in pickles.iter().enumerate() {
        let () = connection.zadd("demo:requests", pickle, score).unwrap();
        match (&vector.reason, vector.unfiltered) {
            (Some(_), _) => refused += 1,
            (None, true) => unfiltered += 1,
            (None, false) => drop(read.insert(vector.fingerprints["scrapy-redis"].to_string())),
        }
    }
    let seen: Vec<String> = read.iter().step_by(2).map(|it| it.trim_matches('"').into()).collect();
    let () = connection.sadd("demo:dupefilter", &seen).unwrap();
    crawl.server.cli(&["acl", "setuser", "reader", "on", ">pw", "~*", "-@all", "+@read"]);
    let before = dump(&crawl);
    let replay = |arguments: &[&str]| {
        let run = urlseen(["replay", "--json", "--set", "fingerprint.algorithm=scrapy-redis"]);
        let run = run.env("URLSEEN_REDIS__URL", crawl.server.url_as("reader", "pw"));
        Replayed::of(arguments.iter().fold(run, Run::arg).output())
    };
    let queue = replay(&["--key", "demo:requests", "--item", "pickle"]);
    let items = pickles.len();
    let again = items - refused - unfiltered - read.len();
    let expected = (items, [read.len(), again, unfiltered, refused]);
    assert_eq!(queue.counts("two-choice"), expected, "{queue:?}");
    assert_eq!(queue.report["keys"][0]["type"], "zset");
    assert_eq!(queue.report["forms"]["pickle"], items);
    // The dupefilter has every second fingerprint. The items with these fingerprints are seen.
    let queue =
        replay(&["--key", "demo:requests", "--item", "pickle", "--seen", "demo:dupefilter"]);
    assert_eq!(queue.count("given"), seen.len());
    assert_eq!(queue.count("new"), read.len() - seen.len());
    assert_eq!(queue.counts("two-choice").1[0], read.len() - seen.len());
    // The replay reads the dupefilter twice. Its fingerprints are new the first time, and seen the
    // second time.
    let set = replay(&["--key", "demo:dupefilter", "--key", "demo:dupefilter"]);
    assert_eq!((set.count("new"), set.count("again")), (seen.len(), seen.len()));
    assert_eq!(set.report["keys"][1]["read"], seen.len());
    assert_eq!(dump(&crawl), before);
    let stats = crawl.server.cli(&["acl", "log"]);
    assert!(!stats.contains("fingerprint"), "{stats}");
}

#[test]
fn lists_are_read_in_pages_and_in_the_order_of_taking() {
    let crawl = Crawl::new().set("source.take_from=right");
    // The last item is taken first, so it is the first refused item.
    let long = format!("/{}", "x".repeat(3 << 20));
    let items: Vec<String> = urls(25_000).into_iter().chain([long, "/last".to_owned()]).collect();
    crawl.push(&items);
    let replayed = Replayed::of(crawl.command("replay", &["--json"]).output());
    assert_eq!(replayed.count("items"), 25_002);
    let rejects = replayed.report["rejects"].as_array().unwrap();
    assert_eq!(rejects.len(), 1, "{rejects:?}");
    assert_eq!((&rejects[0]["items"], &rejects[0]["item"]), (&2.into(), &"/last".into()));
    assert_eq!(rejects[0]["place"], "demo:discovered, item 1");
    let some = crawl.command("replay", &["--json", "--count", "20000"]).output();
    let some = Replayed::of(some);
    assert_eq!((some.count("items"), some.count("new")), (20_000, 19_998));
    assert_eq!(some.report["keys"][0]["read"], 20_000);
}

#[test]
fn entries_of_a_stream_have_their_items_in_a_field() {
    let crawl = Crawl::new();
    let mut connection = crawl.connection();
    let mut add = |fields: &[&str]| {
        let () =
            redis::cmd("XADD").arg("links").arg("*").arg(fields).query(&mut connection).unwrap();
    };
    for url in urls(2500) {
        add(&["other", "x", "url", &url]);
    }
    add(&["other", "x"]);
    let output = crawl.command("replay", &["--json", "--key", "links", "--field", "url"]).output();
    let replayed = Replayed::of(output);
    assert_eq!((replayed.count("items"), replayed.count("new")), (2500, 2500));
    assert_eq!((replayed.count("without_field"), replayed.code), (1, Some(1)));
    assert_eq!(replayed.report["keys"][0]["after"], 2501);
}

/// Producers push and crawlers pop during the replay.
#[test]
fn a_list_that_changes_during_the_replay_is_reported() {
    let crawl = Crawl::new();
    crawl.push(&urls(100_000));
    let ended = Arc::new(AtomicBool::new(false));
    let mut connection = crawl.connection();
    let moving = thread::spawn({
        let ended = Arc::clone(&ended);
        move || {
            while !ended.load(Ordering::Relaxed) {
                let () = redis::pipe()
                    .cmd("LPOP")
                    .arg("demo:discovered")
                    .arg(3)
                    .ignore()
                    .cmd("RPUSH")
                    .arg("demo:discovered")
                    .arg("http://a/")
                    .ignore()
                    .query(&mut connection)
                    .unwrap();
            }
        }
    });
    wait_until(SOON, "a list that moves", || {
        crawl.server.cli(&["llen", "demo:discovered"]).parse::<u32>().unwrap() < 100_000
    });
    let output = crawl.command("replay", &["--json"]).output();
    ended.store(true, Ordering::Relaxed);
    moving.join().unwrap();
    let replayed = Replayed::of(output);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    let key = &replayed.report["keys"][0];
    let number = |name: &str| key[name].as_u64().unwrap();
    assert!(number("after") < number("before") && number("read") > 0, "{key}");
    assert!(number("read") <= number("before"), "{key}");
}

#[test]
fn files_of_every_format_are_judged_after_the_seen_fingerprints() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let urls = urls(1000);
    let json: String = urls[500..].iter().map(|url| format!("{{\"url\": \"{url}\"}}\n")).collect();
    std::fs::write(path("some.txt"), urls[..600].join("\n")).unwrap();
    std::fs::write(path("more.zst"), zstd::encode_all(json.as_bytes(), 1).unwrap()).unwrap();
    let digests = fingerprints(&urls[..100]);
    let hex: String = digests[..60].iter().map(|it| format!("{it}\n")).collect();
    std::fs::write(path("seen.txt"), hex + "nothing\n").unwrap();
    let frames = digests[50..].iter().flat_map(|it| [&[0, 20][..], it.as_bytes()].concat());
    std::fs::write(path("requests.seen"), frames.collect::<Vec<u8>>()).unwrap();
    let names = ["some.txt", "more.zst", "--seen", "seen.txt", "--seen", "requests.seen"];
    let run = urlseen(["replay", "--json", "--kinds", "native,pyrebloom"]).dir(folder.path());
    let replayed = Replayed::of(names.iter().fold(run, Run::arg).output());
    assert_eq!(replayed.report["forms"], serde_json::json!({ "json": 500, "url": 600 }));
    assert_eq!((replayed.count("given"), replayed.count("given_bad")), (100, 1));
    assert_eq!((replayed.count("new"), replayed.count("again")), (900, 200));
    for kind in ["native", "pyrebloom"] {
        assert_eq!(replayed.counts(kind), (1100, [900, 200, 0, 0]));
        assert_eq!(replayed.kind(kind)["keys"], 1000);
    }
    assert_eq!(replayed.code, Some(1), "a line of a --seen file is no fingerprint");
    assert!(replayed.stderr.contains("seen.txt, line 61"), "{}", replayed.stderr);
}

#[test]
fn items_that_match_a_rule_pass_in_a_replay() {
    let folder = TempDir::new().unwrap();
    let rule = "[[pass]]\nname = \"lists\"\npath = '^/list/'\n";
    std::fs::write(folder.path().join("config.toml"), rule).unwrap();
    let run = urlseen(["replay", "--json", "-"]).dir(folder.path());
    let lines = "http://a/list/1\nhttp://a/list/1\nhttp://a/1\nhttp://a/1\n";
    let replayed = Replayed::of(run.stdin(lines).output());
    assert_eq!(replayed.counts("two-choice"), (4, [1, 1, 2, 0]));
    let expected =
        serde_json::json!({ "rule": "lists", "items": 2, "examples": ["http://a/list/1"] });
    assert_eq!(replayed.report["passed"][0], expected);
}

#[test]
fn items_that_match_a_drop_rule_are_dropped_in_a_replay() {
    let folder = TempDir::new().unwrap();
    let rule = "[[drop]]\nscheme = '^mailto$'\n[[drop]]\npath = '^/list/'\n";
    std::fs::write(folder.path().join("config.toml"), rule).unwrap();
    let lines = "mailto:a\nhttp://a/list/1\nhttp://a/1\nmailto:b\n";
    let replay = |arguments: &[&str]| {
        urlseen(arguments.iter().copied()).dir(folder.path()).stdin(lines).output()
    };
    let replayed = Replayed::of(replay(&["replay", "--json", "-"]));
    assert_eq!(replayed.counts("two-choice"), (4, [1, 0, 0, 0]));
    assert_eq!(replayed.count("dropped"), 3);
    let rules = &replayed.report["dropped_by_rule"];
    let named = |number: usize| (&rules[number]["rule"], &rules[number]["items"]);
    assert_eq!(named(0), (&"scheme = '^mailto$'".into(), &2.into()));
    assert_eq!(named(1), (&"path = '^/list/'".into(), &1.into()));
    let table = replay(&["replay", "-"]);
    let words = "1   of these by the rule \"path = '^/list/'\"\n";
    assert!(table.text().contains(words), "{table:?}");
    assert!(table.text().contains("                http://a/list/1\n"), "{table:?}");
}

#[test]
fn links_that_rules_merge_are_counted_by_rule() {
    let folder = TempDir::new().unwrap();
    let rules = "[fingerprint]\ndrop_tracking = '2026-11'\n[[same]]\ndrop_params = ['sid']\n\
                 [[same]]\nhost = '^(www\\.)?a'\nfold = ['www', 'index']\n";
    std::fs::write(folder.path().join("config.toml"), rules).unwrap();
    let lines = "http://a.x/\nhttp://a.x/\nhttp://a.x/?sid=1\nhttp://www.a.x/index.html?sid=1\n\
                 http://a.x/?sid=1\nhttp://b.x/?gclid=1\nhttp://b.x/?gclid=2\n\
                 http://b.x/index.html\n";
    let replay = |arguments: &[&str]| {
        urlseen(arguments.iter().copied()).dir(folder.path()).stdin(lines).output()
    };
    let replayed = Replayed::of(replay(&["replay", "--json", "-"]));
    assert_eq!(replayed.counts("two-choice"), (8, [3, 5, 0, 0]));
    // The second and the fifth link were seen without the rules, too.
    assert_eq!(replayed.count("merged"), 3);
    let expected = serde_json::json!([
        { "rule": "[[same]] 1", "items": 2,
          "examples": ["http://a.x/?sid=1", "http://www.a.x/index.html?sid=1"] },
        { "rule": r"[[same]] 2: host = '^(www\.)?a'", "items": 1,
          "examples": ["http://www.a.x/index.html?sid=1"] },
        { "rule": "fingerprint.drop_tracking", "items": 1, "examples": ["http://b.x/?gclid=2"] },
    ]);
    let mut found = replayed.report["merged_by_rule"].clone();
    let first = found[0]["examples"].as_array_mut().unwrap();
    first.sort_by_key(ToString::to_string);
    assert_eq!(found, expected);
    let table = replay(&["replay", "-"]);
    for line in [
        "   3   seen only by rules [[same]]\n",
        "1   of these by the rule \"fingerprint.drop_tracking\"\n",
    ] {
        assert!(table.text().contains(line), "{table:?}");
    }
}

#[test]
fn a_rule_has_ten_different_examples_that_are_the_same_each_time() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("config.toml"), "[[drop]]\nscheme = '^tel$'\n").unwrap();
    let lines: String = (0..500).map(|number| format!("tel:{}\n", number % 100)).collect();
    let examples = || {
        let run = urlseen(["replay", "--json", "-"]).dir(folder.path()).stdin(&*lines);
        let report = Replayed::of(run.output()).report;
        let examples = report["dropped_by_rule"][0]["examples"].as_array().unwrap().clone();
        examples.iter().map(|it| it.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = examples();
    let different: std::collections::BTreeSet<_> = first.iter().collect();
    assert_eq!((first.len(), different.len()), (10, 10), "{first:?}");
    assert!(first.iter().any(|it| it.len() > "tel:9".len()), "not the first ten: {first:?}");
    assert_eq!(examples(), first);
}

/// Stops a replay in the middle of endless input.
#[test]
fn a_stopped_replay_reports_its_items_so_far() {
    let folder = TempDir::new().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let replay = urlseen(["replay", "--json"]).arg(&pipe).start();
    let written = Arc::new(AtomicBool::new(false));
    let writing = thread::spawn({
        let (written, pipe) = (Arc::clone(&written), pipe.clone());
        move || {
            let mut pipe = std::fs::File::create(pipe).unwrap();
            let lines = urls(20_000).join("\n") + "\n";
            // The write fails when the replay reads no more.
            for _ in 0.. {
                if pipe.write_all(lines.as_bytes()).is_err() {
                    return;
                }
                written.store(true, Ordering::Relaxed);
            }
        }
    });
    wait_until(SOON, "a pipe that is read", || written.load(Ordering::Relaxed));
    replay.signal(Signal::INT);
    let output = replay.output(SOON);
    writing.join().unwrap();
    assert!(output.stderr.contains("stopped: the report covers the items so far"), "{output:?}");
    let replayed = Replayed::of(output);
    assert_eq!((replayed.report["ending"].as_str(), replayed.code), (Some("stopped"), Some(0)));
    let items = replayed.count("items");
    assert!(items > 0 && items == replayed.count("new") + replayed.count("again"), "{items}");
}

#[test]
fn input_that_cannot_be_replayed_is_refused_with_the_remedy() {
    let crawl = Crawl::new();
    crawl.server.cli(&["set", "text", "x"]);
    let folder = TempDir::new().unwrap();
    let nowhere = folder.path().join("no/plot.svg");
    let nowhere = nowhere.to_str().unwrap();
    for (arguments, code, words) in [
        (&[][..], 3, "there is no key demo:discovered at"),
        (&["--key", "text"], 3, "the key text holds a string"),
        (&["no-such-file"], 3, "cannot open no-such-file"),
        (&["-", "--seen", "demo:dupefilter"], 3, "there is no key demo:dupefilter at"),
        (&["-", "--key", "a"], 2, "cannot be used with"),
        (&["-", "--kinds", "native,bloom"], 2, "\"bloom\" is not known"),
        (&["-", "--item", "pickle"], 2, "a pickle can contain line feeds"),
        (
            &["-", "--kinds", "native", "--set", "filter.capacity=1e12"],
            3,
            "this does not fit: the filters of the",
        ),
        (&["-", "--plot", nowhere], 3, "cannot be written: No such file"),
        (&["-", "--kinds", "pyrebloom", "--set", "filter.capacity=1e10"], 2, "at most 4294967295"),
    ] {
        let output = crawl.command("replay", arguments).stdin("").output();
        assert_eq!(output.code(), Some(code), "{arguments:?}: {output:?}");
        assert!(output.stderr.contains(words), "{arguments:?}: {}", output.stderr);
        assert!(output.stdout.is_empty(), "{output:?}");
    }
    // If a file cannot be read, the report still covers the files before it.
    std::fs::write(folder.path().join("good"), "http://a/\n").unwrap();
    let run = crawl.command("replay", &["--json", "good", "bad"]).dir(folder.path());
    let output = run.output();
    assert!(output.stderr.contains("ended early") && output.stderr.contains("open bad"));
    let replayed = Replayed::of(output);
    assert_eq!((replayed.count("items"), replayed.code), (1, Some(3)));
    assert_eq!(replayed.report["ending"], "failed");
}
