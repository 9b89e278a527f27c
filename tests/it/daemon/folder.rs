//! Interference with the storage folder: it is removed, replaced or used twice, or the clock is
//! set.

use std::fs;
use std::path::Path;

use super::{Crawl, READY, SINK, urls};
use crate::util::wait::SOON;

/// Names of the files in a folder.
fn names(dir: &Path) -> Vec<String> {
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| name(entry.unwrap())).collect();
    names.sort();
    names
}

fn remove(dir: &Path) {
    fs::remove_dir_all(dir).unwrap();
}

fn rename(dir: &Path) {
    fs::rename(dir, dir.with_extension("away")).unwrap();
}

/// Replaces the folder with a copy.
fn replace(dir: &Path) {
    let away = dir.with_extension("away");
    fs::rename(dir, &away).unwrap();
    fs::create_dir(dir).unwrap();
    for name in names(&away).into_iter().filter(|name| name != "admin.sock") {
        fs::copy(away.join(&name), dir.join(name)).unwrap();
    }
}

fn remove_log(dir: &Path) {
    for name in names(dir).into_iter().filter(|name| name.starts_with("log-")) {
        fs::remove_file(dir.join(name)).unwrap();
    }
}

/// No items are pushed, so the daemon must notice the change of the folder without a batch.
#[test]
fn a_folder_that_is_removed_or_replaced_stops_an_idle_daemon() {
    for fsync in ["always", "interval", "never"] {
        for break_it in [remove, rename, replace, remove_log] {
            let crawl = Crawl::new().set(&format!("storage.fsync={fsync}"));
            let mut daemon = crawl.start();
            crawl.push(&urls(0, 10));
            crawl.wait_for_sink(10);
            crawl.wait_until_idle();
            break_it(&crawl.storage_dir());
            let code = daemon.wait(SOON).code();
            let said = daemon.output(SOON).stderr;
            assert_eq!(code, Some(3), "{said}");
            let dir = crawl.storage_dir();
            let gone = format!("the storage folder {} was removed or replaced", dir.display());
            for words in [gone.as_str(), "Nothing more is committed", "urlseen storage reset"] {
                assert!(said.contains(words), "{words:?} in {said}");
            }
        }
    }
}

#[test]
fn a_folder_that_is_removed_stops_a_daemon_without_a_source() {
    let crawl = Crawl::new().set("source.kind=none").set("serve.listen=127.0.0.1:0");
    let mut daemon = crawl.run(&[]).start();
    daemon.wait_for_line("the filter is empty", SOON);
    remove(&crawl.storage_dir());
    let code = daemon.wait(SOON).code();
    let said = daemon.output(SOON).stderr;
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("was removed or replaced"), "{said}");
}

/// Sets the times of all snapshots back by a day, as if the clock had been set forward after they
/// were taken.
fn set_back(dir: &Path) {
    const END: usize = 37 + 258 * 40;
    for name in names(dir).into_iter().filter(|name| name.starts_with("snapshot-")) {
        let path = dir.join(name);
        let mut bytes = fs::read(&path).unwrap();
        let end_at = bytes.len() - END;
        let end = &mut bytes[end_at..];
        let (finished, crc_at) = (END - 29..END - 21, END - 4);
        let earlier = u64::from_le_bytes(end[finished.clone()].try_into().unwrap()) - 86_400_000;
        end[finished].copy_from_slice(&earlier.to_le_bytes());
        let crc = crc32c::crc32c(&end[..crc_at]);
        end[crc_at..].copy_from_slice(&crc.to_le_bytes());
        fs::write(path, bytes).unwrap();
    }
}

/// Point 7 of ARCHITECTURE.md: the age of a snapshot does not depend on the time of day.
#[test]
fn a_clock_that_is_set_forward_prunes_no_necessary_snapshot() {
    let mut crawl = Crawl::new()
        .set("filter.capacity=1000")
        .set("storage.snapshot_bytes=4096")
        .set("source.batch=20");
    crawl.push(&urls(0, 500));
    crawl.drain();
    crawl.server.cli(&["save"]);
    for part in 1..5 {
        set_back(&crawl.storage_dir());
        crawl.push(&urls(500 * part, 500));
        crawl.drain();
    }
    crawl.server.restart();
    assert_eq!(crawl.len(SINK), 500);
    crawl.push(&urls(0, 2500));
    let summary = crawl.drain();
    assert!(summary.stderr.contains(READY), "{summary:?}");
    let expected: Vec<_> = urls(0, 2500).into_iter().map(String::into_bytes).collect();
    assert!(crawl.list(SINK) == expected, "{}", crawl.len(SINK));
}
