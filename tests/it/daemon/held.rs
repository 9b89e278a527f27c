//! Held requests: a consumer pops them, and they are requeued if the consumer stops.

use std::collections::HashMap;

use redis::Commands;
use serde_json::Value;

use super::{Crawl, PROCESSING, REJECTED, SINK, SOURCE, stop, urls};
use crate::util::wait::{SOON, wait_until};

const RECORD: &str = "urlseen:{demo:discovered}:crawl";
const CONSUMERS: &str = "urlseen:{demo:discovered}:consumers";
const REQUEUES: &str = "urlseen:{demo:discovered}:requeues";

fn held(name: &str) -> String {
    format!("urlseen:{{demo:discovered}}:held:{name}")
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
        ("keep_fragments", "false"),
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
