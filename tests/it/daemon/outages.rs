//! Outages of Redis: the server is down, or has a temporary error. The daemon names the error,
//! waits, and continues when Redis is back.

use std::net::TcpListener;

use rustix::process::Signal;

use super::{Bytes, Crawl, SINK, stop, stop_process, urls};
use crate::util::binary::{Daemon, urlseen};
use crate::util::redis::free_port;
use crate::util::wait::{SOON, wait_until};

/// Words near the end of a log line about a failed attempt to use Redis. The length of the pause
/// follows them.
const AGAIN: &str = "Trying again in";

/// Waits until the daemon has logged `words` a few times since its first `from` bytes. Checks that
/// the pauses between its attempts grow.
#[track_caller]
fn wait_for_attempts(daemon: &Daemon, from: usize, words: &str) {
    let again = || -> Vec<String> {
        let said = daemon.stderr();
        said[from..].lines().filter(|line| line.contains(AGAIN)).map(str::to_owned).collect()
    };
    let pause = |line: &String| -> Option<u64> {
        line.split_once(AGAIN)?.1.trim_end_matches(" ms").trim().parse().ok()
    };
    // The first pause has at most 50 milliseconds. One of the next pauses must be longer.
    wait_until(SOON, words, || again().iter().skip(1).filter_map(pause).any(|wait| wait > 50));
    let again = again();
    assert!(again.len() < 20, "{again:?}");
    for line in &again[1..] {
        assert!(line.contains(words) && line.contains("WARN"), "not {words:?}: {line}");
    }
}

/// Crawl with its running daemon.
struct Running {
    crawl: Crawl,
    daemon: Daemon,
    pushed: usize,
}

impl Running {
    fn start(crawl: Crawl) -> Self {
        let crawl = crawl.set("source.batch=3").set("log.level=debug");
        Self { daemon: crawl.start(), crawl, pushed: 0 }
    }

    fn cli(&self, command: &str) -> String {
        self.crawl.server.cli(&command.split(' ').collect::<Vec<_>>())
    }

    /// Begins a fault of Redis, and ends it when the daemon has noticed it. Then checks that each
    /// item is emitted once.
    fn outlast(&mut self, words: &str, begin: impl FnOnce(&Self), end: impl FnOnce(&Self)) {
        self.crawl.wait_until_idle();
        // The daemon is stopped, so that it claims no item before the fault begins.
        stop_process(&self.daemon);
        self.crawl.push(&urls(self.pushed.saturating_sub(10), 30));
        self.pushed = self.pushed.saturating_sub(10) + 30;
        begin(self);
        let from = self.daemon.stderr().len();
        self.daemon.signal(Signal::CONT);
        wait_for_attempts(&self.daemon, from, words);
        end(self);
        wait_until(SOON, "connected again", || {
            self.daemon.stderr()[from..].contains("connected again")
        });
        self.crawl.wait_for_sink(self.pushed);
        self.crawl.wait_until_idle();
        let expected: Vec<Bytes> =
            urls(0, self.pushed).into_iter().map(String::into_bytes).collect();
        assert_eq!(self.crawl.list(SINK), expected);
    }
}

#[test]
fn the_daemon_waits_for_the_end_of_a_temporary_error() {
    let mut running = Running::start(Crawl::new());
    let replica = format!("replicaof 127.0.0.1 {}", free_port());
    for (words, begin, end) in [
        (
            "Redis has reached its maxmemory",
            &["config set maxmemory 1"][..],
            "config set maxmemory 0",
        ),
        (
            "fewer replicas are connected",
            &["config set min-replicas-to-write 1"],
            "config set min-replicas-to-write 0",
        ),
        ("has become a read-only replica", &[&replica], "replicaof no one"),
        (
            "a replica that has lost its primary",
            &["config set replica-serve-stale-data no", &replica],
            "replicaof no one",
        ),
    ] {
        let begin = |running: &Running| {
            for command in begin {
                running.cli(command);
            }
        };
        running.outlast(words, begin, |running| drop(running.cli(end)));
    }
    let summary = stop(running.daemon);
    assert_eq!(summary.counts(), (120, [90, 30, 0, 0]));
}

/// If Redis has forgotten a script, a transaction notices this only after its push. So the script
/// of a small batch pushes the items itself.
#[test]
fn the_daemon_continues_after_redis_has_forgotten_its_scripts() {
    let crawl = Crawl::new();
    let mut daemon = crawl.start();
    for batch in 0..3 {
        crawl.server.cli(&["script", "flush"]);
        crawl.push(&urls(10 * batch, 10));
        crawl.wait_for_sink(10 * (batch + 1));
    }
    daemon.wait_for_line("Redis does not know the script any more", SOON);
    assert_eq!(stop(daemon).count("unseen"), 30);
    let expected: Vec<Bytes> = urls(0, 30).into_iter().map(String::into_bytes).collect();
    assert_eq!(crawl.list(SINK), expected);
}

#[test]
fn a_warning_that_repeats_is_logged_once() {
    for format in ["text", "json"] {
        let storage = tempfile::tempdir().unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let settings = [
            format!("redis.url=redis://{}", server.local_addr().unwrap()),
            format!("storage.dir={}", storage.path().join("storage").display()),
            format!("log.format={format}"),
        ];
        let run = settings.iter().fold(urlseen(["run"]), |run, it| run.arg("--set").arg(it));
        let mut daemon = run.start();
        // Each attempt begins after the warning about the attempt before.
        for _ in 0..5 {
            server.accept().unwrap();
        }
        daemon.wait_for_line(AGAIN, SOON);
        assert_eq!(daemon.stderr().matches(AGAIN).count(), 1, "{}", daemon.stderr());
    }
}
