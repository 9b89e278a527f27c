//! Keys of another type and commands denied: refused before the first item, or, where it happens
//! later, stopped at, with nothing half done.

use redis::Commands;
use rustix::process::Signal;

use super::{Crawl, LEASE, READY, REJECTED, SINK, SOURCE, STATE, TAKEN, urls};
use crate::util::binary::{Daemon, Output};
use crate::util::wait::{SOON, wait_until};

const KEYS: [&str; 6] = [SOURCE, TAKEN, STATE, LEASE, SINK, REJECTED];

/// A command for each key that the daemon runs on it, and that a commit cannot do without.
const COMMANDS: [(&str, &str); 6] = [
    ("rename", SOURCE),
    ("ltrim", TAKEN),
    ("hset", STATE),
    ("get", LEASE),
    ("rpush", SINK),
    ("rpush", REJECTED),
];

#[track_caller]
fn assert_refused(output: &Output, words: &[&str]) {
    assert_eq!(output.code(), Some(3), "{output:?}");
    for word in words {
        assert!(output.stderr.contains(word), "no {word:?} in {}", output.stderr);
    }
    assert!(output.stdout.is_empty(), "{output:?}");
}

#[test]
fn a_key_of_another_type_is_refused_before_anything_is_touched() {
    for key in KEYS {
        let crawl = Crawl::new();
        if key != SOURCE {
            crawl.push(&urls(0, 10));
        }
        let () = crawl.connection().sadd(key, "member").unwrap();
        let before = crawl.dump();
        let output = crawl.run(&["--drain"]).output();
        assert_refused(&output, &[key, "holds a set", "RENAME"]);
        assert!(!output.stderr.contains(READY), "{output:?}");
        assert_eq!(crawl.dump(), before, "{key}");
    }
}

/// Puts a batch of each kind of item into the source of a daemon that cannot see it yet, as it is
/// stopped, does `harm`, and lets it go on. Then it must end with nothing half done: each item is
/// where it was, and the crawl stands where it stood.
fn harm(crawl: &Crawl, harm: impl FnOnce(), undo: impl FnOnce()) -> Output {
    let daemon = crawl.start();
    crawl.push(&urls(0, 10));
    crawl.wait_for_sink(10);
    crawl.wait_until_idle();
    stop_process(&daemon);
    crawl.push(&urls(5, 10));
    crawl.push(&["", "{"]);
    let before = crawl.dump();
    harm();
    daemon.signal(Signal::CONT);
    let output = daemon.output(SOON);
    undo();
    let mut after = crawl.dump();
    // Claimed or not, the items are one list.
    if let Some(taken) = after.remove(TAKEN) {
        assert!(after.insert(SOURCE.to_owned(), taken).is_none());
    }
    assert_eq!(after, before, "{output:?}");
    output
}

/// Stops the process where it is, and waits until it is.
fn stop_process(daemon: &Daemon) {
    daemon.signal(Signal::STOP);
    wait_until(SOON, "stopped process", || {
        let status = std::fs::read_to_string(format!("/proc/{}/stat", daemon.id())).unwrap();
        status.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
    });
}

#[test]
fn a_key_that_changes_its_type_stops_the_daemon_with_nothing_half_done() {
    for key in KEYS {
        let crawl = Crawl::new();
        let mut connection = crawl.connection();
        let mut other = crawl.connection();
        let aside = format!("{key}:aside");
        let was_there = std::cell::Cell::new(false);
        let output = harm(
            &crawl,
            || {
                was_there.set(connection.exists(key).unwrap());
                if was_there.get() {
                    let () = connection.rename(key, &aside).unwrap();
                }
                let () = connection.sadd(key, "member").unwrap();
            },
            || {
                let kind: String = redis::cmd("TYPE").arg(key).query(&mut other).unwrap();
                assert_eq!(kind, "set", "{key}");
                let () = other.del(key).unwrap();
                if was_there.get() {
                    let () = other.rename(&aside, key).unwrap();
                }
            },
        );
        assert_refused(&output, &[key, "set", "RENAME"]);
    }
}

#[test]
fn a_denied_command_is_refused_before_anything_is_touched() {
    for (command, key) in COMMANDS {
        let crawl = Crawl::new().with_user("crawler");
        crawl.push(&urls(0, 10));
        let before = crawl.dump();
        crawl.server.cli(&["acl", "setuser", "crawler", &format!("-{command}")]);
        let output = crawl.run(&["--drain"]).output();
        assert_refused(&output, &["crawler", &command.to_uppercase(), "ACL SETUSER"]);
        assert_eq!(crawl.dump(), before, "{command} {key}");
    }
}

#[test]
fn a_denied_key_is_refused_before_anything_is_touched() {
    for denied in KEYS {
        let crawl = Crawl::new().with_user("crawler");
        crawl.push(&urls(0, 10));
        let before = crawl.dump();
        allow_all_keys_but(&crawl, denied);
        let output = crawl.run(&["--drain"]).output();
        assert_refused(&output, &["crawler", &format!("~{denied}"), "ACL SETUSER"]);
        assert_eq!(crawl.dump(), before, "{denied}");
    }
}

fn allow_all_keys_but(crawl: &Crawl, denied: &str) {
    crawl.server.cli(&["acl", "setuser", "crawler", "resetkeys"]);
    for key in KEYS.iter().filter(|key| **key != denied) {
        crawl.server.cli(&["acl", "setuser", "crawler", &format!("~{key}")]);
    }
}

#[test]
fn a_command_denied_later_stops_the_daemon_with_nothing_half_done() {
    for (command, key) in COMMANDS {
        let crawl = Crawl::new().with_user("crawler");
        let deny = format!("-{command}");
        let output =
            harm(&crawl, || drop(crawl.server.cli(&["acl", "setuser", "crawler", &deny])), || ());
        let command = command.to_uppercase();
        assert!(output.stderr.contains("may not"), "{command} {key}: {output:?}");
        assert_refused(&output, &["crawler", &command, "ACL SETUSER"]);
    }
}

#[test]
fn what_giving_back_needs_is_checked_before_it_begins() {
    for command in ["lrange", "lpush", "rpush", "del", "rename"] {
        let crawl = Crawl::new().with_user("crawler").set("sink.max_len=5").set("source.batch=5");
        crawl.push(&urls(0, 30));
        let mut daemon = crawl.start();
        daemon.wait_for_line("waiting", SOON);
        // Behind what is claimed, so that giving back has to move items.
        crawl.push(&urls(30, 40));
        let before = crawl.dump();
        crawl.server.cli(&["acl", "setuser", "crawler", &format!("-{command}")]);
        daemon.signal(Signal::TERM);
        let output = daemon.output(SOON);
        assert_eq!(crawl.dump(), before, "{command}: {output:?}");
        assert_refused(&output, &["crawler", &command.to_uppercase(), "ACL SETUSER"]);
    }
}

#[test]
fn a_key_denied_later_stops_the_daemon_with_nothing_half_done() {
    for denied in KEYS {
        let crawl = Crawl::new().with_user("crawler");
        let output = harm(&crawl, || allow_all_keys_but(&crawl, denied), || ());
        assert_refused(&output, &["crawler", &format!("~{denied}"), "ACL SETUSER"]);
    }
}
