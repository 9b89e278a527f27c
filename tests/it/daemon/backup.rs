//! Copies of the storage folder while the daemon writes to it, as docs/guides/maintenance.md
//! describes.

use std::fs;
use std::path::Path;

use super::{Crawl, SINK, stop, urls};
use crate::util::binary::{Run, urlseen};

/// Number of items, and of copies while they pass.
const ITEMS: usize = 8000;
const COPIES: usize = 6;

/// Copies the folder as the guide says: again, if the copy is not whole. Returns the number of
/// items that were committed before the copy.
fn copy(crawl: &Crawl, to: &Path) -> usize {
    loop {
        let before = crawl.len(SINK);
        let copied = Run::of("cp", ["-r"]).arg(crawl.storage_dir()).arg(to).output();
        let shown = urlseen(["storage", "show", "--storage"]).arg(to).output();
        // A copy may end with half a record.
        let is_cut = shown.text().contains("a record was never written to its end");
        if copied.code() == Some(0) && !is_cut {
            assert_eq!(shown.code(), Some(0), "{shown:?}");
            return before;
        }
        fs::remove_dir_all(to).unwrap();
    }
}

#[test]
fn each_copy_of_a_running_daemon_has_every_commit_before_it() {
    // Small batches and frequent snapshots: the folder changes all the time, and loses old files.
    let settings =
        ["source.batch=20", "storage.snapshot_bytes=4096", "storage.horizon_bytes=1048576"];
    let crawl = settings.iter().fold(Crawl::new(), |crawl, setting| crawl.set(setting));
    let daemon = crawl.start();
    let committed = urls(0, ITEMS);
    // The copy in the middle lacks the rest of the items.
    let (first, rest) = committed.split_at(ITEMS / 2 + 1);
    crawl.push(first);
    let (folder, mut copies) = (tempfile::tempdir().unwrap(), Vec::new());
    for number in 0..COPIES {
        crawl.wait_for_sink(ITEMS / COPIES * number + 1);
        let to = folder.path().join(number.to_string());
        copies.push((copy(&crawl, &to), to));
        if number == COPIES / 2 {
            crawl.push(rest);
        }
    }
    crawl.wait_for_sink(ITEMS);
    stop(daemon);
    for (before, copy) in &copies {
        let check = urlseen(["check", "-", "--storage"]).arg(copy);
        let checked = check.stdin(committed[..*before].join("\n")).output();
        assert_eq!(checked.code(), Some(0), "of {before} committed URLs, some are missing");
    }

    // A restored copy emits only the URLs that it lacks.
    let (before, copy) = &copies[COPIES / 2];
    fs::remove_dir_all(crawl.storage_dir()).unwrap();
    fs::rename(copy, crawl.storage_dir()).unwrap();
    assert_eq!(crawl.run(&["--drain"]).output().code(), Some(3));
    assert_eq!(crawl.command("storage adopt", &[]).output().code(), Some(0));
    crawl.push(&committed);
    let summary = crawl.drain();
    assert!(summary.count("unseen") <= ITEMS - before, "{summary:?}");
    assert_eq!(summary.count("unseen") + summary.count("seen"), ITEMS);
}
