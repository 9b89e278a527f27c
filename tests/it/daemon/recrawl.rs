//! `filter.expire_after`: URLs pass again when their time is over.

use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use serde_json::Value;

use super::{Crawl, SINK, Summary, stop, urls};
use crate::util::binary::urlseen;
use crate::util::wait::{SOON, wait_until};

/// Time after which no URL passes again: five generations of a second each.
const SEEN: Duration = Duration::from_secs(5);

fn crawl() -> Crawl {
    Crawl::new()
        .set("filter.kind=two-choice")
        .set("filter.capacity=1000")
        .set("filter.expire_after=5s")
}

/// Pushes URLs again and again, until each one has passed `times` times.
#[track_caller]
fn push_until_passed(crawl: &Crawl, times: usize) {
    wait_until(SOON, "the URLs pass again", || {
        crawl.push(&urls(0, 100));
        sleep(Duration::from_millis(100));
        crawl.len(SINK) >= 100 * times
    });
}

#[test]
fn urls_pass_again_when_their_time_is_over_and_not_before() {
    let crawl = crawl();
    let daemon = crawl.start();
    for times in 1..3 {
        let started = Instant::now();
        crawl.push(&urls(0, 100));
        crawl.wait_for_sink(100 * times);
        // Being seen does not lengthen the time of a URL.
        push_until_passed(&crawl, times + 1);
        assert!(started.elapsed() >= SEEN, "after {:?}", started.elapsed());
    }
    let summary = stop(daemon);
    assert_eq!(summary.count("unseen"), crawl.len(SINK), "{summary:?}");
}

#[test]
fn an_idle_daemon_tells_when_the_next_generation_begins() {
    let without_source = crawl().set("source.kind=none").set("serve.listen=127.0.0.1:0");
    for crawl in [crawl(), without_source] {
        let mut daemon = crawl.run(&[]).start();
        let generations = || {
            let output = crawl.command("status", &["--json"]).output();
            let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            let generations = &status["filter"]["generations"];
            (generations["number"].as_u64(), generations["next_seconds"].as_f64())
        };
        wait_until(SOON, "the first generation", || generations().1.is_some());
        let first = generations().0;
        let day = Duration::from_hours(24).as_secs();
        assert!(first > Some(365 * day), "generations of a second, counted from 1970: {first:?}");
        wait_until(SOON, "two more generations", || {
            let (number, next) = generations();
            assert!((0.0..=1.0).contains(&next.unwrap()), "{next:?}");
            number >= first.map(|first| first + 2)
        });
        daemon.signal(Signal::TERM);
        assert_eq!(daemon.wait(SOON).code(), Some(0));
    }
}

/// Rule G2: the log and a snapshot have the generations.
#[test]
fn urls_pass_again_in_time_although_the_daemon_was_killed() {
    let crawl = crawl().set("storage.snapshot_bytes=4096");
    let started = Instant::now();
    crawl.push(&urls(0, 100));
    let mut daemon = crawl.start();
    crawl.wait_for_sink(100);
    for first in 1..4 {
        crawl.push(&urls(1000 * first, 300));
        crawl.wait_for_sink(100 + 300 * first);
    }
    daemon.signal(Signal::KILL);
    daemon.wait(SOON);
    let daemon = crawl.start();
    crawl.push(&urls(0, 100));
    crawl.push(&["https://example.com/last"]);
    crawl.wait_for_sink(1001);
    if started.elapsed() < SEEN {
        assert_eq!(crawl.len(SINK), 1001, "the killed daemon's URLs are still seen");
    }
    wait_until(SOON, "the URLs pass again", || {
        crawl.push(&urls(0, 100));
        sleep(Duration::from_millis(100));
        crawl.len(SINK) >= 1101
    });
    assert!(started.elapsed() >= SEEN, "after {:?}", started.elapsed());
    stop(daemon);
}

#[test]
fn other_kinds_do_not_expire_and_say_so() {
    let native = Crawl::new().set("filter.kind=native");
    let refused = native.set("filter.expire_after=30d").run(&["--drain"]).output();
    assert_eq!(refused.code(), Some(2), "{refused:?}");
    let words = ["filter.kind = \"two-choice\"", "filter.kind = \"exact\""];
    assert!(words.iter().all(|word| refused.stderr.contains(word)), "{refused:?}");
}

/// Items and rules have times of their own, also after a restart (rule G7). `catch-up` makes time
/// pass.
#[test]
fn pages_pass_again_after_their_own_time() {
    let crawl = Crawl::new().set("filter.kind=two-choice").set("filter.expire_after=30d");
    let file = crawl.server.folder().join("rules.toml");
    let rules = "[[expire]]\nhost = '^news\\.'\nexpire_after = '6d'\n\
                 [[expire]]\npath = '^/archive/'\nexpire_after = 'never'\n";
    std::fs::write(&file, rules).unwrap();
    let items = [
        "http://news.a/",
        r#"{"url": "http://a/ticker", "ttl": "12d"}"#,
        r#"{"url": "http://a/about", "lastmod": "2020-01-01"}"#,
        "http://a/archive/1",
    ];
    let run = |items: &[&str]| {
        crawl.push(items);
        let before = crawl.len(SINK);
        let run = crawl.run(&["--drain", "--json", "--config"]).arg(&file);
        let summary = Summary::of(run.output());
        assert_eq!(summary.count("rejected"), 0, "{summary:?}");
        crawl.list(SINK).split_off(before)
    };
    let expected = |places: &[usize]| -> Vec<Vec<u8>> {
        places.iter().map(|&place| items[place].as_bytes().to_vec()).collect()
    };
    let catch_up = |time: &str| {
        let run = urlseen(["storage", "catch-up", time, "--storage"]).arg(crawl.storage_dir());
        assert_eq!(run.output().code(), Some(0));
    };
    assert_eq!(run(&items), expected(&[0, 1, 2, 3]));
    for passed in [&[0][..], &[0, 1], &[0, 2]] {
        catch_up("12d");
        assert_eq!(run(&items), expected(passed));
    }
    // A page that has changed passes once.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let changed = &*format!(r#"{{"url": "http://a/about", "lastmod": {now}}}"#);
    assert_eq!(run(&[changed]), Vec::<Vec<u8>>::new(), "in the same generation");
    catch_up("6d");
    assert_eq!(run(&[changed, changed]), [changed.as_bytes()]);
    assert_eq!(run(&[changed]), Vec::<Vec<u8>>::new());
}
