//! Keys of another type, and denied commands. The daemon refuses both before the first item. If a
//! key changes its type later, or a command is denied later, the daemon stops, and no commit is
//! half done.

use std::collections::BTreeMap;

use redis::Commands;
use rustix::process::Signal;

use super::{
    Bytes, Crawl, LEASE, PROCESSING, REJECTED, SINK, SOURCE, STATE, is_sorted, stop_process, urls,
};
use crate::util::binary::Output;
use crate::util::wait::SOON;

pub(super) const KEYS: [&str; 6] = [SOURCE, PROCESSING, STATE, LEASE, SINK, REJECTED];

/// Commands that a commit needs, each with its key.
const COMMANDS: [(&str, &str); 9] = [
    ("rename", SOURCE),
    ("ltrim", PROCESSING),
    ("hset", STATE),
    ("get", LEASE),
    ("rpush", SINK),
    ("lindex", SINK),
    ("ltrim", SINK),
    ("rpush", REJECTED),
    ("ltrim", REJECTED),
];

/// Number of items in a batch that is too large for a commit by a single script.
const LARGE: usize = 100;

/// Commands that the commit of a small batch needs, each with its key.
const NEEDED_BY_SMALL: [(&str, &str); 4] =
    [("ltrim", PROCESSING), ("hset", STATE), ("rpush", SINK), ("rpush", REJECTED)];

#[track_caller]
pub(super) fn assert_refused(output: &Output, words: &[&str]) {
    assert_eq!(output.code(), Some(3), "{output:?}");
    for word in words {
        assert!(output.stderr.contains(word), "no {word:?} in {}", output.stderr);
    }
    assert!(output.stdout.is_empty(), "{output:?}");
}

/// Next action of the daemon when a test changes Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Claim,
    Commit,
}

/// Stops the process of a daemon before it claims items, or before it commits a batch with items of
/// every kind. Calls `harm`, and lets the daemon continue. The daemon must then end, each item must
/// be in its old place, and the state of the crawl must be unchanged. `undo` removes the additions
/// of `harm`.
pub(super) fn harm(
    crawl: Crawl,
    next: Next,
    harm: impl FnOnce(&Crawl),
    undo: impl FnOnce(&Crawl),
) -> Output {
    harm_batch(10, crawl, next, harm, undo)
}

/// Does the same as [`harm`], with this number of items in the batch.
fn harm_batch(
    count: usize,
    crawl: Crawl,
    next: Next,
    harm: impl FnOnce(&Crawl),
    undo: impl FnOnce(&Crawl),
) -> Output {
    let crawl = if next == Next::Commit { crawl.set("sink.max_len=10") } else { crawl };
    let mut daemon = crawl.start();
    crawl.push(&urls(0, 10));
    crawl.wait_for_sink(10);
    // The first reads have few items, because their sizes are unknown.
    crawl.push(&(0..50).flat_map(|_| urls(0, 10)).collect::<Vec<_>>());
    crawl.wait_until_idle();
    let push = || {
        let mut items = urls(5, count);
        items.extend([String::new(), "{".to_owned()]);
        crawl.push(&items);
    };
    match next {
        Next::Claim => {
            stop_process(&daemon);
            push();
        }
        Next::Commit => {
            push();
            daemon.wait_for_line("waiting", SOON);
            stop_process(&daemon);
            let trim = if is_sorted(&mut crawl.connection(), SINK) {
                ["zremrangebyrank", SINK, "1", "-1"]
            } else {
                ["ltrim", SINK, "0", "0"]
            };
            crawl.server.cli(&trim);
        }
    }
    let before = standing(&crawl);
    harm(&crawl);
    daemon.signal(Signal::CONT);
    let output = daemon.output(SOON);
    undo(&crawl);
    assert_eq!(standing(&crawl), before, "{next:?}: {output:?}");
    output
}

/// Returns all keys, with the claimed and the waiting items as one list.
fn standing(crawl: &Crawl) -> BTreeMap<String, Bytes> {
    let mut dump = crawl.dump();
    if let Some(processing) = dump.remove(PROCESSING) {
        assert!(dump.insert(SOURCE.to_owned(), processing).is_none());
    }
    dump
}

/// Point 2 of ARCHITECTURE.md: a commit is executed completely or not at all.
#[test]
fn a_key_that_changes_its_type_stops_the_daemon_with_nothing_half_done() {
    for (next, key) in cases(KEYS) {
        let aside = format!("{key}:aside");
        let put_set = |crawl: &Crawl| {
            let mut connection = crawl.connection();
            if connection.exists(key).unwrap() {
                let () = connection.rename(key, &aside).unwrap();
            }
            let () = connection.sadd(key, "member").unwrap();
        };
        let put_back = |crawl: &Crawl| {
            let mut connection = crawl.connection();
            let kind: String = redis::cmd("TYPE").arg(key).query(&mut connection).unwrap();
            assert_eq!(kind, "set", "{key}");
            let () = connection.del(key).unwrap();
            if connection.exists(&aside).unwrap() {
                let () = connection.rename(&aside, key).unwrap();
            }
        };
        let output = harm(Crawl::new(), next, put_set, put_back);
        assert_refused(&output, &[key, "holds a set", "RENAME"]);
    }
}

#[test]
fn a_daemon_that_had_to_stop_releases_its_lease() {
    let crawl = Crawl::new();
    let daemon = crawl.start();
    let () = crawl.connection().set(SOURCE, "string").unwrap();
    let output = daemon.output(SOON);
    assert_refused(&output, &[SOURCE, "holds a string"]);
    let () = crawl.connection().del(SOURCE).unwrap();
    assert_eq!(crawl.drain().ending(), "drained");
}

/// Combines each key with both next actions. The first key, the source, is not combined with a
/// commit, because a commit does not use the source.
fn cases<T: Copy, const N: usize>(keys: [T; N]) -> impl Iterator<Item = (Next, T)> {
    let commits = keys.into_iter().skip(1).map(|key| (Next::Commit, key));
    keys.into_iter().map(|key| (Next::Claim, key)).chain(commits)
}

#[test]
fn a_command_denied_later_stops_the_daemon_with_nothing_half_done() {
    let large = cases(COMMANDS).map(|case| (LARGE, case));
    let small = cases(NEEDED_BY_SMALL).map(|case| (10, case));
    for (count, (next, (command, key))) in large.chain(small) {
        let deny = |crawl: &Crawl| deny_on_key(crawl, command, key);
        let crawl = Crawl::new().with_user("crawler");
        let output = harm_batch(count, crawl, next, deny, |_| ());
        assert!(output.stderr.contains("may not"), "{command} {key}: {output:?}");
        assert_refused(&output, &["crawler", "ACL SETUSER"]);
    }
}

/// Denies a command on one key only, with a selector of Redis 7.
pub(super) fn deny_on_key(crawl: &Crawl, command: &str, denied: &str) {
    let others: Vec<String> =
        KEYS.iter().filter(|key| **key != denied).map(|key| format!("~{key}")).collect();
    let selector = format!("(+{command} {})", others.join(" "));
    crawl.server.cli(&["acl", "setuser", "crawler", &format!("-{command}"), &selector]);
}

#[test]
fn the_return_of_claimed_items_checks_its_permissions_first() {
    for command in ["lmove", "rename", "del"] {
        let crawl = Crawl::new().with_user("crawler").set("sink.max_len=5").set("source.batch=5");
        crawl.push(&urls(0, 30));
        let mut daemon = crawl.start();
        daemon.wait_for_line("waiting", SOON);
        // These items are pushed after the claim. So the source is not empty, and the daemon must
        // move items to return the claimed ones.
        crawl.push(&urls(30, 40));
        let before = crawl.dump();
        crawl.server.cli(&["acl", "setuser", "crawler", &format!("-{command}")]);
        daemon.signal(Signal::TERM);
        let output = daemon.output(SOON);
        assert_eq!(crawl.dump(), before, "{command}: {output:?}");
        assert_refused(&output, &["crawler", &command.to_uppercase(), "ACL SETUSER"]);
    }
}
