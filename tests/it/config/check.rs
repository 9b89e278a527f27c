//! `urlseen config check`: makes the checks of a start, and changes nothing.

use std::fs;
use std::net::TcpListener;

use redis::Commands;

use crate::daemon::Crawl;
use crate::partitions;
use crate::util::binary::{Output, urlseen};
use crate::util::redis::RedisServer;

/// Runs the check with the configuration of a crawl, and these settings.
fn check(crawl: &Crawl, settings: &[&str]) -> Output {
    let settings: Vec<_> = settings.iter().flat_map(|&setting| ["--set", setting]).collect();
    crawl.command("config check", &settings).output()
}

#[track_caller]
fn assert_refused(output: &Output, status: i32, reasons: &[&str]) {
    assert_eq!(output.code(), Some(status), "{output:?}");
    for reason in reasons {
        assert!(output.stderr.contains(reason), "no {reason:?} in {}", output.stderr);
    }
}

#[test]
fn a_good_crawl_passes_and_nothing_changes() {
    let crawl = Crawl::new();
    crawl.push(&["https://example.com/a"]);
    let before = crawl.dump();
    let output = check(&crawl, &[]);
    assert_eq!((output.code(), output.stderr.as_str()), (Some(0), ""), "{output:?}");
    for row in ["storage       ", "which urlseen run makes", "redis         redis ", "demo, new"] {
        assert!(output.text().contains(row), "no {row:?} in {}", output.text());
    }
    assert_eq!(crawl.dump(), before);
    assert_eq!(crawl.server.cli(&["exists", "urlseen:{demo:discovered}:lease"]), "0");
    assert!(!crawl.storage_dir().exists());

    crawl.drain();
    let before = crawl.dump();
    let output = check(&crawl, &[]);
    assert_eq!((output.code(), output.stderr.as_str()), (Some(0), ""), "{output:?}");
    assert!(output.text().contains("run by no daemon"), "{}", output.text());
    assert_eq!(crawl.dump(), before);
}

#[test]
fn the_check_works_while_a_daemon_runs() {
    let crawl = Crawl::new().set("admin.listen=127.0.0.1:0");
    let _daemon = crawl.start();
    let output = check(&crawl, &[]);
    assert_eq!((output.code(), output.stderr.as_str()), (Some(0), ""), "{output:?}");
    assert!(output.text().contains("in use by process"), "{}", output.text());
    assert!(output.text().contains("run by crawl"), "{}", output.text());
}

#[test]
fn problems_of_folder_server_and_addresses_show_at_once() {
    let crawl = Crawl::new();
    crawl.server.cli(&["config", "set", "maxmemory-policy", "allkeys-lru"]);
    let () = crawl.connection().sadd("demo:discovered", "member").unwrap();
    fs::write(crawl.storage_dir(), "a file").unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("admin.listen={}", taken.local_addr().unwrap());
    let reasons = [
        "cannot be opened: not a directory",
        "maxmemory-policy is allkeys-lru",
        "source.key is demo:discovered, and Redis holds a set there",
        "admin.listen: cannot listen at 127.0.0.1:",
        "2 problems, nothing was started",
    ];
    assert_refused(&check(&crawl, &[&listen]), 3, &reasons);
}

#[test]
fn a_filter_that_does_not_fit_is_refused() {
    let crawl = Crawl::new();
    crawl.push(&["https://example.com/a"]);
    crawl.drain();
    assert_refused(&check(&crawl, &["filter.error_rate=1e-9"]), 2, &["filter.error_rate"]);
    assert_refused(&check(&crawl, &["storage.dir=elsewhere"]), 3, &["elsewhere is new"]);
    crawl.server.cli(&["flushall"]);
    assert_refused(&check(&crawl, &[]), 3, &["Redis knows nothing of this crawl"]);
    let emit_again = check(&crawl, &["storage.on_rollback=emit-again"]);
    assert_eq!(emit_again.code(), Some(0), "{emit_again:?}");
}

#[test]
fn a_filter_in_redis_is_checked_and_not_made() {
    let crawl = Crawl::new().set("filter.place=redis");
    let output = check(&crawl, &[]);
    assert_eq!((output.code(), output.stderr.as_str()), (Some(0), ""), "{output:?}");
    assert!(crawl.dump().is_empty());
    crawl.push(&["https://example.com/a"]);
    crawl.drain();
    assert_eq!(check(&crawl, &[]).code(), Some(0));
    assert_refused(&check(&crawl, &["filter.capacity=200_000"]), 2, &["filter.capacity"]);
    crawl.server.cli(&["del", "urlseen:{demo:filter}:spec"]);
    assert_refused(&check(&crawl, &[]), 3, &["without their definition"]);
    crawl.server.cli(&["flushall"]);
    crawl.server.cli(&["setbit", "demo:filter:00", "8388607", "1"]);
    assert_refused(&check(&crawl, &[]), 3, &["is 1048576 bytes long"]);
}

#[test]
fn without_a_server_only_the_configuration_is_checked() {
    let offline = |settings: &[&str]| {
        let settings = settings.iter().flat_map(|&setting| ["--set", setting]);
        urlseen(["config", "check", "--offline"].into_iter().chain(settings)).output()
    };
    let output = offline(&["redis.url=redis://127.0.0.1:1", "storage.dir=/proc/none"]);
    assert_eq!((output.code(), output.stderr.as_str()), (Some(0), ""), "{output:?}");
    assert_refused(&offline(&["filter.capacity=0"]), 2, &["filter.capacity is \"0\""]);
    let cluster = ["redis.url=redis+cluster://a", "partitions.count=1"];
    assert_refused(&offline(&cluster), 2, &["in different slots"]);
    let online = urlseen(["config", "check", "--set", "redis.url=redis://127.0.0.1:1"]).output();
    assert_refused(&online, 3, &["127.0.0.1:1", "1 problem, nothing was started"]);
}

#[test]
fn a_missing_permission_is_named() {
    let crawl = Crawl::on(RedisServer::start());
    crawl.server.cli(&["acl", "setuser", "default", "-rpush"]);
    assert_refused(&check(&crawl, &[]), 3, &["ACL SETUSER default +rpush"]);
}

#[test]
fn every_partition_is_checked() {
    let crawl = partitions::Crawl::new();
    let output = crawl.urlseen(&["config", "check"]).output();
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert_eq!(output.text().matches("storage       ").count(), 4, "{}", output.text());
    assert_eq!(crawl.server.cli(&["dbsize"]), "0");
    let status = crawl.urlseen(&["run", "--drain"]).output().code();
    assert_eq!(status, Some(0));
    let other = crawl.urlseen(&["config", "check"]).env("URLSEEN_PARTITIONS__COUNT", "2").output();
    assert_refused(&other, 3, &["the crawl in Redis has partitions 4"]);
}
