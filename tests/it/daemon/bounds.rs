//! Upper limits: length of the sink and of the rejects list, fill of the filter, bytes of a batch.

use redis::Commands;

use super::{Crawl, REJECTED, SINK, stop, urls};
use crate::util::wait::{SOON, wait_until};

#[test]
fn a_full_sink_makes_the_daemon_wait_and_is_never_overfilled() {
    let (batch, max) = (7, 20);
    let crawl =
        Crawl::new().set(&format!("source.batch={batch}")).set(&format!("sink.max_len={max}"));
    let items = urls(0, 1000);
    crawl.push(&items);
    let mut daemon = crawl.start();
    daemon.wait_for_line("waiting: demo:unseen holds 21 items, and sink.max_len is 20", SOON);
    let mut connection = crawl.connection();
    let mut processing: Vec<String> = Vec::new();
    wait_until(SOON, "all items", || {
        let waiting: usize = connection.llen(SINK).unwrap();
        assert!(waiting < max + 2 * batch, "{waiting}");
        let some: Vec<String> = connection.lpop(SINK, std::num::NonZero::new(30)).unwrap();
        processing.extend(some);
        processing.len() == items.len()
    });
    assert_eq!(processing, items);
    daemon.wait_for_line("there is room again: the work continues", SOON);
    let summary = stop(daemon);
    // The daemon waits for each batch, but does not log each wait.
    assert!(summary.stderr.matches("waiting: ").count() < 5, "{}", summary.stderr);
    assert!(summary.stderr.matches("there is room again").count() < 5, "{}", summary.stderr);
}

#[test]
fn seen_items_and_rejects_pass_a_full_sink() {
    let crawl = Crawl::new().set("sink.max_len=1").set("source.batch=1");
    crawl.push(&["http://a/", "http://a/", "", "http://a/"]);
    assert_eq!(crawl.drain().counts(), (4, [1, 2, 0, 1]));
}

#[test]
fn a_full_list_of_rejects_makes_the_daemon_wait_until_there_is_room() {
    let crawl = Crawl::new().set("source.batch=2").set("rejects.max_len=3");
    crawl.push(&["1", "2", "3", "4", "http://a/"]);
    let mut daemon = crawl.start();
    let line = daemon.wait_for_line("waiting: demo:rejected holds 2 items", SOON);
    assert!(line.contains("rejects.max_len is 3") && line.contains("drop-oldest"), "{line}");
    assert_eq!((crawl.len(REJECTED), crawl.len(SINK)), (2, 0));
    let () = crawl.connection().ltrim(REJECTED, 1, -1).unwrap();
    crawl.wait_for_sink(1);
    assert_eq!(crawl.len(REJECTED), 3);
    let summary = stop(daemon);
    assert_eq!((summary.count("rejected"), summary.count("rejects_dropped")), (4, 0));
}

#[test]
fn the_oldest_rejects_are_dropped_and_counted_if_configured() {
    let crawl = Crawl::new()
        .set("source.batch=2")
        .set("rejects.max_len=3")
        .set("rejects.when_full=drop-oldest");
    crawl.push(&["1", "2", "http://a/", "3", "4", "5"]);
    let summary = crawl.drain();
    assert_eq!((summary.count("rejected"), summary.count("rejects_dropped")), (5, 2));
    let rejects = crawl.rejects();
    let items: Vec<&str> = rejects.iter().map(|json| json["item"].as_str().unwrap()).collect();
    assert_eq!(items, ["3", "4", "5"]);
    assert_eq!(crawl.len(SINK), 1);
}

#[test]
fn many_large_items_are_not_all_in_memory_at_once() {
    const MEGABYTE: usize = 1 << 20;
    let crawl = Crawl::new().set("source.batch_bytes=1_048_576");
    for number in 0..150 {
        let mut large = format!("{number:040x}\t").into_bytes();
        large.resize(MEGABYTE, b'x');
        crawl.push(&[large]);
    }
    let daemon = crawl.start();
    crawl.wait_for_sink(150);
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: usize = peak.trim().trim_end_matches(" kB").parse().unwrap();
    println!("peak {kilobytes} kB");
    // All items together would take 150 MB as a reply, and another 150 MB as a batch.
    assert!(kilobytes < 200 * 1024, "{peak}");
    // The daemon may read many items before it knows their sizes. It still commits them one by one.
    assert_eq!(stop(daemon).count("batches"), 150);
}
