//! Items that are larger than `source.item_bytes`, and items as large as a server with the lowest
//! limits permits.

use std::collections::BTreeMap;

use redis::Commands;
use rustix::process::Signal;
use serde_json::Value;

use super::{Bytes, Crawl, REJECTED, SINK, rejected_item, stop, stop_process, urls};
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

/// Draws numbers, the same ones in each run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    /// Draws a length: that of the largest item, a little more or less, or a small one.
    fn length(&mut self) -> usize {
        let longest = [ITEM_BYTES - 2 + self.below(5), 1 + self.below(ITEM_BYTES)];
        [longest[0], longest[1], 1 + self.below(3000), 1 + self.below(60)][self.below(4)]
    }
}

/// Returns the pickle of a request whose `meta` repeats a value as often as the length permits.
fn pickle(number: usize, length: usize) -> Bytes {
    let text = |text: &str| {
        let length = u32::try_from(text.len()).unwrap();
        [b"X", &length.to_le_bytes()[..], text.as_bytes()].concat()
    };
    let (url, value) = (format!("http://p/{number}"), "v".repeat(1 + length % 50));
    let head = [&b"\x80\x02}("[..], &text("url"), &text(&url), &text("meta")].concat();
    let repeated = [&b"}("[..], &text("a"), b"](", &text(&value), b"q\x00"].concat();
    let rest = length.saturating_sub(head.len() + repeated.len() + 5);
    let again = b"h\x00".repeat(rest / 2);
    [&head[..], &repeated, &again, b"euu."].concat()
}

/// Returns an item of some form, and of about this length.
fn item(draw: &mut Draw, number: usize) -> Bytes {
    let length = draw.length();
    let mut bytes = match draw.below(6) {
        0 => format!("http://u/{number}/").into_bytes(),
        1 => format!("{{\"url\": \"http://j/{number}\", \"meta\": {{\"a\": \"").into_bytes(),
        2 => format!("{number:040x}\t").into_bytes(),
        3 => return pickle(number, length),
        4 => format!("no url {number} ").into_bytes(),
        _ => format!("\u{1}{number} ").into_bytes(),
    };
    let is_json = bytes[0] == b'{';
    let fill = [b'x', b'"', 1, 0xff][if is_json { 0 } else { draw.below(4) }];
    bytes.resize(length.max(bytes.len()) - if is_json { 3 } else { 0 }, fill);
    if is_json {
        bytes.extend(b"\"}}");
    }
    bytes
}

/// No commit breaks a connection, and each item is in the sink or whole in its reject, unless it is
/// too long.
#[test]
fn no_commit_exceeds_the_lowest_limits_of_a_server() {
    let mut draw = Draw(1);
    for (crawl, name) in crawls() {
        for emit in ["item", "start-url", "url"] {
            if emit != "item" && name.contains("zset") {
                continue;
            }
            let crawl = Crawl::on(small_server()).settings_of(&crawl);
            let crawl = crawl.set(&format!("sink.emit={emit}"));
            let items: Vec<_> = (0..150).map(|number| item(&mut draw, number)).collect();
            crawl.push(&items);
            let summary = crawl.drain();
            assert!(!summary.stderr.contains("connection"), "{name} {emit}: {summary:?}");
            assert_eq!(summary.count("items"), items.len(), "{name} {emit}");
            let [large, small] = [true, false]
                .map(|is_large| items.iter().filter(move |it| (it.len() > ITEM_BYTES) == is_large));
            let rejects = crawl.rejects();
            let (cut, whole): (Vec<_>, Vec<_>) =
                rejects.iter().partition(|reject| reject.get("bytes").is_some());
            assert_eq!(cut.len(), large.count(), "{name} {emit}");
            let whole: Vec<_> = whole.into_iter().map(rejected_item).collect();
            assert_eq!(whole.len() + crawl.len(SINK), small.clone().count(), "{name} {emit}");
            if emit == "item" && name.contains("list") {
                let found = counted(whole.into_iter().chain(crawl.list(SINK)));
                assert!(found == counted(small.cloned()), "{name}: each item byte for byte");
            }
        }
    }
}

/// Counts how often each item comes.
fn counted(items: impl Iterator<Item = Bytes>) -> BTreeMap<Bytes, usize> {
    let mut counts = BTreeMap::new();
    items.for_each(|item| *counts.entry(item).or_default() += 1);
    counts
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
