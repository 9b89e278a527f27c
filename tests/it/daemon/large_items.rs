//! Items that are larger than `source.item_bytes`, and items as large as a server with the lowest
//! limits permits.

use redis::Commands;
use rustix::process::Signal;
use serde_json::Value;

use super::{Bytes, Crawl, REJECTED, stop, stop_process, urls};
use crate::util::redis::RedisServer;
use crate::util::wait::{SOON, wait_until};

/// Lowest value that Redis permits for its two limits.
const LEAST: &str = "1048576";

/// Largest `source.item_bytes` that a server with [`LEAST`] accepts.
const ITEM_BYTES: usize = 128 << 10;

/// Starts a server with the lowest limits.
fn small_server() -> RedisServer {
    let limits = ["--proto-max-bulk-len", LEAST, "--client-query-buffer-limit", LEAST];
    RedisServer::start_with(&limits)
}

/// Makes crawls with each kind of sink, each place of the filter, and both ends of the source, on
/// servers with the lowest limits.
fn crawls() -> impl Iterator<Item = (Crawl, String)> {
    let places = ["local", "redis"].into_iter();
    let kinds = places.flat_map(|place| ["list", "zset"].map(|sink| (place, sink)));
    let ends = kinds.flat_map(|(place, sink)| ["left", "right"].map(|end| [place, sink, end]));
    ends.map(|[place, sink, end]| {
        let crawl = Crawl::on(small_server())
            .set(&format!("filter.place={place}"))
            .set(&format!("sink.kind={sink}"))
            .set(&format!("source.take_from={end}"))
            .set(&format!("source.item_bytes={ITEM_BYTES}"));
        (crawl, format!("{place} {sink} {end}"))
    })
}

/// Makes a URL of this length.
fn url(length: usize) -> Bytes {
    let mut url = b"http://a/".to_vec();
    url.resize(length, b'x');
    url
}

/// Checks that a reject has the beginning, the length and the SHA-1 of an item.
#[track_caller]
fn assert_shortened(crawl: &Crawl, reject: &Value, item: &[u8]) {
    let mut hash = redis::cmd("EVAL");
    hash.arg("return redis.sha1hex(string.rep(ARGV[1], ARGV[2]))").arg(0);
    let hash: String = hash.arg(&item[..1]).arg(item.len()).query(&mut crawl.connection()).unwrap();
    assert_eq!(reject["sha1"], hash.as_str());
    assert_eq!(reject["bytes"], item.len());
    assert_eq!(reject["begins"].as_str().unwrap().as_bytes(), &item[..4096]);
    assert!(reject.get("item").is_none(), "{reject}");
}

#[test]
fn a_longer_item_becomes_a_reject_with_its_beginning() {
    for (crawl, name) in crawls() {
        let large = [vec![b'y'; ITEM_BYTES + 1], vec![b'z'; 900_000]];
        crawl.push(&[url(ITEM_BYTES), large[0].clone(), large[1].clone(), url(40)]);
        let summary = crawl.drain();
        assert_eq!(summary.counts(), (4, [2, 0, 0, 2]), "{name}: {summary:?}");
        let mut rejects = crawl.rejects();
        rejects.sort_by_key(|reject| reject["bytes"].as_u64());
        for (reject, item) in rejects.iter().zip(&large) {
            assert_shortened(&crawl, reject, item);
            let reason = reject["reason"].as_str().unwrap();
            assert!(reason.contains("more than source.item_bytes (131072)"), "{reason}");
        }
        assert_eq!(rejects.len(), 2, "{name}");
        // Items that come later pass.
        crawl.push(&urls(0, 2));
        assert_eq!(crawl.drain().counts(), (2, [2, 0, 0, 0]), "{name}");
    }
}

#[test]
fn a_server_that_accepts_too_little_is_refused() {
    let crawl = Crawl::on(small_server());
    for (command, arguments) in [("run", &["--drain"][..]), ("config check", &[])] {
        let output = crawl.command(command, arguments).output();
        assert_ne!(output.code(), Some(0), "{output:?}");
        let said = [output.text(), &output.stderr].concat();
        for words in ["source.item_bytes is 16.00 MiB", "at most 128.00 KiB", "128.00 MiB"] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
    let crawl = crawl.set(&format!("source.item_bytes={ITEM_BYTES}"));
    assert_eq!(crawl.command("config check", &[]).output().code(), Some(0));
    crawl.push(&urls(0, 1));
    assert_eq!(crawl.drain().counts(), (1, [1, 0, 0, 0]));
}

/// The daemon learns the lower limit with its next connection. The item waits in Redis.
#[test]
fn a_daemon_ends_if_a_limit_was_lowered_too_far() {
    for place in ["local", "redis"] {
        let crawl =
            Crawl::new().set(&format!("filter.place={place}")).set("source.item_bytes=2_097_152");
        let daemon = crawl.start();
        crawl.wait_until_idle();
        stop_process(&daemon);
        crawl.push(&[url(1_500_000)]);
        crawl.server.cli(&["config", "set", "proto-max-bulk-len", LEAST]);
        daemon.signal(Signal::CONT);
        let output = daemon.output(SOON);
        assert_ne!(output.code(), Some(0), "{output:?}");
        for words in ["lost the connection", "source.item_bytes is 2.00 MiB", "16.00 MiB"] {
            assert!(output.stderr.contains(words), "{words}: {output:?}");
        }
        crawl.server.cli(&["config", "set", "proto-max-bulk-len", "536870912"]);
        assert_eq!(crawl.drain().counts(), (1, [1, 0, 0, 0]));
    }
}

#[test]
fn a_long_item_of_the_forget_list_is_rejected_with_its_beginning() {
    let crawl = Crawl::on(small_server()).set(&format!("source.item_bytes={ITEM_BYTES}"));
    let daemon = crawl.start();
    let large = vec![1; 600_000];
    let () = crawl.connection().rpush("demo:forget", &[&b"bad"[..], &large, b"http://a/"]).unwrap();
    wait_until(SOON, "both rejects", || crawl.len(REJECTED) == 2);
    stop(daemon);
    let rejects = crawl.rejects();
    assert_eq!(rejects[0]["item"], "bad");
    assert_shortened(&crawl, &rejects[1], &large);
    assert_eq!(crawl.len("demo:forget") + crawl.len("urlseen:{demo:discovered}:forgetting"), 0);
}
