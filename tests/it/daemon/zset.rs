//! A sorted set as sink, as in scrapy-redis's priority queue.

use std::collections::HashMap;
use std::process::Command;

use redis::Commands;
use rustix::process::Signal;

use super::refusals::{Next, assert_refused, deny_on_key, harm};
use super::{Bytes, Crawl, PROCESSING, REJECTED, SINK, SOURCE, stop, stop_process, urls};
use crate::util::sources::root;
use crate::util::wait::SOON;

/// Makes crawls with a sorted set as sink, one for each place of the filter.
fn crawls() -> [Crawl; 2] {
    ["filter.place=local", "filter.place=redis"]
        .map(|store| Crawl::new().set("sink.kind=zset").set(store))
}

fn json(number: usize, priority: &str) -> String {
    format!(r#"{{"url": "http://example.com/{number}", "priority": {priority}}}"#)
}

/// Returns the members with their scores, in the form that Redis prints.
fn scores(crawl: &Crawl) -> HashMap<String, String> {
    let mut connection = crawl.connection();
    let flat: Vec<String> =
        redis::cmd("ZRANGE").arg(&[SINK, "0", "-1", "WITHSCORES"]).query(&mut connection).unwrap();
    flat.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

/// The batch has more items than Lua passes in one call.
#[test]
fn a_batch_may_have_more_items_than_lua_has_arguments() {
    for crawl in crawls() {
        let crawl = crawl.set("source.batch=20_000").set("filter.recent=100_000");
        let mut items: Vec<String> = (0..15_001).map(|number| json(number, "3")).collect();
        items.extend((0..7003).map(|_| String::new()));
        crawl.push(&items);
        assert_eq!(crawl.drain().counts(), (22_004, [15_001, 0, 0, 7003]));
        assert_eq!((crawl.len(SINK), crawl.len(REJECTED)), (15_001, 7003));
        assert!(scores(&crawl).values().all(|score| score == "-3"));
    }
}

/// Point 2 of ARCHITECTURE.md: a commit is executed completely or not at all. Earlier members keep
/// their scores.
#[test]
fn a_commit_that_fails_does_not_change_the_sorted_set() {
    let put_set = |crawl: &Crawl| {
        let () = crawl.connection().rename(SINK, "aside").unwrap();
        let () = crawl.connection().sadd(SINK, "member").unwrap();
    };
    let put_back = |crawl: &Crawl| crawl.connection().rename("aside", SINK).unwrap();
    for crawl in crawls() {
        let output = harm(crawl, Next::Commit, put_set, put_back);
        assert_refused(&output, &[SINK, "holds a set", "RENAME"]);
    }
    for command in ["zadd", "zcard"] {
        let deny = |crawl: &Crawl| deny_on_key(crawl, command, SINK);
        for crawl in crawls() {
            let output = harm(crawl.with_user("crawler"), Next::Commit, deny, |_| ());
            assert_refused(&output, &["crawler", &command.to_uppercase(), "ACL SETUSER"]);
        }
    }
}

/// If another program changes the claimed items after the daemon has tested them, Redis refuses the
/// commit. A refused commit must add no member to the sorted set.
#[test]
fn a_refused_commit_adds_nothing() {
    for crawl in crawls() {
        let crawl = crawl.set("source.batch=10").set("sink.max_len=10");
        crawl.push(&urls(0, 30));
        let mut daemon = crawl.start();
        daemon.wait_for_line("waiting", SOON);
        stop_process(&daemon);
        let mut connection = crawl.connection();
        // The daemon would have committed the removed items next.
        let () = connection.ltrim(PROCESSING, 5, -1).unwrap();
        let () = connection.del(SINK).unwrap();
        daemon.signal(Signal::CONT);
        crawl.wait_for_sink(10);
        let () = connection.del(SINK).unwrap();
        crawl.wait_for_sink(5);
        let mut rest = crawl.list(SINK);
        rest.sort();
        let mut expected: Vec<Bytes> = urls(25, 5).into_iter().map(String::into_bytes).collect();
        expected.sort();
        assert_eq!(rest, expected);
        stop(daemon);
    }
}

/// The source gets requests in scrapy-redis's form. scrapy-redis's own queue pops the unseen ones
/// by priority.
#[test]
fn scrapy_redis_pops_unseen_requests_by_priority() {
    const PUSH: &str = "
import random, sys
from redis import Redis
from scrapy import Request, Spider
from scrapy_redis.queue import PriorityQueue
from scrapy_redis.dupefilter import RFPDupeFilter

class Demo(Spider):
    name = 'demo'

    def parse_item(self, response):
        pass

spider, server = Demo(), Redis(unix_socket_path=sys.argv[2])
queue = PriorityQueue(server, spider, '%(spider)s:unseen')
if sys.argv[1] == 'push':
    for number in range(600):
        request = Request(
            f'http://example.com/{number % 200}', priority=number % 200 * 7 % 50 - 25,
            callback=spider.parse_item, meta={'depth': number, 'kept': {number}},
            dont_filter=number == 599,
        )
        server.rpush('demo:discovered', queue._encode_request(request))
else:
    popped = []
    while request := queue.pop():
        popped.append((request.priority, request.url))
        assert request.callback == spider.parse_item and request.meta['kept']
    assert len(popped) == 201, len(popped)
    assert len(set(popped)) == 200
    priorities = [priority for priority, _ in popped]
    assert priorities == sorted(priorities, reverse=True), priorities
";
    for crawl in crawls() {
        let crawl = crawl.set("source.item=pickle").set("fingerprint.algorithm=scrapy-redis");
        let url = crawl.server.url();
        let python = |what: &str| {
            let socket = url.strip_prefix("unix://").unwrap();
            let python = root().join(".venv/bin/python");
            let output = Command::new(python).args(["-c", PUSH, what, socket]).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{what}: {said}");
        };
        python("push");
        assert_eq!(crawl.drain().counts(), (600, [200, 399, 1, 0]));
        python("pop");
        assert_eq!(crawl.len(SOURCE) + crawl.len(SINK), 0);
    }
}
