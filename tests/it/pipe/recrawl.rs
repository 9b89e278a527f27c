//! `--expire-after`: lines pass again when their time is over. `catch-up` makes time pass.

use std::path::Path;

use tempfile::TempDir;

use crate::util::binary::{Output, urlseen};

const LINES: &str = "https://example.com/1\nhttps://example.com/2\n";

fn filter_of(folder: &Path, time: &str) -> Output {
    let run = urlseen(["filter", "--kind", "two-choice", "--expire-after", time, "--storage"]);
    run.arg(folder).stdin(LINES.to_owned()).output()
}

/// A union has a snapshot and no log, so only the filter knows when a line passes again.
#[test]
fn the_time_of_a_line_is_known_when_the_log_no_longer_has_it() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let [a, union] = ["a", "union"].map(path);
    assert_eq!(filter_of(a.as_ref(), "30d").code(), Some(0));
    let united = urlseen(["compare", &a, &a, "--output", &union]).output();
    assert_eq!(united.code(), Some(0), "{united:?}");
    let explained = || {
        let run = urlseen(["explain", "https://example.com/1", "--storage", &union]);
        run.output().text().to_owned()
    };
    assert!(explained().contains("it passes again when the generation "), "{}", explained());
    // The run learns the time from the clock.
    let run = urlseen(["filter", "--storage", &union]).stdin("https://example.com/9\n".to_owned());
    assert_eq!(run.output().code(), Some(0));
    assert!(explained().contains("if it was seen, it passes again from "), "{}", explained());
}
