//! Inputs of a replay, and its refusals.

use std::io::Write;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use redis::Commands;
use rustix::process::Signal;
use tempfile::TempDir;

use super::{Replayed, dump, urls};
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
        Replayed::of(&arguments.iter().fold(run, Run::arg).output())
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
    let replayed = Replayed::of(&crawl.command("replay", &["--json"]).output());
    assert_eq!(replayed.count("items"), 25_002);
    let rejects = replayed.report["rejects"].as_array().unwrap();
    assert_eq!(rejects.len(), 1, "{rejects:?}");
    assert_eq!((&rejects[0]["items"], &rejects[0]["item"]), (&2.into(), &"/last".into()));
    assert_eq!(rejects[0]["place"], "demo:discovered, item 1");
    let some = crawl.command("replay", &["--json", "--count", "20000"]).output();
    let some = Replayed::of(&some);
    assert_eq!((some.count("items"), some.count("new")), (20_000, 19_998));
    assert_eq!(some.report["keys"][0]["read"], 20_000);
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
    let replayed = Replayed::of(&output);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    let key = &replayed.report["keys"][0];
    let number = |name: &str| key[name].as_u64().unwrap();
    assert!(number("after") < number("before") && number("read") > 0, "{key}");
    assert!(number("read") <= number("before"), "{key}");
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
    let replayed = Replayed::of(&output);
    assert_eq!((replayed.report["ending"].as_str(), replayed.code), (Some("stopped"), Some(0)));
    let items = replayed.count("items");
    assert!(items > 0 && items == replayed.count("new") + replayed.count("again"), "{items}");
}
