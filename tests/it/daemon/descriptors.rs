//! Daemons that have no free file descriptors.

use redis::Commands;

use super::{Crawl, PROCESSING, SINK, stop, urls};
use crate::util::descriptors::{forbid, leave, restore};
use crate::util::wait::{SOON, wait_until};

#[test]
fn without_descriptors_a_lost_connection_is_opened_again_later() {
    let crawl = Crawl::new();
    crawl.push(&urls(0, 100));
    let mut daemon = crawl.start();
    crawl.wait_until_idle();
    forbid(&daemon);
    let mut connection = crawl.connection();
    let mut kill = redis::cmd("CLIENT");
    let () =
        kill.arg("KILL").arg(&["TYPE", "normal", "SKIPME", "yes"]).query(&mut connection).unwrap();
    let said = daemon.wait_for_line("LimitNOFILE=", SOON);
    assert!(said.contains("Redis") && said.contains("Trying again"), "{said}");
    crawl.push(&urls(50, 100));
    restore(&daemon);
    crawl.wait_until_idle();
    assert_eq!(crawl.len(SINK), 150);
    assert_eq!(stop(daemon).counts(), (200, [150, 50, 0, 0]));
}

/// The daemon must cut the log, but has file descriptors only for its connections.
#[test]
fn without_descriptors_the_log_is_cut_later_and_nothing_is_lost() {
    let crawl = Crawl::new().set("source.batch=5").set("sink.max_len=5");
    let items = urls(0, 50);
    crawl.push(&items);
    let mut daemon = crawl.start();
    daemon.wait_for_line("waiting", SOON);
    leave(&daemon, 0);
    let mut connection = crawl.connection();
    let () = connection.rpush(PROCESSING, "http://b/").unwrap();
    let mut out: Vec<String> = connection.lpop(SINK, std::num::NonZero::new(100)).unwrap();
    let said = daemon.wait_for_line("LimitNOFILE=", SOON);
    assert!(said.contains("the log cannot be written"), "{said}");
    restore(&daemon);
    wait_until(SOON, "all items", || {
        let some: Vec<String> = connection.lpop(SINK, std::num::NonZero::new(100)).unwrap();
        out.extend(some);
        out.len() >= 51
    });
    crawl.wait_until_idle();
    assert_eq!(stop(daemon).counts(), (51, [51, 0, 0, 0]));
    out.sort_unstable();
    let mut expected = [items, vec!["http://b/".to_owned()]].concat();
    expected.sort_unstable();
    assert_eq!(out, expected);
}
