//! Outages of Redis: the server is down, or has a temporary error. The daemon names the error,
//! waits, and continues when Redis is back.

use std::fs;

use redis::Commands;
use rustix::process::Signal;

use super::{Bytes, Crawl, SINK, stop, stop_process, urls};
use crate::util::binary::Daemon;
use crate::util::redis::{RedisServer, free_port};
use crate::util::wait::{SOON, wait_until};

/// Words near the end of a log line about a failed attempt to use Redis. The length of the pause
/// follows them.
const AGAIN: &str = "Trying again in";

/// Waits until the daemon has logged `words` a few times. Checks that the pauses between its
/// attempts grow.
#[track_caller]
fn wait_for_attempts(daemon: &mut Daemon, words: &str) {
    daemon.wait_for_line(words, SOON);
    // The first pause has at most this many milliseconds. One of the next pauses must be longer.
    let first = 50;
    wait_until(SOON, "longer wait", || waits(daemon).any(|wait| wait > first));
    let attempts = waits(daemon).count();
    assert!(attempts < 20, "{attempts} attempts: {}", daemon.stderr());
    let stderr = daemon.stderr();
    for line in stderr.lines().filter(|line| line.contains(AGAIN)).skip(1) {
        assert!(line.contains(words), "not {words:?}: {line}");
        assert!(line.contains("WARN"), "{line}");
    }
}

/// Returns all pauses so far, in milliseconds.
fn waits(daemon: &Daemon) -> impl Iterator<Item = u64> {
    let said = daemon.stderr();
    let waits: Vec<u64> = said
        .lines()
        .filter_map(|line| line.split_once(AGAIN)?.1.trim_end_matches(" ms").trim().parse().ok())
        .collect();
    waits.into_iter()
}

/// Begins a fault of Redis, and ends it when the daemon has noticed it. Then checks that each item
/// is emitted once.
fn outlast(crawl: Crawl, words: &str, begin: impl FnOnce(&Crawl), end: impl FnOnce(&Crawl)) {
    let crawl = crawl.set("source.batch=3");
    let mut daemon = crawl.start();
    crawl.push(&urls(0, 100));
    crawl.wait_for_sink(100);
    crawl.wait_until_idle();
    // The daemon is stopped, so that it claims no item before the fault begins.
    stop_process(&daemon);
    crawl.push(&urls(50, 100));
    begin(&crawl);
    daemon.signal(Signal::CONT);
    wait_for_attempts(&mut daemon, words);
    end(&crawl);
    daemon.wait_for_line("connected again", SOON);
    crawl.wait_for_sink(150);
    crawl.wait_until_idle();
    let summary = stop(daemon);
    let expected: Vec<Bytes> = urls(0, 150).into_iter().map(String::into_bytes).collect();
    assert_eq!(crawl.list(SINK), expected);
    assert_eq!(summary.counts(), (200, [150, 50, 0, 0]));
}

#[test]
fn the_daemon_waits_while_redis_is_out_of_memory() {
    outlast(
        Crawl::new(),
        "Redis has reached its maxmemory",
        |crawl| drop(crawl.server.cli(&["config", "set", "maxmemory", "1"])),
        |crawl| drop(crawl.server.cli(&["config", "set", "maxmemory", "0"])),
    );
}

#[test]
fn the_daemon_waits_while_the_last_save_of_redis_failed() {
    let saves = tempfile::tempdir().unwrap();
    let folder = saves.path().join("gone");
    fs::create_dir(&folder).unwrap();
    let server = RedisServer::start_with(&[
        "--save",
        "3600 1000000000",
        "--enable-protected-configs",
        "yes",
    ]);
    let crawl = Crawl::on(server);
    let cli = |crawl: &Crawl, arguments: &[&str]| crawl.server.cli(arguments);
    let status = |crawl: &Crawl, status: &str| {
        cli(crawl, &["bgsave"]);
        wait_until(SOON, "end of the save", || {
            let info = cli(crawl, &["info", "persistence"]);
            info.contains("rdb_bgsave_in_progress:0")
                && info.contains(&format!("rdb_last_bgsave_status:{status}"))
        });
    };
    outlast(
        crawl,
        "its last save to disk failed",
        |crawl| {
            cli(crawl, &["config", "set", "dir", folder.to_str().unwrap()]);
            fs::remove_dir(&folder).unwrap();
            status(crawl, "err");
        },
        |crawl| {
            cli(crawl, &["config", "set", "dir", saves.path().to_str().unwrap()]);
            status(crawl, "ok");
        },
    );
}

#[test]
fn the_daemon_waits_while_redis_has_too_few_replicas() {
    outlast(
        Crawl::new(),
        "fewer replicas are connected",
        |crawl| drop(crawl.server.cli(&["config", "set", "min-replicas-to-write", "1"])),
        |crawl| drop(crawl.server.cli(&["config", "set", "min-replicas-to-write", "0"])),
    );
}

#[test]
fn the_daemon_waits_while_redis_is_a_read_only_replica() {
    outlast(
        Crawl::new(),
        "has become a read-only replica",
        |crawl| drop(crawl.server.cli(&["replicaof", "127.0.0.1", &free_port()])),
        |crawl| drop(crawl.server.cli(&["replicaof", "no", "one"])),
    );
}

#[test]
fn the_daemon_waits_while_a_replica_has_no_primary() {
    outlast(
        Crawl::new(),
        "a replica that has lost its primary",
        |crawl| {
            crawl.server.cli(&["config", "set", "replica-serve-stale-data", "no"]);
            crawl.server.cli(&["replicaof", "127.0.0.1", &free_port()]);
        },
        |crawl| drop(crawl.server.cli(&["replicaof", "no", "one"])),
    );
}

#[test]
fn the_daemon_waits_for_the_script_of_another_client() {
    let mut runner = None;
    outlast(
        Crawl::new(),
        "busy with a script",
        |crawl| {
            crawl.server.cli(&["config", "set", "busy-reply-threshold", "1"]);
            let mut connection = crawl.connection();
            runner = Some(std::thread::spawn(move || {
                let mut script = redis::cmd("EVAL");
                script.arg("while true do end").arg(0);
                script.exec(&mut connection).unwrap_err()
            }));
            let mut other = crawl.connection();
            wait_until(SOON, "busy server", || {
                let ping = redis::cmd("PING").exec(&mut other);
                ping.is_err_and(|error| error.code() == Some("BUSY"))
            });
        },
        |crawl| drop(crawl.server.cli(&["script", "kill"])),
    );
    assert!(runner.unwrap().join().unwrap().to_string().contains("killed"));
}

#[test]
fn the_daemon_continues_after_redis_has_forgotten_its_scripts() {
    let crawl = Crawl::new();
    let mut daemon = crawl.start();
    crawl.server.cli(&["script", "flush"]);
    crawl.push(&urls(0, 10));
    crawl.wait_for_sink(10);
    daemon.wait_for_line("Redis does not know the script any more", SOON);
    let summary = stop(daemon);
    assert_eq!(summary.stderr.matches(AGAIN).count(), 1, "{}", summary.stderr);
    assert_eq!(summary.count("unseen"), 10);
}

#[test]
fn the_daemon_waits_for_a_server_that_starts_late() {
    let mut crawl = Crawl::new();
    crawl.server.kill();
    let mut daemon = crawl.run(&["--json"]).start();
    wait_for_attempts(&mut daemon, "cannot reach Redis at");
    crawl.server.restart();
    crawl.push(&urls(0, 10));
    crawl.wait_for_sink(10);
    assert_eq!(stop(daemon).count("unseen"), 10);
}

/// Settings that keep every acknowledged write.
const DURABLE: &[&str] = &["--appendonly", "yes", "--appendfsync", "always"];

#[test]
fn a_server_that_crashes_and_keeps_all_loses_nothing() {
    let mut crawl = Crawl::on(RedisServer::start_with(DURABLE)).set("source.batch=10");
    crawl.push(&[urls(0, 20_000), urls(10_000, 20_000)].concat());
    let mut daemon = crawl.start();
    for crash in 1..=3 {
        crawl.wait_for_sink(crash * 1000);
        crawl.server.kill();
        wait_until(SOON, "lost connection", || daemon.stderr().matches(AGAIN).count() >= crash);
        crawl.server.restart();
        wait_until(SOON, "next connection", || {
            daemon.stderr().matches("connected again").count() >= crash
        });
    }
    crawl.wait_until_idle();
    assert!(daemon.is_running());
    let summary = stop(daemon);
    let expected: Vec<Bytes> = urls(0, 30_000).into_iter().map(String::into_bytes).collect();
    assert!(crawl.list(SINK) == expected, "{}", crawl.len(SINK));
    assert_eq!(summary.counts(), (40_000, [30_000, 10_000, 0, 0]));
}

#[test]
fn the_daemon_waits_while_redis_loads_its_data() {
    let mut crawl = Crawl::on(RedisServer::start_with(DURABLE));
    let mut daemon = crawl.start();
    crawl.push(&urls(0, 10));
    crawl.wait_for_sink(10);
    // The load is slow: it has many keys, with a delay in microseconds for each.
    let values: Vec<(String, &str)> = urls(0, 5000).into_iter().map(|key| (key, "")).collect();
    let () = crawl.connection().mset(&values).unwrap();
    crawl.server.cli(&["bgrewriteaof"]);
    wait_until(SOON, "end of the rewrite", || {
        let info = crawl.server.cli(&["info", "persistence"]);
        info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
    });
    crawl.server.restart_with(&[
        "--key-load-delay",
        "100",
        "--loading-process-events-interval-bytes",
        "1024",
    ]);
    daemon.wait_for_line("Redis is still loading its data", SOON);
    daemon.wait_for_line("connected again", SOON);
    crawl.push(&urls(0, 20));
    crawl.wait_for_sink(20);
    assert_eq!(stop(daemon).count("unseen"), 20);
}
