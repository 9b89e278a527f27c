//! Messages of the daemon: errors of the configuration, the log, and the summary. None of them
//! shows a password.

use std::fs;

use serde_json::Value;

use super::{Crawl, PASSWORD, READY, SINK, Summary, stop, urls};
use crate::util::binary::{Output, urlseen};
use crate::util::redis::{RedisServer, free_port};
use crate::util::wait::SOON;

#[track_caller]
fn assert_secret(output: &Output) {
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(!stdout.contains(PASSWORD) && !output.stderr.contains(PASSWORD), "{output:?}");
}

#[test]
fn a_password_is_used_and_never_shown() {
    let port = free_port();
    let server = RedisServer::start_with(&["--requirepass", PASSWORD, "--port", &port]);
    let crawl = Crawl::on(server);
    let folder = tempfile::tempdir().unwrap();
    let config = |url: &str| {
        let file = folder.path().join("config.toml");
        fs::write(&file, format!("[redis]\nurl = \"{url}\"\n[log]\nlevel = \"trace\"\n")).unwrap();
        file
    };
    let tcp = format!("redis://127.0.0.1:{port}/0");
    let with_password = format!("redis://:{PASSWORD}@127.0.0.1:{port}/0");
    let with_user = format!("redis://default:{PASSWORD}@127.0.0.1:{port}/0");
    // Each case has a URL, the password of the environment, the exit status and the message.
    for (url, password, code, said) in [
        (with_password.as_str(), None, 0, READY),
        (with_user.as_str(), None, 0, READY),
        (crawl.server.url_as("default", PASSWORD).as_str(), None, 0, READY),
        (tcp.as_str(), Some(PASSWORD), 0, READY),
        (crawl.server.url().as_str(), Some(PASSWORD), 0, READY),
        (tcp.as_str(), None, 3, "asks for a password"),
        (tcp.as_str(), Some("a-secret-word-no"), 3, "refused the password of the user default"),
        (with_user.replace("word", "word2").as_str(), None, 3, "refused the password"),
        (format!("{with_password}x").as_str(), None, 2, "redis.url"),
        (format!("{with_password}?{PASSWORD}").as_str(), None, 2, "redis.url"),
    ] {
        let mut run = urlseen(["run", "--drain", "--config"]).arg(config(url));
        if let Some(password) = password {
            run = run.env("URLSEEN_REDIS_PASSWORD", password);
        }
        let output = run.output();
        assert_eq!(output.code(), Some(code), "{url} {password:?}: {output:?}");
        assert!(output.stderr.contains(said), "no {said:?}: {output:?}");
        assert_secret(&output);
        assert!(!output.stderr.contains("secret-word"), "{output:?}");
    }
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
fn a_password_on_the_command_line_is_refused() {
    let crawl = Crawl::new();
    let output = crawl.run_at(&crawl.server.url_as("default", PASSWORD), &["--drain"]).output();
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("URLSEEN_REDIS_PASSWORD"), "{output:?}");
    assert_secret(&output);
}

#[test]
fn all_problems_of_a_config_are_reported_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[source]\nbatch = 0\ntake_form = \"left\"\n[sink]\npush_to = 3\n";
    fs::write(folder.path().join("config.toml"), text).unwrap();
    let output = urlseen(["run", "--set", "filter.capacity=none"])
        .env("URLSEEN_LOG__LEVEL", "loud")
        .dir(folder.path())
        .output();
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    for words in [
        "config.toml:2",
        "source.batch",
        "take_form",
        "take_from",
        "sink.push_to",
        "filter.capacity",
        "URLSEEN_LOG__LEVEL",
    ] {
        assert!(output.stderr.contains(words), "no {words:?} in {}", output.stderr);
    }
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
fn the_first_reject_of_a_kind_is_a_warning() {
    let crawl = Crawl::new();
    crawl.push(&["http://h:99999/", "", "no url", "http://h/", "http://h:x/"].map(str::to_owned));
    let output = crawl.run(&["--drain"]).output();
    let warnings: Vec<_> =
        output.stderr.lines().filter(|line| line.contains("an item was rejected: ")).collect();
    let [port, empty] = warnings[..] else { panic!("{}", output.stderr) };
    assert!(port.contains("WARN") && port.contains("the port is over 65535"), "{port}");
    assert!(empty.contains("the item is empty"), "{empty}");
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

#[test]
fn the_log_is_json_if_configured() {
    let crawl = Crawl::new().set("log.format=json");
    let output = crawl.run(&["--drain"]).output();
    for line in output.stderr.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        assert!(value["level"].is_string() && value["message"].is_string(), "{line}");
    }
    assert!(output.stderr.contains(READY), "{output:?}");
}

#[test]
fn the_summary_is_consistent_and_the_same_in_both_forms() {
    let items = ["http://a/", "http://a/", "", r#"{"url": "http://a/", "dont_filter": true}"#];
    let crawl = Crawl::new();
    crawl.push(&items);
    let summary = crawl.drain();
    let (all, fates) = summary.counts();
    assert_eq!((all, fates), (4, [1, 1, 1, 1]));
    assert_eq!((summary.count("batches"), summary.count("batches_aborted")), (1, 0));
    assert_eq!((summary.count("source"), summary.count("processing")), (0, 0));
    assert_eq!(summary.count("keys"), 1);
    let number = |name: &str| summary.values[name].as_f64().unwrap();
    assert!(number("fill") > 0.0 && number("seconds") > 0.0 && number("error_rate") < 1e-12);

    let crawl = Crawl::new();
    crawl.push(&items);
    let output = crawl.run(&["--drain"]).output();
    let words: Vec<Vec<&str>> =
        output.text().lines().map(|line| line.split_whitespace().take(2).collect()).collect();
    let expected = [
        ["items", "4"],
        ["unseen", "1"],
        ["seen", "1"],
        ["unfiltered", "1"],
        ["rejected", "1"],
        ["filter", "1"],
    ];
    assert_eq!(words, expected);
}

#[test]
fn a_drain_ends_after_the_last_commit() {
    let crawl = Crawl::new().set("source.batch=10");
    crawl.push(&urls(0, 1005));
    let summary: Summary = crawl.drain();
    assert_eq!((summary.code, summary.ending()), (Some(0), "drained"));
    assert_eq!((summary.count("batches"), crawl.len(SINK)), (101, 1005));
    assert_eq!(summary.count("keys"), 1005);
}
