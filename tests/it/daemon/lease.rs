//! The lease: only one process runs a crawl at a time.

use redis::Commands;
use rustix::process::Signal;

use super::{Crawl, LEASE, READY, SINK, stop, stop_process, urls};
use crate::util::wait::SOON;

/// Options of a run with another storage folder, so that the lock of the first daemon's folder does
/// not stop the run.
const ELSEWHERE: &[&str] = &["--drain", "--set", "storage.dir=elsewhere"];

#[test]
fn a_second_daemon_on_the_same_source_names_the_first() {
    let crawl = Crawl::new();
    let daemon = crawl.start();
    let lease: String = crawl.connection().get(LEASE).unwrap();
    for settings in [
        &[][..],
        &["crawl.name=other", "source.key=demo:discovered"],
        &["sink.key=elsewhere", "source.take_from=right"],
    ] {
        let second = settings
            .iter()
            .fold(crawl.run(ELSEWHERE), |run, setting| run.arg("--set").arg(setting));
        let output = second.output();
        assert_eq!(output.code(), Some(3), "{output:?}");
        let process = format!("process {} on ", daemon.id());
        for words in ["crawl \"demo\"", process.as_str(), "since 20", "its lease ends in 1"] {
            assert!(output.stderr.contains(words), "no {words:?} in {}", output.stderr);
        }
        assert!(!output.stderr.contains(READY), "{output:?}");
    }
    assert_eq!(crawl.connection().get::<_, String>(LEASE).unwrap(), lease);
    // A crawl of another source has its own lease.
    let other = crawl.run(ELSEWHERE).arg("--set").arg("crawl.name=other").output();
    assert_eq!(other.code(), Some(0), "{other:?}");
    crawl.push(&urls(0, 10));
    crawl.wait_for_sink(10);
    let first = stop(daemon);
    assert!(!first.stderr.contains("connected again"), "{first:?}");
    // The lease is free now.
    crawl.push(&urls(10, 10));
    assert_eq!(crawl.drain().count("unseen"), 10);
}

/// Point 3 of ARCHITECTURE.md: Redis refuses commands under an old token.
#[test]
fn a_daemon_that_was_paused_past_its_lease_commits_nothing_under_it() {
    let crawl = Crawl::new().set("source.batch=10");
    let items = urls(0, 10_000);
    crawl.push(&items);
    let daemon = crawl.start();
    crawl.wait_for_sink(100);
    stop_process(&daemon);
    let mut connection = crawl.connection();
    let () = connection.set(LEASE, "another program").unwrap();
    // Redis executes commands one after the other. So it has now executed all commands that the
    // paused daemon had sent.
    let before: usize = connection.llen(SINK).unwrap();
    daemon.signal(Signal::CONT);
    let output = daemon.output(SOON);
    assert_eq!(output.code(), Some(3), "{output:?}");
    assert!(output.stderr.contains("a program other than urlseen"), "{output:?}");
    assert_eq!(crawl.len(SINK), before);
    // A lease of an unknown program is respected.
    assert_eq!(crawl.run(&["--drain"]).output().code(), Some(3));
    assert_eq!(connection.get::<_, String>(LEASE).unwrap(), "another program");
    let () = connection.del(LEASE).unwrap();
    crawl.drain();
    let expected: Vec<_> = items.into_iter().map(String::into_bytes).collect();
    assert!(crawl.list(SINK) == expected, "{}", crawl.len(SINK));
}

#[test]
fn a_daemon_that_stands_by_takes_over_when_the_other_is_killed() {
    let crawl = Crawl::new();
    let mut first = crawl.start();
    let mut asked_to_end = crawl.run(&["--standby"]).start();
    asked_to_end.wait_for_line("standing by", SOON);
    asked_to_end.signal(Signal::TERM);
    assert_eq!(asked_to_end.output(SOON).code(), Some(0));
    let mut second = crawl.run(&["--standby", "--json"]).start();
    let line = second.wait_for_line("standing by: waiting for the lock of", SOON);
    assert!(line.contains(&format!("process {} on ", first.id())), "{line}");
    crawl.push(&urls(0, 10));
    crawl.wait_for_sink(10);
    // A stopped process keeps the lock.
    stop_process(&first);
    let () = crawl.connection().del(LEASE).unwrap();
    first.signal(Signal::KILL);
    first.wait(SOON);
    second.wait_for_line(READY, SOON);
    crawl.push(&urls(0, 20));
    crawl.wait_for_sink(20);
    assert_eq!(stop(second).count("unseen"), 10);
    assert_eq!(crawl.len(SINK), 20);
}

#[test]
fn a_daemon_with_a_foreign_folder_does_not_stand_by() {
    let crawl = Crawl::new();
    let first = crawl.start();
    let elsewhere = |setting: &str| {
        let arguments = ["--standby", "--json", "--set", "storage.dir=elsewhere", "--set", setting];
        crawl.run(&arguments).start()
    };
    // Before the first commit, any folder can become the folder of the crawl.
    let mut early = elsewhere("storage.on_rollback=stop");
    early.wait_for_line("standing by: waiting for the lease", SOON);
    crawl.push(&urls(0, 10));
    crawl.wait_for_sink(10);
    let late = elsewhere("storage.on_rollback=stop");
    for standby in [early, late] {
        let output = standby.output(SOON);
        assert_eq!(output.code(), Some(3), "{output:?}");
        for words in ["this daemon cannot stand by", "Redis stands at batch ", "elsewhere is new"] {
            assert!(output.stderr.contains(words), "no {words:?} in {}", output.stderr);
        }
    }
    // With `emit-again`, a daemon can stand by with any folder, because it would start with an
    // empty filter.
    let mut empty = elsewhere("storage.on_rollback=emit-again");
    empty.wait_for_line("standing by: waiting for the lease", SOON);
    empty.signal(Signal::TERM);
    assert_eq!(empty.output(SOON).code(), Some(0));
    // A folder of the same crawl may belong to another filter, for example after a reset.
    stop(first);
    let other = Crawl::new();
    other.push(&urls(0, 10));
    other.drain();
    let _first = crawl.start();
    let dir = format!("storage.dir={}", other.storage_dir().display());
    let output = crawl.run(&["--standby", "--set", &dir]).output();
    assert_eq!(output.code(), Some(3), "{output:?}");
    assert!(output.stderr.contains("this daemon cannot stand by"), "{output:?}");
    assert!(output.stderr.contains("belongs to the filter"), "{output:?}");
}
