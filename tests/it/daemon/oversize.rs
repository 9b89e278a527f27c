//! Items whose reject or start URL is too large for Redis. The daemon sets them aside and
//! continues.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use redis::Commands;
use rustix::process::Signal;
use serde_json::Value;

use super::{Bytes, Crawl, LEASE, OVERSIZE, REJECTED, SINK, STATE, stop, stop_process, urls};
use crate::util::redis::RedisServer;
use crate::util::wait::{SOON, wait_until};

/// Lowest value that Redis permits for `proto-max-bulk-len`, its limit on the bytes of one argument
/// of a command.
const LEAST: &str = "1048576";

/// Makes an invalid item whose JSON is six times as long. This JSON is too long for a server with
/// [`LEAST`].
fn control() -> Bytes {
    vec![1; 200 << 10]
}

/// Makes an invalid item of 1.5 MiB. Its JSON has about the same length.
fn text() -> Bytes {
    vec![b'x'; 3 << 19]
}

/// Starts a server with [`LEAST`] as its limit.
fn small_server() -> RedisServer {
    RedisServer::start_with(&["--proto-max-bulk-len", LEAST])
}

/// Runs a test with all combinations of the kind of sink, the place of the filter, and the end of
/// the source.
fn each(server: impl Fn() -> RedisServer, test: impl Fn(Crawl, bool)) {
    for sink in ["list", "zset"] {
        for store in ["local", "redis"] {
            for from in ["left", "right"] {
                test(of_kind(server(), sink, store, from), from == "left");
            }
        }
    }
}

/// Runs a test in two cases. Together they have each kind of sink, each place of the filter, and
/// both ends of the source. This is for tests that are slow because they wait between connections.
fn each_pair(test: impl Fn(Crawl, bool)) {
    test(of_kind(RedisServer::start(), "list", "local", "left"), true);
    test(of_kind(RedisServer::start(), "zset", "redis", "right"), false);
}

fn of_kind(server: RedisServer, sink: &str, store: &str, from: &str) -> Crawl {
    Crawl::on(server)
        .set(&format!("sink.kind={sink}"))
        .set(&format!("filter.place={store}"))
        .set(&format!("source.take_from={from}"))
}

/// Returns the oversize items, and the reasons of their rejects. Checks that each item comes
/// directly after its reject.
#[track_caller]
fn oversize(crawl: &Crawl) -> (Vec<Bytes>, Vec<String>) {
    let list = crawl.list(OVERSIZE);
    let pairs = list.chunks(2).map(|pair| {
        let json: Value = serde_json::from_slice(&pair[0]).unwrap();
        assert_eq!(json["bytes"], pair[1].len(), "{json}");
        let begins = json["begins"].as_str().unwrap();
        assert!(pair[1].starts_with(begins.as_bytes()), "{json}");
        assert_eq!(json["sha1"].as_str().unwrap().len(), 40, "{json}");
        (pair[1].clone(), json["reason"].as_str().unwrap().to_owned())
    });
    pairs.unzip()
}

/// Pushes items so that the daemon takes them in this order.
fn push(crawl: &Crawl, from_left: bool, items: &[Bytes]) {
    let mut items = items.to_vec();
    if !from_left {
        items.reverse();
    }
    crawl.push(&items);
}

fn bytes(items: Vec<String>) -> Vec<Bytes> {
    items.into_iter().map(String::into_bytes).collect()
}

#[test]
fn an_item_with_a_too_large_reject_is_kept_beside_the_reject() {
    each(small_server, |crawl, from_left| {
        let links = bytes(urls(0, 4));
        let items = [&links[..2], &[control(), b"bad".to_vec(), control()], &links[2..]].concat();
        push(&crawl, from_left, &items);
        let summary = crawl.drain();
        assert_eq!(summary.counts(), (7, [4, 0, 0, 3]), "{summary:?}");
        let (items, reasons) = oversize(&crawl);
        assert!(items == [control(), control()]);
        assert!(reasons.iter().all(|reason| reason.contains("URL")), "{reasons:?}");
        assert_eq!((crawl.len(SINK), crawl.rejects().len()), (4, 1));
        // Items that come after the oversize items pass.
        push(&crawl, from_left, &bytes(urls(2, 4)));
        assert_eq!(crawl.drain().counts(), (4, [2, 2, 0, 0]));
    });
}

#[test]
fn a_url_that_is_too_long_for_a_start_url_is_rejected() {
    each(small_server, |crawl, from_left| {
        let crawl = crawl.set("sink.emit=start-url");
        let grows = [b"http://a/", &control()[..]].concat();
        let mut long = b"http://b/".to_vec();
        long.resize((1 << 20) - 46, b'x');
        let items = [bytes(urls(0, 1)), vec![grows.clone(), long.clone()], bytes(urls(1, 1))];
        push(&crawl, from_left, &items.concat());
        let summary = crawl.drain();
        assert_eq!(summary.counts(), (4, [2, 0, 0, 2]), "{summary:?}");
        let (items, reasons) = oversize(&crawl);
        assert!(items == [grows, long]);
        assert!(reasons[0].contains("over twice the size of the item"), "{reasons:?}");
        assert!(reasons[1].contains("proto-max-bulk-len"), "{reasons:?}");
    });
}

#[test]
fn a_restart_in_the_middle_loses_and_repeats_nothing() {
    each(small_server, |crawl, from_left| {
        let crawl = crawl.set("source.batch=3");
        let links = bytes(urls(0, 100));
        let items: Vec<Bytes> =
            links.chunks(10).flat_map(|ten| [ten, &[control()]].concat()).collect();
        push(&crawl, from_left, &items);
        for round in 1..=3 {
            let daemon = crawl.start();
            crawl.wait_for_sink(20 * round);
            daemon.signal(Signal::KILL);
            drop(daemon);
            // Without a storage folder, the new daemon cannot know that the earlier one is dead.
            let () = crawl.connection().del(LEASE).unwrap();
        }
        crawl.drain();
        let mut out = crawl.list(SINK);
        out.sort_unstable();
        let mut links = links;
        links.sort_unstable();
        assert!(out == links, "{}", out.len());
        assert!(oversize(&crawl).0 == vec![control(); 10]);
    });
}

/// The daemon learns the lower limit with its next connection.
#[test]
fn a_daemon_notices_a_lowered_limit() {
    each(RedisServer::start, |crawl, from_left| {
        let daemon = crawl.start();
        crawl.wait_until_idle();
        stop_process(&daemon);
        push(&crawl, from_left, &[bytes(urls(0, 2)), vec![text()], bytes(urls(2, 2))].concat());
        crawl.server.cli(&["config", "set", "proto-max-bulk-len", LEAST]);
        daemon.signal(Signal::CONT);
        crawl.wait_for_sink(4);
        crawl.wait_until_idle();
        let summary = stop(daemon);
        assert_eq!(summary.counts(), (5, [4, 0, 0, 1]), "{summary:?}");
        assert_eq!(summary.stderr.matches("lost the connection").count(), 1, "{summary:?}");
        assert!(oversize(&crawl).0 == [text()]);
    });
}

/// The daemon's user has no permission to read the limit, so only broken connections show it. The
/// daemon sets the item aside in another batch, which has its own record in the log.
#[test]
fn an_item_that_breaks_connections_is_found_and_set_aside() {
    each_pair(|crawl, from_left| {
        let crawl = crawl.with_user("blind");
        crawl.server.cli(&["acl", "setuser", "blind", "-config"]);
        push(&crawl, from_left, &[bytes(urls(0, 2)), vec![text()], bytes(urls(2, 2))].concat());
        crawl.server.cli(&["config", "set", "proto-max-bulk-len", LEAST]);
        let mut daemon = crawl.start();
        daemon.wait_for_line("read the setting proto-max-bulk-len", SOON);
        crawl.wait_for_sink(4);
        crawl.wait_until_idle();
        let summary = stop(daemon);
        assert_eq!(summary.counts(), (5, [4, 0, 0, 1]), "{summary:?}");
        for words in ["tested again, one by one", "the item is set aside"] {
            assert_eq!(summary.stderr.matches(words).count(), 1, "{words}: {summary:?}");
        }
        assert!(oversize(&crawl).0 == [text()]);
    });
}

/// Number of connections that the commit of an item may break before the item is set aside.
const CUTS: usize = 6;

/// The last connection breaks after the commit. The head in Redis shows this commit, so the daemon
/// must not test an item again, or set one aside.
#[test]
fn a_commit_before_a_broken_connection_is_not_repeated() {
    each_pair(|crawl, from_left| {
        let crawl = crawl.set("source.batch=1");
        let large = |number: usize| {
            let mut large = format!("{number:040x}\t").into_bytes();
            large.resize(1 << 20, b'x');
            large
        };
        let items = [vec![large(1), large(2)], bytes(urls(0, 2))].concat();
        push(&crawl, from_left, &items);
        let (socket, cut) = cutting_proxy(&crawl.server.folder().join("socket"), CUTS);
        let url = format!("unix://{}", socket.display());
        let output = crawl.run_at(&url, &["--drain", "--json"]).output();
        assert_eq!(output.code(), Some(0), "{output:?}");
        assert_eq!(cut.load(Ordering::SeqCst), CUTS);
        assert!(!output.stderr.contains("has broken"), "{}", output.stderr);
        let mut out = crawl.list(SINK);
        out.sort_unstable();
        let mut items = items;
        items.sort_unstable();
        assert!(out == items, "{}", out.len());
        assert_eq!((crawl.len(OVERSIZE), crawl.len(REJECTED)), (0, 0));
    });
}

#[test]
fn an_item_of_the_forget_list_that_is_too_large_is_kept() {
    let crawl = Crawl::on(small_server());
    let daemon = crawl.start();
    let mut connection = crawl.connection();
    let () = connection.rpush("demo:forget", &[&b"bad"[..], &control(), b"http://a/"]).unwrap();
    wait_until(SOON, "oversize item", || crawl.len(OVERSIZE) == 2);
    stop(daemon);
    assert!(oversize(&crawl).0 == [control()]);
    assert_eq!(crawl.rejects().len(), 1);
    assert_eq!(crawl.len("demo:forget") + crawl.len("urlseen:{demo:discovered}:forgetting"), 0);
}

#[test]
fn oversize_items_count_as_rejects_and_are_dropped_last() {
    each(small_server, |crawl, from_left| {
        let crawl = crawl
            .set("source.batch=1")
            .set("rejects.max_len=2")
            .set("rejects.when_full=drop-oldest");
        let bad = |name: &str| name.as_bytes().to_vec();
        push(&crawl, from_left, &[control(), bad("1"), bad("2"), bad("3")]);
        let summary = crawl.drain();
        assert_eq!((summary.count("rejected"), summary.count("rejects_dropped")), (4, 2));
        assert_eq!((crawl.len(OVERSIZE), crawl.rejects().len()), (2, 1));
        assert_eq!(crawl.rejects()[0]["item"], "3");
        push(&crawl, from_left, &[control(), control()]);
        assert_eq!(crawl.drain().count("rejects_dropped"), 2);
        assert_eq!((crawl.len(OVERSIZE), crawl.len(REJECTED)), (4, 0));
    });
}

/// Starts a proxy for the server at `upstream`. The proxy closes the first `cuts` connections that
/// send more than half a mebibyte. It closes the last of them after a commit, and each earlier one
/// before the server gets the whole command.
fn cutting_proxy(upstream: &Path, cuts: usize) -> (PathBuf, Arc<AtomicUsize>) {
    let socket = upstream.with_file_name("proxy");
    let _ = fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).unwrap();
    let (upstream, cut) = (upstream.to_owned(), Arc::<AtomicUsize>::default());
    let told = Arc::clone(&cut);
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = UnixStream::connect(&upstream).unwrap();
            let (cut, sent) = (Arc::clone(&cut), Arc::<AtomicUsize>::default());
            let ends = [client, server];
            for direction in [0, 1] {
                let [from, to] = [direction, 1 - direction].map(|it| ends[it].try_clone().unwrap());
                let (cut, sent) = (Arc::clone(&cut), Arc::clone(&sent));
                let upstream = upstream.clone();
                thread::spawn(move || {
                    pump(from, to, |bytes| {
                        if direction == 0 {
                            let before = sent.fetch_add(bytes.len(), Ordering::SeqCst);
                            before + bytes.len() > 1 << 19
                                && cut.load(Ordering::SeqCst) + 1 < cuts
                                && cut.fetch_add(1, Ordering::SeqCst) < cuts
                        } else {
                            sent.load(Ordering::SeqCst) > 1 << 20
                                && cut.load(Ordering::SeqCst) + 1 == cuts
                                && has_committed(&upstream)
                                && cut.fetch_add(1, Ordering::SeqCst) < cuts
                        }
                    });
                });
            }
        }
    });
    (socket, told)
}

/// Returns true if the crawl has a commit in Redis.
fn has_committed(server: &Path) -> bool {
    let client = redis::Client::open(format!("unix://{}", server.display())).unwrap();
    let seq: Option<u64> = client.get_connection().unwrap().hget(STATE, "seq").unwrap();
    seq.is_some_and(|seq| seq > 0)
}

/// Passes bytes on until `is_cut` returns true. Then it closes both ends.
fn pump(mut from: UnixStream, mut to: UnixStream, is_cut: impl Fn(&[u8]) -> bool) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if is_cut(&buffer[..count]) || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    for end in [from, to] {
        let _ = end.shutdown(Shutdown::Both);
    }
}
