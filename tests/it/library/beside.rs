//! The library and the command share filters.

use tempfile::TempDir;
use urlseen::{FilterExt, Fingerprinter, LocalFilter, RedisFilter, Request};

use super::{kinds, native};
use crate::util::binary::{Run, urlseen};
use crate::util::redis::RedisServer;

fn urls(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|number| format!("https://example.com/{number}?b=2&a=1")).collect()
}

fn set(run: Run, settings: &[&str]) -> Run {
    settings.iter().fold(run, |run, setting| run.arg("--set").arg(setting))
}

#[test]
fn a_daemon_and_a_program_share_a_filter_in_redis() {
    let server = RedisServer::start();
    for (spec, settings) in kinds() {
        server.cli(&["flushall"]);
        let url = format!("redis.url={}", server.url());
        let settings = [settings, &[url.as_str(), "filter.place=redis"]].concat();
        let filter = RedisFilter::open(&server.url(), "demo:filter", &spec).unwrap();
        let mut scrapy = Fingerprinter::default();
        let mut fingerprint = |url: &String| scrapy.fingerprint(&Request::get(url)).unwrap();
        let ours: Vec<_> = urls(0..100).iter().map(&mut fingerprint).collect();
        assert!(filter.extend(&ours).unwrap().iter().all(|is_new| *is_new), "{spec:?}");

        let items = urls(50..150);
        let push: Vec<&str> = items.iter().map(String::as_str).collect();
        server.cli(&[&["rpush", "demo:discovered"], &push[..]].concat());
        set(urlseen(["run", "--drain"]), &settings).output();
        let unseen = server.cli(&["lrange", "demo:unseen", "0", "-1"]);
        assert_eq!(unseen.lines().collect::<Vec<_>>(), push[50..], "{spec:?}");

        let theirs: Vec<_> = urls(100..150).iter().map(&mut fingerprint).collect();
        assert!(filter.contains_all(&theirs).unwrap().iter().all(|seen| *seen), "{spec:?}");
        let more = urls(150..160).iter().map(&mut fingerprint).collect::<Vec<_>>();
        assert!(filter.contains_all(&more).unwrap().iter().all(|seen| !seen), "{spec:?}");
    }
}

#[test]
fn a_command_and_a_program_take_turns_with_a_folder() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path().join("storage");
    let mut scrapy = Fingerprinter::default();
    let mut fingerprint = |url: &String| scrapy.fingerprint(&Request::get(url)).unwrap();
    let filter = LocalFilter::open(&dir, &native()).unwrap();
    let ours: Vec<_> = urls(0..100).iter().map(&mut fingerprint).collect();
    assert!(filter.extend(&ours).unwrap().iter().all(|is_new| *is_new));
    let refused = urlseen(["filter", "--storage"]).arg(&dir).stdin("").output();
    assert!(refused.stderr.contains("in use"), "{}", refused.stderr);
    drop(filter);

    let lines = urls(50..150).join("\n");
    let printed = urlseen(["filter", "--storage"]).arg(&dir).stdin(lines).output();
    assert_eq!(printed.text().lines().collect::<Vec<_>>(), urls(100..150));
    let filter = LocalFilter::open(&dir, &native()).unwrap();
    let all: Vec<_> = urls(0..151).iter().map(&mut fingerprint).collect();
    let seen = filter.contains_all(&all).unwrap();
    assert_eq!(seen.iter().filter(|seen| **seen).count(), 150);
    assert_eq!(filter.len(), 150);
}
