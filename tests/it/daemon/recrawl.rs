//! `filter.expire_after`: URLs pass again when their time is over. `catch-up` makes time pass.

use std::time::Duration;

use rustix::process::Signal;

use super::{Crawl, urls};
use crate::util::binary::urlseen;
use crate::util::wait::{SOON, wait_until};

fn crawl() -> Crawl {
    Crawl::new().set("filter.kind=two-choice").set("filter.capacity=1000")
}

#[track_caller]
fn catch_up(crawl: &Crawl, time: &str) {
    let run = urlseen(["storage", "catch-up", time, "--storage"]).arg(crawl.storage_dir());
    assert_eq!(run.output().code(), Some(0));
}

/// A daemon follows the clock while it runs, also one without a source.
#[test]
fn an_idle_daemon_tells_when_the_next_generation_begins() {
    let second = || crawl().set("filter.expire_after=5s");
    let without_source = second().set("source.kind=none").set("serve.listen=127.0.0.1:0");
    for crawl in [second(), without_source] {
        let mut daemon = crawl.run(&[]).start();
        let generations = || {
            let generations = &crawl.status()["filter"]["generations"];
            (generations["number"].as_u64(), generations["next_seconds"].as_f64())
        };
        wait_until(SOON, "the first generation", || generations().1.is_some());
        let first = generations().0;
        let day = Duration::from_hours(24).as_secs();
        assert!(first > Some(365 * day), "generations of a second, counted from 1970: {first:?}");
        wait_until(SOON, "another generation", || {
            let (number, next) = generations();
            assert!((0.0..=1.0).contains(&next.unwrap()), "{next:?}");
            number > first
        });
        daemon.signal(Signal::TERM);
        assert_eq!(daemon.wait(SOON).code(), Some(0));
    }
}

/// Rule G2: the log and a snapshot have the generations.
#[test]
fn urls_pass_again_in_time_although_the_daemon_was_killed() {
    let crawl = crawl().set("filter.expire_after=30d").set("storage.snapshot_bytes=4096");
    let mut daemon = crawl.start();
    for first in 0..4 {
        crawl.push(&urls(300 * first, 300));
        crawl.wait_for_sink(300 * (first + 1));
    }
    daemon.signal(Signal::KILL);
    daemon.wait(SOON);
    let passed = |time| {
        catch_up(&crawl, time);
        crawl.push(&urls(0, 1200));
        crawl.drain().count("unseen")
    };
    // Being seen does not lengthen the time of a URL.
    assert_eq!(["24d", "12d", "24d", "12d"].map(passed), [0, 1200, 0, 1200]);
}
