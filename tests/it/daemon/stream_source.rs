//! A Redis stream as source. The tests cite two rules. S1: the daemon removes no entry that other
//! programs have not read. S2: the daemon skips no entry without a message.

use std::collections::HashSet;

use redis::Connection;
use rustix::process::Signal;

use super::refusals::assert_refused;
use super::{Bytes, Crawl, OVERSIZE, PROCESSING, SINK, SOURCE, STATE, Summary, len, stop, urls};
use crate::util::redis::RedisServer;
use crate::util::wait::{SOON, wait_until};

/// Makes a crawl whose source is a stream. Its entries have the field `item`.
fn stream() -> Crawl {
    Crawl::new().set("source.kind=stream")
}

/// Runs a test with each place of the filter and each kind of sink.
fn each(test: impl Fn(Crawl)) {
    for place in ["local", "redis"] {
        for sink in ["list", "zset"] {
            let crawl = stream().set(&format!("filter.place={place}"));
            test(crawl.set(&format!("sink.kind={sink}")));
        }
    }
}

fn ask<T: redis::FromRedisValue>(connection: &mut Connection, words: &[&str]) -> T {
    redis::cmd(words[0]).arg(&words[1..]).query(connection).unwrap()
}

/// Adds entries with one item each. Returns their ids.
pub(super) fn add<T: AsRef<[u8]>>(crawl: &Crawl, items: &[T]) -> Vec<String> {
    let mut connection = crawl.connection();
    let mut add = |item: &T| {
        let mut command = redis::cmd("XADD");
        command.arg(SOURCE).arg("*").arg("item").arg(item.as_ref());
        command.query(&mut connection).unwrap()
    };
    items.iter().map(&mut add).collect()
}

/// Returns the ids of all entries in the stream.
fn ids(crawl: &Crawl) -> Vec<String> {
    type Entry = (String, Vec<Bytes>);
    let entries: Vec<Entry> = ask(&mut crawl.connection(), &["XRANGE", SOURCE, "-", "+"]);
    entries.into_iter().map(|(id, _)| id).collect()
}

fn cursor(crawl: &Crawl) -> Option<String> {
    ask(&mut crawl.connection(), &["HGET", STATE, "cursor"])
}

#[test]
fn entries_stay_are_deleted_or_are_trimmed_once_they_are_committed() {
    each(|crawl| {
        // S1: with `keep`, the daemon removes no entry.
        let mut kept = add(&crawl, &urls(0, 30));
        let crawl = crawl.set("source.batch=7");
        assert_eq!(crawl.drain().counts(), (30, [30, 0, 0, 0]));
        assert_eq!((ids(&crawl), cursor(&crawl)), (kept.clone(), kept.last().cloned()));
        // S1: the daemon removes the entries of its batches, and no others.
        let own = add(&crawl, &urls(20, 30));
        let crawl = crawl.set("source.after_commit=delete");
        assert_eq!(crawl.drain().counts(), (30, [20, 10, 0, 0]));
        assert_eq!((ids(&crawl), cursor(&crawl)), (kept.clone(), own.last().cloned()));
        kept = add(&crawl, &urls(50, 1));
        let crawl = crawl.set("source.after_commit=trim");
        assert_eq!(crawl.drain().counts(), (1, [1, 0, 0, 0]));
        assert_eq!((ids(&crawl), cursor(&crawl)), (Vec::new(), kept.pop()));
        let mut found = crawl.list(SINK);
        found.sort();
        let mut expected: Vec<Bytes> = urls(0, 51).into_iter().map(Bytes::from).collect();
        expected.sort();
        assert_eq!(found, expected);
        assert_eq!(crawl.drain().counts(), (0, [0, 0, 0, 0]));
    });
}

#[test]
fn an_item_is_the_first_value_of_its_field_and_an_entry_without_is_rejected_by_its_id() {
    each(|crawl| {
        let crawl = crawl.set("source.field=it's \\ me");
        let mut connection = crawl.connection();
        let field = "it's \\ me";
        for fields in [
            &["from", "a", field, "http://a/", field, "http://b/"][..],
            &["item", "http://c/"],
            &[field, ""],
            &[field, "/no/scheme"],
            &[field, "{\"url\": \"http://a/\", \"dont_filter\": true}"],
        ] {
            let _: String = ask(&mut connection, &[&["XADD", SOURCE, "*"], fields].concat());
        }
        assert_eq!(crawl.drain().counts(), (5, [1, 0, 1, 3]));
        let ids = ids(&crawl);
        let rejects = crawl.rejects();
        let reasons = rejects.iter().map(|reject| reject["reason"].as_str().unwrap());
        let reasons: Vec<_> = reasons.collect();
        for (reason, id) in reasons.iter().zip(&ids[1..4]) {
            assert!(reason.contains(&format!("entry {id}")), "{reason} {id}");
        }
        assert!(reasons[0].contains("no field \"it's \\\\ me\""), "{reasons:?}");
        assert!(reasons[2].contains("URL"), "{reasons:?}");
    });
}

#[test]
fn requeued_rejects_are_new_entries() {
    let crawl = stream();
    add(&crawl, &["a\tb", "c\td"]);
    assert_eq!(crawl.drain().counts(), (2, [0, 0, 0, 2]));
    let output = crawl.command("rejects requeue", &[]).output();
    assert!(output.text().contains("2 put back to demo:discovered"), "{output:?}");
    let crawl = crawl.set("source.item=tab");
    assert_eq!(crawl.drain().counts(), (2, [2, 0, 0, 0]));
    assert_eq!((ids(&crawl).len(), crawl.list(SINK)), (4, vec![b"a\tb".into(), b"c\td".into()]));
}

#[test]
fn an_item_that_is_too_large_for_a_reject_is_set_aside_and_requeued() {
    let crawl = Crawl::on(RedisServer::start_with(&["--proto-max-bulk-len", "1048576"]));
    let crawl = crawl.set("source.kind=stream").set("source.after_commit=delete");
    let large = vec![1_u8; 200 << 10];
    add(&crawl, &[large.clone(), b"http://a/".to_vec(), large.clone()]);
    assert_eq!(crawl.drain().counts(), (3, [1, 0, 0, 2]));
    let set_aside = crawl.list(OVERSIZE);
    assert_eq!((set_aside.len(), ids(&crawl).len()), (4, 0));
    assert!(set_aside[1] == large && set_aside[3] == large);
    let output = crawl.command("rejects requeue", &[]).output();
    assert!(output.text().contains("2 put back"), "{output:?}");
    assert_eq!((ids(&crawl).len(), crawl.len(OVERSIZE)), (2, 0));
    assert_eq!(crawl.drain().counts(), (2, [0, 0, 0, 2]));
}

/// Rule S1: the daemon must not trim entries that a consumer group has not read.
#[test]
fn a_stream_with_consumer_groups_is_not_trimmed() {
    let crawl = stream().set("source.after_commit=trim");
    let before = add(&crawl, &urls(0, 10));
    let mut connection = crawl.connection();
    let _: String = ask(&mut connection, &["XGROUP", "CREATE", SOURCE, "others", "0"]);
    let output = crawl.run(&["--drain"]).output();
    assert_refused(&output, &[SOURCE, "consumer groups", "XGROUP DESTROY"]);
    assert_eq!((ids(&crawl), crawl.len(SINK)), (before, 0));
    let _: usize = ask(&mut connection, &["XGROUP", "DESTROY", SOURCE, "others"]);
    assert_eq!(crawl.drain().counts(), (10, [10, 0, 0, 0]));
    // The group appears between the read and the commit of a batch.
    let crawl = crawl.set("sink.max_len=5").set("source.batch=5");
    let before = add(&crawl, &urls(10, 10));
    let mut daemon = crawl.start();
    daemon.wait_for_line("waiting", SOON);
    let _: String = ask(&mut connection, &["XGROUP", "CREATE", SOURCE, "others", "0"]);
    let _: usize = ask(&mut connection, &["DEL", SINK]);
    assert_refused(&daemon.output(SOON), &[SOURCE, "consumer groups"]);
    assert_eq!((ids(&crawl), crawl.len(SINK)), (before, 0));
    // The daemon is still permitted to delete the entries of its own batches.
    let crawl = crawl.set("source.after_commit=delete").set("sink.max_len=0");
    assert_eq!(crawl.drain().counts(), (10, [10, 0, 0, 0]));
}

/// Rule S2, no entry is skipped without a message: a stream that was deleted and created again can
/// have ids at or below the cursor. The daemon would never read these entries.
#[test]
fn a_deleted_or_new_stream_is_refused_until_the_cursor_is_deleted() {
    each(|crawl| {
        let last = add(&crawl, &urls(0, 10)).pop().unwrap();
        crawl.drain();
        let mut connection = crawl.connection();
        let _: usize = ask(&mut connection, &["DEL", SOURCE]);
        let output = crawl.run(&["--drain"]).output();
        assert_refused(&output, &[SOURCE, "is gone", &last, "HDEL"]);
        for number in 0..10 {
            let (id, url) = (format!("1-{}", number + 1), format!("http://example.com/{number}0"));
            let _: String = ask(&mut connection, &["XADD", SOURCE, &id, "item", &url]);
        }
        let output = crawl.run(&["--drain"]).output();
        assert_refused(&output, &[SOURCE, "was created again: its last id is 1-10", &last, "HDEL"]);
        assert_eq!((crawl.len(SINK), cursor(&crawl)), (10, Some(last)));
        let _: usize = ask(&mut connection, &["HDEL", STATE, "cursor"]);
        assert_eq!(crawl.drain().counts(), (10, [10, 0, 0, 0]));
    });
}

/// Rule S2, no entry is skipped without a message: the stream changes between the read and the
/// commit of a batch, and while the daemon waits for more entries.
#[test]
fn a_running_daemon_notices_a_new_stream() {
    let crawl = stream().set("sink.max_len=5").set("source.batch=5");
    add(&crawl, &urls(0, 10));
    let mut daemon = crawl.start();
    daemon.wait_for_line("waiting", SOON);
    let mut connection = crawl.connection();
    let first = cursor(&crawl);
    let _: usize = ask(&mut connection, &["DEL", SOURCE]);
    let _: String = ask(&mut connection, &["XADD", SOURCE, "1-1", "item", "http://a/"]);
    let _: usize = ask(&mut connection, &["DEL", SINK]);
    assert_refused(&daemon.output(SOON), &["was created again: its last id is 1-1"]);
    assert_eq!((crawl.len(SINK), cursor(&crawl)), (0, first));

    let crawl = stream();
    add(&crawl, &urls(0, 1));
    let daemon = crawl.start();
    crawl.wait_for_sink(1);
    let mut connection = crawl.connection();
    let _: usize = ask(&mut connection, &["DEL", SOURCE]);
    let _: String = ask(&mut connection, &["XADD", SOURCE, "1-1", "item", "http://a/"]);
    assert_refused(&daemon.output(SOON), &["was created again: its last id is 1-1"]);
}

/// Rule S2, no entry is skipped without a message: if other programs delete unread entries, the
/// crawl loses them. The daemon reports each of these entries once.
#[test]
fn unread_entries_that_other_programs_delete_are_counted_once() {
    let lost = |summary: &Summary| summary.count("source_lost");
    for after in ["keep", "delete", "trim"] {
        let crawl = stream().set(&format!("source.after_commit={after}"));
        let mut connection = crawl.connection();
        // Entries that are deleted before the crawl starts do not count as lost.
        let old = add(&crawl, &urls(0, 5));
        let _: usize = ask(&mut connection, &["XDEL", SOURCE, &old[0], &old[3]]);
        let summary = crawl.drain();
        assert_eq!((summary.counts(), lost(&summary)), ((3, [3, 0, 0, 0]), 0));
        // Entries that the daemon has read do not count as lost.
        let _: usize = ask(&mut connection, &["XTRIM", SOURCE, "MAXLEN", "0"]);
        let summary = crawl.drain();
        assert_eq!((summary.counts(), lost(&summary)), ((0, [0, 0, 0, 0]), 0));
        let new = add(&crawl, &urls(10, 10));
        let middle = ["XDEL", SOURCE, new[4].as_str(), &new[6], &new[9]];
        let _: usize = ask(&mut connection, &middle);
        let _: usize = ask(&mut connection, &["XTRIM", SOURCE, "MINID", &new[2]]);
        let summary = crawl.drain();
        assert_eq!((summary.counts(), lost(&summary)), ((5, [5, 0, 0, 0]), 5), "{summary:?}");
        assert!(summary.stderr.contains("5 entries"), "{summary:?}");
        let summary = crawl.drain();
        assert_eq!((summary.counts(), lost(&summary)), ((0, [0, 0, 0, 0]), 0));
    }
}

#[test]
fn a_daemon_that_is_killed_repeatedly_loses_and_repeats_nothing() {
    for after in ["keep", "delete", "trim"] {
        let crawl = stream().set("source.batch=10");
        let crawl = crawl.set(&format!("source.after_commit={after}"));
        // Only the cursor shows that these items were emitted before.
        let unfiltered =
            |number| format!(r#"{{"url": "http://example.com/{number}", "dont_filter": true}}"#);
        let items: Vec<String> = (0..3000).map(unfiltered).collect();
        add(&crawl, &items);
        for round in 1..=4 {
            let daemon = crawl.run(&[]).start();
            crawl.wait_for_sink(round * 500);
            daemon.signal(Signal::KILL);
            daemon.output(SOON);
        }
        crawl.drain();
        let found = crawl.list(SINK);
        let distinct: HashSet<&Bytes> = found.iter().collect();
        assert_eq!((found.len(), distinct.len()), (3000, 3000), "{after}");
    }
}

#[test]
fn a_stopped_daemon_leaves_the_rest_in_the_stream() {
    let crawl = stream().set("sink.max_len=5").set("source.batch=5");
    let all = add(&crawl, &urls(0, 30));
    let mut daemon = crawl.start();
    daemon.wait_for_line("waiting", SOON);
    let summary = stop(daemon);
    assert_eq!(summary.counts(), (5, [5, 0, 0, 0]));
    // The items that were not emitted are entries after the cursor.
    assert_eq!((summary.count("source"), summary.count("processing")), (25, 0));
    assert_eq!((cursor(&crawl), crawl.len(PROCESSING)), (Some(all[4].clone()), 0));
    let crawl = crawl.set("sink.max_len=0");
    assert_eq!(crawl.drain().counts(), (25, [25, 0, 0, 0]));
}

#[test]
fn entries_that_come_later_wake_the_daemon_and_forgotten_ones_pass_again() {
    let crawl = stream();
    let daemon = crawl.start();
    let mut connection = crawl.connection();
    for number in 0..20 {
        wait_until(SOON, "blocked daemon", || {
            let clients: String = ask(&mut connection, &["INFO", "clients"]);
            clients.contains("blocked_clients:1")
        });
        add(&crawl, &urls(number, 1));
        crawl.wait_for_sink(number + 1);
    }
    let _: usize = ask(&mut connection, &["RPUSH", "demo:forget", "http://example.com/7"]);
    wait_until(SOON, "forgotten URL", || len(&mut connection, "demo:forget") == 0);
    let forgetting = "urlseen:{demo:discovered}:forgetting";
    wait_until(SOON, "logged URL", || len(&mut connection, forgetting) == 0);
    add(&crawl, &urls(5, 3));
    crawl.wait_for_sink(21);
    assert_eq!(stop(daemon).counts(), (23, [21, 2, 0, 0]));
}

#[test]
fn the_permissions_for_a_stream_are_checked_before_any_write() {
    for (after, command) in [
        ("keep", "xrange"),
        ("keep", "xread"),
        ("keep", "xinfo|stream"),
        ("keep", "exists"),
        ("keep", "hset"),
        ("delete", "xdel"),
        ("trim", "xtrim"),
    ] {
        let crawl = stream().with_user("crawler").set(&format!("source.after_commit={after}"));
        add(&crawl, &urls(0, 10));
        let before = crawl.dump();
        crawl.server.cli(&["acl", "setuser", "crawler", &format!("-{command}")]);
        let output = crawl.run(&["--drain"]).output();
        let name = command.to_uppercase();
        assert_refused(&output, &["crawler", name.split('|').next().unwrap(), "ACL SETUSER"]);
        assert_eq!(crawl.dump(), before, "{command}");
    }
    // The key holds a list, because the source was a list before.
    let crawl = Crawl::new();
    crawl.push(&urls(0, 1));
    let output = crawl.set("source.kind=stream").run(&["--drain"]).output();
    assert_refused(&output, &[SOURCE, "holds a list"]);
}
