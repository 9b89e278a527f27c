//! One process runs a crawl at a time.

use redis::Commands;
use rustix::process::Signal;

use super::{Crawl, LEASE, READY, SINK, stop, urls};
use crate::util::wait::{SOON, wait_until};

#[test]
fn a_second_daemon_on_the_same_source_is_told_who_runs_it() {
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
            .fold(crawl.run(&["--drain"]), |run, setting| run.arg("--set").arg(setting));
        let output = second.output();
        assert_eq!(output.code(), Some(3), "{output:?}");
        let process = format!("process {} on ", daemon.id());
        for words in ["crawl \"demo\"", process.as_str(), "since 20", "its lease ends in 1"] {
            assert!(output.stderr.contains(words), "no {words:?} in {}", output.stderr);
        }
        assert!(!output.stderr.contains(READY), "{output:?}");
    }
    assert_eq!(crawl.connection().get::<_, String>(LEASE).unwrap(), lease);
    crawl.push(&urls(0, 10));
    crawl.wait_for_sink(10);
    let first = stop(daemon);
    assert!(!first.stderr.contains("connected again"), "{first:?}");
    // Now nobody holds it any more.
    crawl.push(&urls(10, 10));
    assert_eq!(crawl.drain().count("unseen"), 10);
}

#[test]
fn a_crawl_of_another_source_on_the_same_server_is_not_in_the_way() {
    let crawl = Crawl::new();
    let _daemon = crawl.start();
    let other = crawl.run(&["--drain", "--set", "crawl.name=other"]).output();
    assert_eq!(other.code(), Some(0), "{other:?}");
}

#[test]
fn a_killed_daemon_keeps_its_lease_until_that_runs_out() {
    let crawl = Crawl::new();
    let mut daemon = crawl.start();
    daemon.signal(Signal::KILL);
    daemon.wait(SOON);
    let output = crawl.run(&["--drain"]).output();
    assert_eq!(output.code(), Some(3), "{output:?}");
    assert!(output.stderr.contains("if it is dead, its lease ends in 1"), "{output:?}");
    // Time passes.
    let left: i64 = crawl.connection().pttl(LEASE).unwrap();
    assert!((1..=15_000).contains(&left), "{left}");
    let () = crawl.connection().pexpire(LEASE, 1).unwrap();
    wait_until(SOON, "end of the lease", || !crawl.connection().exists::<_, bool>(LEASE).unwrap());
    assert_eq!(crawl.drain().ending(), "drained");
}

#[test]
fn an_idle_daemon_notices_that_its_lease_is_gone_and_takes_it_again() {
    let crawl = Crawl::new();
    let mut daemon = crawl.start();
    let () = crawl.connection().del(LEASE).unwrap();
    daemon.wait_for_line("the lease is not ours any more: it ran out", SOON);
    daemon.wait_for_line("connected again", SOON);
    assert!(crawl.connection().exists::<_, bool>(LEASE).unwrap());
    crawl.push(&urls(0, 10));
    crawl.wait_for_sink(10);
    stop(daemon);
}

#[test]
fn a_daemon_that_lost_its_lease_to_another_stops() {
    let crawl = Crawl::new();
    let first = crawl.start();
    let () = crawl.connection().del(LEASE).unwrap();
    let second = crawl.start();
    let output = first.output(SOON);
    assert_eq!(output.code(), Some(3), "{output:?}");
    let process = format!("process {} on ", second.id());
    assert!(output.stderr.contains(&process), "{output:?}");
    crawl.push(&urls(0, 10));
    crawl.wait_for_sink(10);
    assert_eq!(stop(second).count("unseen"), 10);
    assert_eq!(crawl.len(SINK), 10);
}

#[test]
fn a_lease_of_an_unknown_program_is_respected() {
    let crawl = Crawl::new();
    let () = crawl.connection().set(LEASE, "somebody").unwrap();
    let output = crawl.run(&["--drain"]).output();
    assert_eq!(output.code(), Some(3), "{output:?}");
    assert!(output.stderr.contains("a program other than urlseen"), "{output:?}");
    assert_eq!(crawl.connection().get::<_, String>(LEASE).unwrap(), "somebody");
}
