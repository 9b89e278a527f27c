//! Copies of the storage folder while the daemon writes to it, as docs/guides/backup.md describes.

use super::{Crawl, SINK, stop, urls};
use crate::util::binary::{Run, urlseen};

/// Number of items that pass while the folder is copied.
const ITEMS: usize = 20_000;

#[test]
fn each_copy_of_a_running_daemon_has_every_commit_before_it() {
    // Small batches and frequent snapshots: the folder changes all the time, and loses old files.
    let settings =
        ["source.batch=20", "storage.snapshot_bytes=4096", "storage.horizon_bytes=1048576"];
    let crawl = settings.iter().fold(Crawl::new(), |crawl, setting| crawl.set(setting));
    let daemon = crawl.start();
    crawl.push(&urls(0, ITEMS));
    let (folder, mut copies) = (tempfile::tempdir().unwrap(), Vec::new());
    while crawl.len(SINK) < ITEMS {
        let (before, to) = (crawl.len(SINK), folder.path().join(copies.len().to_string()));
        let copied = Run::of("cp", ["-r"]).arg(crawl.storage_dir()).arg(&to).output();
        if copied.code() == Some(0) {
            copies.push((to, before));
        } else {
            // Otherwise `cp` would make the next copy inside this one.
            std::fs::remove_dir_all(&to).unwrap();
        }
    }
    stop(daemon);
    // A copy may end with half a record. The guide says to copy again then.
    copies.retain(|(copy, _)| {
        let shown = urlseen(["storage", "show", "--storage"]).arg(copy).output();
        let is_cut = shown.text().contains("a record was never written to its end");
        assert_eq!(shown.code(), Some(i32::from(is_cut)), "{shown:?}");
        !is_cut
    });
    assert!(copies.len() > 5, "{} copies", copies.len());
    let committed = urls(0, ITEMS);
    for (copy, before) in &copies {
        let check = urlseen(["check", "-", "--storage"]).arg(copy);
        let checked = check.stdin(committed[..*before].join("\n")).output();
        assert_eq!(checked.code(), Some(0), "of {before} committed URLs, some are missing");
    }

    // A restored copy emits only the URLs that it lacks.
    let (copy, before) = &copies[copies.len() / 2];
    std::fs::remove_dir_all(crawl.storage_dir()).unwrap();
    std::fs::rename(copy, crawl.storage_dir()).unwrap();
    assert_eq!(crawl.run(&["--drain"]).output().code(), Some(3));
    assert_eq!(crawl.command("storage adopt", &[]).output().code(), Some(0));
    crawl.push(&committed);
    let summary = crawl.drain();
    assert!(summary.count("unseen") <= ITEMS - before, "{summary:?}");
    assert_eq!(summary.count("unseen") + summary.count("seen"), ITEMS);
}
