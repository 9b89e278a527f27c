//! `urlseen config init`: finds crawls in a Redis, and writes their configurations.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::util::binary::{Output, Run, urlseen};
use crate::util::redis::RedisServer;

/// Fingerprint of `https://example.com/a` as scrapy-redis computes it.
const SEEN: &str = "f576202ebdb7d297f5bde9fdaecdcaffcb3492cc";

/// Runs a command in a folder.
fn run(folder: &Path, arguments: &[&str]) -> Output {
    urlseen(arguments).dir(folder).output()
}

/// Runs `urlseen config init` in a folder, with these arguments.
fn init(folder: &Path, server: &RedisServer, arguments: &[&str]) -> Output {
    let url = server.url();
    run(folder, &[&["config", "init", "--redis", &url], arguments].concat())
}

#[track_caller]
fn assert_done(output: &Output, words: &[&str]) {
    assert_eq!((output.code(), output.stderr.as_str()), (Some(0), ""), "{output:?}");
    for word in words {
        assert!(output.text().contains(word), "no {word:?} in {}", output.text());
    }
}

#[track_caller]
fn assert_refused(output: &Output, reason: &str) {
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains(reason), "no {reason:?} in {}", output.stderr);
}

/// Runs the commands that `urlseen config init` has printed, except for the last one, which is
/// `urlseen run`.
fn follow(folder: &Path, output: &Output) {
    let commands = output.text().lines().filter_map(|line| line.strip_prefix("  "));
    let commands: Vec<_> = commands.filter(|line| !line.starts_with(' ')).collect();
    let (last, commands) = commands.split_last().unwrap();
    assert!(last.starts_with("urlseen run"), "{}", output.text());
    for command in commands {
        let words: Vec<_> = command.split(' ').collect();
        let ran = match words[0] {
            "urlseen" => run(folder, &words[1..]),
            program => Run::of(program, &words[1..]).dir(folder).output(),
        };
        assert_eq!(ran.code(), Some(0), "{command}: {ran:?}");
    }
}

#[test]
fn a_crawl_of_scrapy_redis_moves_with_the_printed_commands() {
    let (folder, server) = (TempDir::new().unwrap(), RedisServer::start());
    server.cli(&["sadd", "news:dupefilter", SEEN]);
    server.cli(&["zadd", "news:requests", "0", "request"]);
    server.cli(&["set", "other", "x"]);
    let output = init(folder.path(), &server, &[]);
    let words = [
        "3 keys of unix://",
        "news:dupefilter: a set of scrapy-redis, members: 1",
        "news:requests: a queue of scrapy-redis, a sorted set of 1 requests",
        "written    config.toml",
        "Stop the spiders. Then give",
        "  urlseen import --redis-set news:dupefilter\n",
    ];
    assert_done(&output, &words);
    follow(folder.path(), &output);
    assert_eq!(server.cli(&["zrange", "news:unseen", "0", "-1"]), "request");
    let seen = run(folder.path(), &["check", SEEN]);
    assert!(seen.text().starts_with("seen\t"), "{seen:?}");

    assert_refused(&init(folder.path(), &server, &[]), "config.toml exists already");
    let ended = run(folder.path(), &["run", "--drain"]);
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let again = init(folder.path(), &server, &["--output", "again.toml"]);
    assert_refused(&again, "urlseen already runs the crawl news");
    assert!(!folder.path().join("again.toml").exists());
}

#[test]
fn a_filter_of_scrapy_redis_bloomfilter_stays_in_redis() {
    let (folder, server) = (TempDir::new().unwrap(), RedisServer::start());
    server.cli(&["setbit", "demo:bloomfilter", "32000", "1"]);
    server.cli(&["rpush", "demo:requests", "request"]);
    let output = init(folder.path(), &server, &["--output", "demo.toml"]);
    assert_done(&output, &["BLOOMFILTER_BIT is 15", "  urlseen run --config demo.toml\n"]);
    follow(folder.path(), &output);
    let file = fs::read_to_string(folder.path().join("demo.toml")).unwrap();
    for line in ["key = \"demo:bloomfilter\"", "bit = 15 ", "[sink]\nkind = \"list\""] {
        assert!(file.contains(line), "no {line:?} in {file}");
    }
}

#[test]
fn one_of_several_crawls_must_be_named() {
    let (folder, server) = (TempDir::new().unwrap(), RedisServer::start());
    for name in ["a", "b", "bad/name"] {
        server.cli(&["sadd", &format!("{name}:dupefilter"), SEEN]);
    }
    let output = init(folder.path(), &server, &[]);
    assert_refused(&output, "several crawls: name one with --crawl");
    let found = output.text().lines().filter(|line| line.contains("a set of scrapy-redis"));
    assert_eq!(found.count(), 2, "{}", output.text());
    assert!(!folder.path().join("config.toml").exists());
    let output = init(folder.path(), &server, &["--crawl", "b"]);
    assert_done(&output, &["import --redis-set b:dupefilter"]);
    follow(folder.path(), &output);
}

#[test]
fn without_a_crawl_the_file_is_for_a_new_one() {
    let (folder, server) = (TempDir::new().unwrap(), RedisServer::start());
    let output = init(folder.path(), &server, &["--crawl", "new"]);
    assert_done(&output, &["no crawl, so the file is for a new one"]);
    follow(folder.path(), &output);
    let shown = run(folder.path(), &["config", "show"]);
    assert!(shown.text().contains("\"new:discovered\""), "{}", shown.text());
    assert_eq!(server.cli(&["dbsize"]), "0");
}

#[test]
fn a_password_is_taken_from_the_environment_and_not_written() {
    let folder = TempDir::new().unwrap();
    let server = RedisServer::start_with(&["--requirepass", "hunter2"]);
    let (url, path) = (server.url(), folder.path());
    let with_password = format!("{url}?pass=hunter2");
    let output = run(path, &["config", "init", "--redis", &with_password]);
    assert_refused(&output, "a password on the command line shows in the process list");
    let output = urlseen(["config", "init", "--redis", &url])
        .dir(path)
        .env("URLSEEN_REDIS_PASSWORD", "hunter2")
        .output();
    assert_done(&output, &["written"]);
    let file = fs::read_to_string(path.join("config.toml")).unwrap();
    assert!(!(file + output.text()).contains("hunter2"), "{output:?}");
}

#[test]
fn a_set_of_other_members_is_refused() {
    let (folder, server) = (TempDir::new().unwrap(), RedisServer::start());
    server.cli(&["sadd", "demo:dupefilter", "https://example.com/a"]);
    assert_refused(&init(folder.path(), &server, &[]), "are not fingerprints in 40 hex digits");
}

/// Begins a filter of Redisson for 1000 fingerprints.
fn begin_redisson(server: &RedisServer, key: &str) {
    let hash = format!("{{{key}}}:config");
    let fields = ["size", "9585", "hashIterations", "7", "expectedInsertions", "1000"];
    server.cli(&[&["hset", &hash][..], &fields, &["falseProbability", "1.0E-2"]].concat());
    server.cli(&["setbit", key, "9584", "0"]);
}

#[test]
fn a_filter_of_redisson_stays_in_redis() {
    let (folder, server) = (TempDir::new().unwrap(), RedisServer::start());
    // The name of the string is also that of a filter of scrapy-redis-bloomfilter.
    begin_redisson(&server, "demo:bloomfilter");
    server.cli(&["hset", "{demo:other}:config", "size", "1"]);
    let output = init(folder.path(), &server, &[]);
    assert_done(&output, &["demo:bloomfilter: a filter of Redisson for 1,000 fingerprints"]);
    assert!(!output.text().contains("a string of scrapy-redis-bloomfilter"), "{output:?}");
    follow(folder.path(), &output);
    server.cli(&["rpush", "demo:discovered", "https://example.com/a", "https://example.com/a"]);
    let ended = run(folder.path(), &["run", "--drain"]);
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    assert_eq!(server.cli(&["zcard", "demo:unseen"]), "1");
    assert_eq!(server.cli(&["bitcount", "demo:bloomfilter"]), "7");
}

#[test]
fn strings_that_may_be_filters_are_named_with_their_kinds() {
    let (folder, server) = (TempDir::new().unwrap(), RedisServer::start());
    for (key, bit) in [("a:seen.0", "8191"), ("b:seen_0", "8192"), ("c:seen:1", "8191")] {
        server.cli(&["setbit", key, bit, "1"]);
    }
    server.cli(&["set", "c:seen:count", "1"]);
    server.cli(&["setbit", "small.0", "8183", "1"]);
    server.cli(&["rpush", "list.0", "x"]);
    let output = init(folder.path(), &server, &["--output", "all.toml"]);
    let words = [
        "a:seen.0: a string of 1,024 bytes",
        "filter.key = \"a:seen\", filter.kind = \"pyrebloom\" or \"luw2007-bloomfilter\"",
        "b:seen_0: a string of 1,025 bytes",
        "filter.key = \"b:seen\", filter.kind = \"imooc\"",
        "c:seen:1: a string of 1,024 bytes",
        "filter.key = \"c:seen\", filter.kind = \"redis-lua-scaling\"",
        "Redis does not show their parameters",
    ];
    assert_done(&output, &words);
    assert!(!output.text().contains("small"), "{output:?}");
    let output = init(folder.path(), &server, &["--crawl", "b"]);
    assert_done(&output, &["b:seen_0"]);
    assert!(!output.text().contains("a:seen"), "{output:?}");
}
