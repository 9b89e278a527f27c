//! Imports of files: formats, incomplete ends, invalid lines, compression.
use super::{Crawl, frames, raw, urls};
use crate::util::binary::urlseen;

/// During an import, snapshots cover the growing log. A restart reads the snapshots.
#[test]
fn snapshots_are_taken_as_the_log_grows() {
    let mut crawl = Crawl::new();
    crawl.settings.push("storage.snapshot_bytes=1_000_000");
    crawl.write("frames", frames(raw(0..500_000)));
    crawl.import(&["frames"]).check([500_000, 500_000, 0, 0]);
    let show = urlseen(["storage", "show", "--json", "--storage", &crawl.state()]).output();
    let show: serde_json::Value = serde_json::from_slice(&show.stdout).unwrap();
    let newest = show["snapshots"].as_array().unwrap().last().unwrap();
    assert!(newest["keys"].as_u64() > Some(0), "{show}");
    crawl.write("again", frames(raw(0..500_001)));
    crawl.import(&["again"]).check([500_001, 1, 500_000, 0]);
}

/// Each import ends before the log can grow by `storage.snapshot_bytes`.
#[test]
fn the_log_of_many_short_imports_is_bounded() {
    let mut crawl = Crawl::new();
    crawl.settings = vec!["filter.capacity=10_000", "storage.snapshot_bytes=8192"];
    for number in 0..20 {
        crawl.write("frames", frames(raw(number * 100..(number + 1) * 100)));
        crawl.import(&["frames"]).check([100, 100, 0, 0]);
    }
    let logs = std::fs::read_dir(crawl.state()).unwrap().map(Result::unwrap);
    let logs = logs.filter(|entry| entry.file_name().to_string_lossy().starts_with("log"));
    let bytes: u64 = logs.map(|entry| entry.metadata().unwrap().len()).sum();
    assert!(bytes < 3 * 8192, "the 2,000 keys take {bytes} bytes of log");
}

/// Redis comes back with data from before the import. The folder can go back to that time, although
/// the import has taken more snapshots than are usually kept.
#[test]
fn a_crawl_can_go_back_to_its_state_before_an_import() {
    let mut crawl = Crawl::new();
    crawl.settings = vec![
        "filter.capacity=100_000",
        "filter.error_rate=1e-12",
        "storage.snapshot_bytes=100_000",
    ];
    assert_eq!(crawl.crawl(&urls(0..10)), urls(0..10));
    crawl.server.cli(&["save"]);
    for number in 0..5 {
        // Without a batch between two imports, each snapshot would replace the snapshot before it.
        let url = urls(10 + number..11 + number);
        assert_eq!(crawl.crawl(&url), url);
        let number = u64::from(number);
        crawl.write("frames", frames(raw(number * 10_000..(number + 1) * 10_000)));
        crawl.import(&["frames"]).check([10_000, 10_000, 0, 0]);
    }
    crawl.server.restart();
    assert_eq!(crawl.crawl(&urls(0..16)), urls(10..16));
    crawl.write("all", frames(raw(0..50_000)));
    crawl.import(&["all"]).check([50_000, 0, 50_000, 0]);
}
