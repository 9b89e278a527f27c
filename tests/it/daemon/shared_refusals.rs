//! Refusals of a filter in Redis, before the daemon claims an item.

use redis::Commands;

use super::shared::{LAYOUTS, crawl};
use super::{Crawl, SINK, SOURCE, urls};
use crate::util::redis::{RedisServer, free_port};
use crate::util::wait::SOON;

/// Checks that a run is refused with these words and this status, and claims no item.
#[track_caller]
fn refused(crawl: &Crawl, status: i32, words: &[&str]) {
    crawl.push(&urls(0, 10));
    let output = crawl.run(&["--drain"]).output();
    assert_eq!(output.code(), Some(status), "{output:?}");
    for words in words {
        assert!(output.stderr.contains(words), "no {words:?} in {}", output.stderr);
    }
    assert_eq!(crawl.len(SOURCE), 10, "an item was claimed");
    assert_eq!(crawl.len(SINK), 0);
    let () = crawl.connection().del(SOURCE).unwrap();
}

#[test]
fn keys_of_other_types_are_refused() {
    for (kind, key) in [
        (LAYOUTS[0], "demo:filter:7f"),
        (LAYOUTS[1], "demo:filter.0"),
        (LAYOUTS[3], "demo:filter"),
        (LAYOUTS[4], "demo:filter2"),
        (LAYOUTS[6], "demo:filter"),
        (LAYOUTS[7], "demo:filter:count"),
    ] {
        let crawl = crawl(kind);
        let () = crawl.connection().sadd(key, "member").unwrap();
        refused(&crawl, 3, &[key, "holds a set", "a string there"]);
    }
    let set = crawl(LAYOUTS[5]);
    let () = set.connection().set("demo:filter", "bits").unwrap();
    refused(&set, 3, &["demo:filter", "holds a string", "a set there"]);
}

#[test]
fn strings_of_a_larger_filter_are_refused() {
    // 2^20 bits are 128 KiB.
    let crawl = crawl(LAYOUTS[3]);
    let () = crawl.connection().setbit("demo:filter", 1 << 20, true).unwrap();
    refused(&crawl, 3, &["demo:filter is 131073 bytes long", "never has more than 131072"]);
    let blocks = super::shared::crawl(LAYOUTS[4]);
    let () = blocks.connection().setbit("demo:filter3", 1, true).unwrap();
    refused(&blocks, 3, &["demo:filter3 is there", "more blocks"]);
}

#[test]
fn a_filter_with_other_parameters_is_refused() {
    for (kind, setting) in [
        (LAYOUTS[0], "filter.capacity=200_000"),
        (LAYOUTS[0], "filter.seed=7"),
        (LAYOUTS[0], "fingerprint.algorithm=scrapy-2.6"),
        (LAYOUTS[1], "filter.error_rate=1e-3"),
        (LAYOUTS[3], "filter.hash_number=5"),
        (LAYOUTS[4], "filter.block_num=5"),
        (LAYOUTS[6], "filter.error_rate=1e-3"),
        (LAYOUTS[7], "filter.capacity=200"),
    ] {
        let crawl = crawl(kind);
        crawl.push(&urls(0, 10));
        crawl.drain();
        let () = crawl.connection().del(SINK).unwrap();
        let key = setting.split_once('=').unwrap().0;
        refused(&crawl.set(setting), 2, &["was made for something else", key, "storage drop"]);
    }
}

#[test]
fn bits_without_a_seed_are_refused() {
    let crawl = crawl(LAYOUTS[0]);
    crawl.push(&urls(0, 10));
    crawl.drain();
    let () = crawl.connection().del(SINK).unwrap();
    let () = crawl.connection().del("urlseen:{demo:filter}:spec").unwrap();
    refused(&crawl, 3, &["urlseen:{demo:filter}:spec is missing", "seed", "storage drop"]);
    let dropped = crawl.command("storage drop", &["--yes"]).output();
    assert_eq!(dropped.code(), Some(0), "{dropped:?}");
    crawl.push(&urls(0, 10));
    assert_eq!(crawl.drain().count("unseen"), 10);
}

#[test]
fn a_new_filter_at_the_key_of_the_old_one_is_refused() {
    for kind in [LAYOUTS[0], LAYOUTS[5]] {
        let crawl = crawl(kind);
        let daemon = crawl.start();
        let definition = "urlseen:{demo:filter}:spec";
        let () = crawl.connection().hset(definition, "id", "0123456789abcdef").unwrap();
        crawl.server.cli(&["client", "kill", "type", "normal"]);
        let output = daemon.output(SOON);
        assert_eq!(output.code(), Some(3), "{output:?}");
        assert!(output.stderr.contains("made another one in its place"), "{output:?}");
    }
}

#[test]
fn storage_drop_deletes_a_filter_of_another_size_but_no_other_value() {
    for (kind, setting) in [(LAYOUTS[0], "filter.capacity=100"), (LAYOUTS[4], "filter.block_num=1")]
    {
        let crawl = crawl(kind);
        crawl.push(&urls(0, 2000));
        crawl.drain();
        let smaller = crawl.set(setting);
        let dropped = smaller.command("storage drop", &["--yes"]).output();
        assert_eq!(dropped.code(), Some(0), "{dropped:?}");
        assert_eq!(smaller.connection().keys::<_, Vec<String>>("*").unwrap(), [SINK]);
    }
    let set = crawl(LAYOUTS[5]);
    let () = set.connection().rpush("demo:filter", "an item").unwrap();
    let dropped = set.command("storage drop", &["--yes"]).output();
    assert_eq!(dropped.code(), Some(3), "{dropped:?}");
    assert_eq!(set.len("demo:filter"), 1);
}

#[test]
fn a_capacity_that_the_kind_cannot_count_is_refused() {
    let crawl = crawl(LAYOUTS[1]).set("filter.capacity=5e9");
    refused(&crawl, 2, &["filter.capacity is 5000000000", "at most 4294967295"]);
}

#[test]
fn a_server_without_enough_memory_is_refused() {
    let server = RedisServer::start_with(&["--maxmemory", "64mb"]);
    let crawl = Crawl::on(server).set("filter.place=redis").set("filter.kind=imooc");
    refused(&crawl, 3, &["512.00 MiB more", "64.00 MiB (maxmemory)", "smaller size"]);
}

#[test]
fn a_missing_permission_is_named() {
    for (kind, denied) in [
        (LAYOUTS[0], &["setrange", "getrange"][..]),
        (LAYOUTS[1], &["bitfield", "bitfield_ro"]),
        (LAYOUTS[5], &["sadd", "smismember"]),
        (LAYOUTS[6], &["bitfield", "hmget"]),
        (LAYOUTS[7], &["bitfield_ro", "incrby"]),
    ] {
        for command in denied {
            let crawl = crawl(kind).with_user("ann");
            crawl.server.cli(&["acl", "setuser", "ann", &format!("-{command}")]);
            let named = command.to_uppercase();
            refused(&crawl, 3, &["the Redis user ann may not", &named, "ACL SETUSER ann"]);
        }
    }
}

#[test]
fn a_node_of_a_cluster_is_refused() {
    let bus = free_port();
    let server = RedisServer::start_with(&["--cluster-enabled", "yes", "--cluster-port", &bus]);
    let crawl = Crawl::on(server).set("filter.place=redis");
    let output = crawl.run(&["--drain"]).output();
    assert_eq!(output.code(), Some(3), "{output:?}");
    assert!(output.stderr.contains("write redis+cluster://"), "{output:?}");
}
