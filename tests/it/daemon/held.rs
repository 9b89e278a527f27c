//! Held requests: a consumer pops them, and they are requeued if the consumer stops.

use std::collections::HashMap;

use redis::{Commands, Connection, FromRedisValue};
use serde_json::Value;

use super::{Crawl, PROCESSING, REJECTED, SINK, SOURCE, stop, urls};
use crate::util::wait::{SOON, wait_until};

const RECORD: &str = "urlseen:{demo:discovered}:crawl";
const CONSUMERS: &str = "urlseen:{demo:discovered}:consumers";
const REQUEUES: &str = "urlseen:{demo:discovered}:requeues";

const COMMON: &str = include_str!("../../../crates/urlseen-core/src/redis/script/common.lua");
const SINK_LUA: &str = include_str!("../../../crates/urlseen-core/src/redis/held/sink.lua");
const POP: &str = include_str!("../../../crates/urlseen-core/src/redis/held/pop.lua");
const FINISH: &str = include_str!("../../../crates/urlseen-core/src/redis/held/finish.lua");
const COUNT: &str = include_str!("../../../crates/urlseen-core/src/redis/held/count.lua");

/// Consumer that uses the documented protocol. It sends a heartbeat only when the test asks for it.
struct Consumer {
    connection: Connection,
    name: &'static str,
    kind: &'static str,
}

fn held(name: &str) -> String {
    format!("urlseen:{{demo:discovered}}:held:{name}")
}

impl Consumer {
    fn new(crawl: &Crawl, name: &'static str, kind: &'static str) -> Self {
        Self { connection: crawl.connection(), name, kind }
    }

    fn call<T: FromRedisValue>(&mut self, parts: &[&str], keys: &[&str], words: &[&str]) -> T {
        let text = [&[COMMON], parts].concat().join("\n");
        let mut command = redis::cmd("EVAL");
        command.arg(text).arg(keys.len()).arg(keys).arg(words);
        command.query(&mut self.connection).unwrap()
    }

    /// Pops a request as the delivery `id`.
    fn pop_as(&mut self, id: &str) -> Option<String> {
        let (held, words) = (held(self.name), [self.kind, "LEFT", self.name, id, "100"]);
        self.call(&[SINK_LUA, POP], &[SINK, CONSUMERS, &held, REQUEUES], &words)
    }

    fn finish(&mut self, id: &str, links: &[&str]) -> u64 {
        let words = [&["RPUSH", id], links].concat();
        self.call(&[FINISH], &[SOURCE, &held(self.name), REQUEUES], &words)
    }

    fn beat(&mut self) {
        let () = self.connection.hincr(CONSUMERS, self.name, 1).unwrap();
    }
}

/// Makes two crawls: one with a list as sink, and one with a sorted set.
fn crawls() -> [(Crawl, &'static str); 2] {
    ["list", "zset"].map(|kind| (Crawl::new().set(&format!("sink.kind={kind}")), kind))
}

/// Producers and consumers find the settings of the crawl in one record.
#[test]
fn the_daemon_publishes_the_crawl_record() {
    let crawl = Crawl::new().set("sink.kind=zset").set("fingerprint.algorithm=scrapy-redis");
    let () = crawl.connection().hset(RECORD, "old", "field").unwrap();
    let daemon = crawl.start();
    let record: HashMap<String, String> = crawl.connection().hgetall(RECORD).unwrap();
    for (field, value) in [
        ("protocol", "2"),
        ("source", SOURCE),
        ("push", "RPUSH"),
        ("processing", PROCESSING),
        ("sink", SINK),
        ("sink_kind", "zset"),
        ("pop", "LEFT"),
        ("emit", "item"),
        ("algorithm", "scrapy-redis"),
        ("drop_tracking", "none"),
        ("same", "[]"),
        ("rejects", REJECTED),
        ("forget", "demo:forget"),
        ("deliveries", "3"),
        ("held_timeout_ms", "60000"),
    ] {
        assert_eq!(record[field], value, "{field}");
    }
    assert!(!record.contains_key("old"));
    let line = ["fingerprint", "--algorithm", "scrapy-redis"];
    let probe = crate::util::binary::urlseen(line).stdin("https://example.com/?b=2&a=1\n").output();
    assert_eq!(probe.text().trim(), record["probe"]);
    stop(daemon);
}

/// A daemon must not replace the record of a later protocol, because consumers of that protocol use
/// it.
#[test]
fn a_record_of_a_later_protocol_is_refused() {
    let crawl = Crawl::new();
    let fields = [("protocol", "3"), ("urlseen", "9.0.0"), ("sink", "demo:other")];
    let () = crawl.connection().hset_multiple(RECORD, &fields).unwrap();
    crawl.push(&urls(0, 10));
    let output = crawl.run(&["--drain"]).output();
    assert_eq!(output.code(), Some(3), "{output:?}");
    for words in ["protocol \"3\"", "urlseen \"9.0.0\"", "Run version \"9.0.0\""] {
        assert!(output.stderr.contains(words), "no {words:?} in {}", output.stderr);
    }
    let found: HashMap<String, String> = crawl.connection().hgetall(RECORD).unwrap();
    assert_eq!(found, fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    assert_eq!((crawl.len(SOURCE), crawl.len(SINK)), (10, 0));
}

/// A consumer repeats a pop after a lost reply, with the same id. It gets the same delivery again.
#[test]
fn a_repeated_pop_gets_the_same_delivery() {
    for (crawl, kind) in crawls() {
        let daemon = crawl.start();
        crawl.push(&urls(0, 2));
        crawl.wait_for_sink(2);
        let mut consumer = Consumer::new(&crawl, "a#1", kind);
        let first = consumer.pop_as("1").unwrap();
        assert_eq!(consumer.pop_as("1").unwrap(), first);
        assert_eq!(consumer.pop_as("2").unwrap(), "0 0 http://example.com/1");
        assert_eq!(consumer.pop_as("3"), None);
        assert_eq!(consumer.finish("1", &["http://example.com/2"]), 1);
        assert_eq!(consumer.finish("1", &["http://example.com/3"]), 0);
        crawl.wait_for_sink(1);
        assert_eq!(crawl.list(SINK), [b"http://example.com/2"]);
        stop(daemon);
    }
}

/// One count includes the source, the processing list, the sink and all held requests.
#[test]
fn a_count_includes_the_held_requests_of_all_consumers() {
    let crawl = Crawl::new();
    let () = crawl.connection().rpush(SINK, urls(0, 3)).unwrap();
    let () = crawl.connection().rpush(SOURCE, urls(3, 2)).unwrap();
    let () = crawl.connection().rpush(PROCESSING, urls(5, 1)).unwrap();
    let mut one = Consumer::new(&crawl, "a#1", "list");
    let mut other = Consumer::new(&crawl, "b#2", "list");
    one.pop_as("1").unwrap();
    other.pop_as("1").unwrap();
    let (a, b) = (held("a#1"), held("b#2"));
    let keys = [SOURCE, PROCESSING, SINK, CONSUMERS, &a, &b];
    let total: u64 = one.call(&[COUNT], &keys, &["list", "a#1", "b#2"]);
    assert_eq!(total, 6);
    let mut names: Vec<String> = one.call(&[COUNT], &keys[..5], &["list", "a#1"]);
    names.sort();
    assert_eq!(names, ["a#1", "b#2"]);
}

/// The daemon requeues requests of a stopped consumer, but not of a slow one. A request that three
/// consumers did not finish goes to the rejects. The tests of the library do this with a list.
#[test]
fn requests_of_stopped_consumers_are_requeued_and_finally_rejected() {
    let (kind, crawl) = ("zset", Crawl::new().set("held.timeout=1s").set("sink.kind=zset"));
    let mut daemon = crawl.start();
    crawl.push(&urls(0, 2));
    crawl.wait_for_sink(2);
    let mut slow = Consumer::new(&crawl, "slow#1", kind);
    assert!(slow.pop_as("1").unwrap().ends_with("/0"));
    for count in 0..3 {
        let name = ["a#1", "b#2", "c#3"][count];
        let mut stopped = Consumer::new(&crawl, name, kind);
        let popped = stopped.pop_as("1").unwrap();
        assert_eq!(popped, format!("0 {count} http://example.com/1"));
        wait_until(SOON, "the stopped consumer to be gone", || {
            slow.beat();
            !stopped.connection.hexists::<_, _, bool>(CONSUMERS, name).unwrap()
        });
        assert_eq!(crawl.len(SINK), usize::from(count < 2), "{count}");
    }
    let rejects = crawl.rejects();
    assert_eq!(rejects.len(), 1);
    assert_eq!(rejects[0]["item"], "http://example.com/1");
    let reason = rejects[0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("delivered 3 times and never finished"), "{reason}");
    for consumer in ["a#1", "b#2", "c#3"] {
        assert!(reason.contains(consumer), "{reason}");
    }
    assert!(daemon.is_running());
    assert_eq!(slow.finish("1", &[]), 1);
    assert_eq!(crawl.connection().exists::<_, u64>(REQUEUES).unwrap(), 0);
    stop(daemon);
}

#[test]
fn values_that_another_program_wrote_are_rejected_or_named() {
    let crawl = Crawl::new().set("held.timeout=1s").set("sink.kind=zset");
    let mut daemon = crawl.start();
    let mut connection = crawl.connection();
    for (field, value) in [(&b"\xfez"[..], "garbage"), (b"a", "x 0 score"), (b"b", "nan 0 score")] {
        let () = connection.hset(held("bad"), field, value).unwrap();
    }
    // The count of deliveries of the last request is not a number.
    let () = connection.hset(held("bad"), "c", "0 2 item").unwrap();
    let sha1 = "3a7d9767b1233601ebf8b67495c6dc2ce8b8c2af";
    let () = connection.hset(REQUEUES, sha1, "garbage").unwrap();
    let () = connection.hset(CONSUMERS, "bad", 1).unwrap();
    let () = connection.hset(CONSUMERS, b"\xff\xfe", 1).unwrap();
    let () = connection.hset(CONSUMERS, "beat", b"\xff").unwrap();
    let () = connection.hset(CONSUMERS, "type", 1).unwrap();
    let () = connection.set(held("type"), "text").unwrap();
    for line in [
        "which is no name of a consumer: HDEL it",
        "in the field \"beat\", which is no heartbeat",
        "the key urlseen:{demo:discovered}:held:type must be the hash",
    ] {
        daemon.wait_for_line(line, SOON);
    }
    wait_until(SOON, "rejects", || crawl.rejects().len() == 4);
    let rejects = crawl.rejects();
    let mut items: Vec<_> = rejects.iter().map(|it| it["item"].as_str().unwrap()).collect();
    items.sort_unstable();
    assert_eq!(items, ["garbage", "item", "nan 0 score", "x 0 score"]);
    let wrote = |it: &&Value| it["reason"].as_str().unwrap().contains("another program wrote it");
    assert_eq!(rejects.iter().filter(wrote).count(), 3);
    crawl.push(&urls(0, 2));
    crawl.wait_for_sink(2);
    stop(daemon);
}
