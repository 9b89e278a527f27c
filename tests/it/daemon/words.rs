//! Messages of the daemon: errors of the configuration, the log, and the summary. None of them
//! shows a password.

use super::{Crawl, PASSWORD, stop, urls};
use crate::util::binary::Output;
use crate::util::wait::SOON;

#[track_caller]
fn assert_secret(output: &Output) {
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(!stdout.contains(PASSWORD) && !output.stderr.contains(PASSWORD), "{output:?}");
}

#[test]
fn a_password_is_not_shown_while_redis_is_away() {
    let mut crawl = Crawl::new().with_user("crawler").set("log.level=trace");
    let mut daemon = crawl.start();
    crawl.server.kill();
    daemon.wait_for_line("cannot reach Redis", SOON);
    daemon.signal(rustix::process::Signal::TERM);
    let output = daemon.output(SOON);
    assert_eq!(output.code(), Some(3), "{output:?}");
    assert_secret(&output);
}

#[test]
fn progress_is_logged_at_the_configured_interval() {
    let crawl = Crawl::new().set("log.progress=1s").set("sink.max_len=5").set("source.batch=5");
    crawl.push(&urls(0, 20));
    let mut daemon = crawl.start();
    daemon.wait_for_line("waiting", SOON);
    crawl.push(&urls(20, 7));
    let line = daemon.wait_for_line("15 waiting, filter 0.0 % full, error rate ", SOON);
    assert!(line.contains("INFO 5 items, 5 unseen, "), "{line}");
    // The second line has the length of the source, and reports no new item since the first line.
    daemon.wait_for_line("5 items, 5 unseen, 0/s, 22 waiting", SOON);
    stop(daemon);
}

#[test]
fn no_progress_is_logged_if_configured() {
    let crawl = Crawl::new().set("log.progress=0s").set("log.level=trace");
    let mut daemon = crawl.start();
    // Every timer has fired before the second wait for the source.
    let calls = || {
        let info = crawl.server.cli(&["info", "commandstats"]);
        let line = info.lines().find_map(|line| line.strip_prefix("cmdstat_blmove:calls="));
        line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
    };
    crate::util::wait::wait_until(SOON, "a second wait", || calls() >= 2);
    assert!(daemon.is_running());
    assert!(!stop(daemon).stderr.contains("% full"));
}
