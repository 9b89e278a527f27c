//! Other programs change the source while the daemon claims items from it.

use redis::Commands;

use super::{Crawl, PROCESSING, SINK, stop, urls};
use crate::util::wait::{SOON, wait_until};

#[test]
fn a_changed_list_of_claimed_items_is_read_and_judged_again() {
    for (take_from, command) in
        [("left", "LPUSH"), ("left", "RPUSH"), ("right", "LPUSH"), ("right", "RPUSH")]
    {
        let crawl = Crawl::new()
            .set("source.batch=5")
            .set("sink.max_len=5")
            .set(&format!("source.take_from={take_from}"));
        let items = urls(0, 50);
        crawl.push(&items);
        let mut daemon = crawl.start();
        daemon.wait_for_line("waiting", SOON);
        let mut connection = crawl.connection();
        let () =
            redis::cmd(command).arg(PROCESSING).arg("http://b/").query(&mut connection).unwrap();
        // Adds a copy of an item that the daemon has already found unseen. The batch with that
        // verdict will not be committed.
        let () =
            redis::cmd(command).arg(PROCESSING).arg(&items[25]).query(&mut connection).unwrap();
        let mut out: Vec<String> = Vec::new();
        wait_until(SOON, "all items", || {
            let some: Vec<String> = connection.lpop(SINK, std::num::NonZero::new(100)).unwrap();
            out.extend(some);
            out.len() >= 51
        });
        crawl.wait_until_idle();
        daemon.wait_for_line("another program changed the list of claimed items", SOON);
        let summary = stop(daemon);
        out.sort_unstable();
        let mut expected = [items, vec!["http://b/".to_owned()]].concat();
        expected.sort_unstable();
        assert_eq!(out, expected);
        assert_eq!(summary.counts(), (52, [51, 1, 0, 0]), "{take_from} {command}");
        assert!(summary.count("batches_aborted") > 0, "{summary:?}");
        assert_eq!(crawl.len(SINK), 0);
    }
}

/// Right after the last commit of claimed items, the daemon sends the next claim. If Redis refuses
/// this commit, the claim must not replace the items that are still claimed.
#[test]
fn a_claim_after_a_refused_commit_leaves_claimed_items_alone() {
    let crawl = Crawl::new().set("sink.max_len=1");
    let mut connection = crawl.connection();
    let () = connection.rpush(SINK, "full").unwrap();
    crawl.push(&urls(0, 10));
    let mut daemon = crawl.start();
    daemon.wait_for_line("waiting", SOON);
    let () = connection.rpush(PROCESSING, "http://b/").unwrap();
    crawl.push(&urls(10, 20));
    let mut out: Vec<String> = Vec::new();
    wait_until(SOON, "all items", || {
        let some: Vec<String> = connection.lpop(SINK, std::num::NonZero::new(100)).unwrap();
        out.extend(some);
        out.len() >= 32
    });
    daemon.wait_for_line("another program changed the list of claimed items", SOON);
    let expected =
        [vec!["full".to_owned()], urls(0, 10), vec!["http://b/".to_owned()], urls(10, 20)].concat();
    assert_eq!(out, expected);
    assert_eq!(stop(daemon).counts(), (31, [31, 0, 0, 0]));
}

#[test]
fn removed_items_among_claimed_ones_are_reported_as_missing() {
    let crawl = Crawl::new().set("source.batch=5").set("sink.max_len=5");
    crawl.push(&urls(0, 50));
    let mut daemon = crawl.start();
    daemon.wait_for_line("waiting", SOON);
    // The test itself deletes thirty items. No other item is lost.
    let mut connection = crawl.connection();
    let () = connection.ltrim(PROCESSING, 30, -1).unwrap();
    let () = connection.del(SINK).unwrap();
    let mut out: Vec<String> = Vec::new();
    wait_until(SOON, "the rest", || {
        let some: Vec<String> = connection.lpop(SINK, std::num::NonZero::new(100)).unwrap();
        out.extend(some);
        out.len() >= 15
    });
    crawl.wait_until_idle();
    assert_eq!(out, urls(35, 15));
    assert_eq!(stop(daemon).counts(), (20, [20, 0, 0, 0]));
}
