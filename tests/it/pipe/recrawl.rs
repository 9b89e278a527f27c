//! `--expire-after`: lines pass again when their time is over.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use tempfile::TempDir;

use crate::util::binary::{Output, urlseen};

/// Time after which no line passes again: five generations of a second each.
const SEEN: Duration = Duration::from_secs(5);

/// Time after which each line passes again: six generations, and some time for the clock.
const EXPIRED: Duration = Duration::from_millis(6100);

const LINES: &str = "https://example.com/1\nhttps://example.com/2\n";

fn filter(folder: &Path, time: &str) -> Output {
    filter_of("two-choice", folder, time)
}

fn filter_of(kind: &str, folder: &Path, time: &str) -> Output {
    let run = urlseen(["filter", "--kind", kind, "--expire-after", time, "--storage"]);
    run.arg(folder).stdin(LINES.to_owned()).output()
}

#[track_caller]
fn printed(folder: &Path) -> String {
    let output = filter(folder, "5s");
    assert_eq!(output.code(), Some(0), "{output:?}");
    output.text().to_owned()
}

#[test]
fn lines_pass_again_when_their_time_is_over_and_not_before() {
    let folder = TempDir::new().unwrap();
    let (started, begun) = (Instant::now(), SystemTime::now());
    assert_eq!(printed(folder.path()), LINES);
    let passed = Instant::now();
    let explained = || {
        let run = urlseen(["explain", "https://example.com/1", "--storage"]).arg(folder.path());
        run.output().text().to_owned()
    };
    let words = "UTC, if the clocks agree at the next start";
    assert!(explained().contains(words), "{}", explained());
    let run = urlseen(["explain", "--json", "https://example.com/1", "--storage"]);
    let json: Value = serde_json::from_slice(&run.arg(folder.path()).output().stdout).unwrap();
    let again = humantime::parse_rfc3339(json["answer"]["passes_again"].as_str().unwrap()).unwrap();
    // The two clocks of the machine may run apart by some milliseconds.
    let drift = Duration::from_millis(100);
    assert!(again > begun + SEEN - drift, "{json}");
    assert!(again < SystemTime::now() + SEEN + Duration::from_secs(1) + drift, "{json}");
    // That a line is seen does not lengthen its time.
    for _ in 0..6 {
        if printed(folder.path()) == LINES {
            assert!(started.elapsed() >= SEEN, "after {:?}", started.elapsed());
            return;
        }
        sleep(Duration::from_millis(500));
    }
    sleep(EXPIRED.saturating_sub(passed.elapsed()));
    // Another line begins the generation of the present time.
    let other = urlseen(["filter", "--storage"]).arg(folder.path());
    assert_eq!(other.stdin("https://example.com/3\n".to_owned()).output().code(), Some(0));
    assert!(explained().contains("and has expired"), "{}", explained());
    assert_eq!(printed(folder.path()), LINES);
}

#[test]
fn a_folder_keeps_the_time_after_which_lines_pass_again() {
    let folder = TempDir::new().unwrap();
    printed(folder.path());
    let refused = filter(folder.path(), "30d");
    assert_eq!(refused.code(), Some(2), "{refused:?}");
    assert!(refused.stderr.contains("5s") && refused.stderr.contains("30d"), "{refused:?}");
    let native = ["filter", "--kind", "native", "--expire-after", "30d"];
    let refused = urlseen(native).stdin(String::new()).output();
    assert_eq!(refused.code(), Some(2), "{refused:?}");
    let words = ["--expire-after", "--kind two-choice or --kind exact"];
    assert!(words.iter().all(|word| refused.stderr.contains(word)), "{refused:?}");
}

#[test]
fn lines_of_an_exact_filter_pass_again_when_their_time_is_over() {
    let folder = TempDir::new().unwrap();
    let printed = || {
        let output = filter_of("exact", folder.path(), "30d");
        assert_eq!(output.code(), Some(0), "{output:?}");
        output.text().to_owned()
    };
    let catch_up = |time: &str| {
        let run = urlseen(["storage", "catch-up", time, "--storage"]).arg(folder.path());
        assert_eq!(run.output().code(), Some(0));
    };
    assert_eq!(printed(), LINES);
    for _ in 0..2 {
        catch_up("24d");
        assert_eq!(printed(), "");
        catch_up("12d");
        assert_eq!(printed(), LINES);
    }
    let refused = filter_of("exact", folder.path(), "5d");
    assert_eq!(refused.code(), Some(2), "{refused:?}");
    assert!(refused.stderr.contains("30d") && refused.stderr.contains("5d"), "{refused:?}");
}

/// A union has a snapshot and no log, so only the filter knows when a line passes again.
#[test]
fn the_time_of_a_line_is_known_when_the_log_no_longer_has_it() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for (kind, words) in [
        ("two-choice", "if it was seen, it passes again from "),
        ("exact", "it is an exact set; it passes again from "),
    ] {
        let [a, union] = [kind.to_owned(), format!("{kind}-union")].map(|name| path(&name));
        assert_eq!(filter_of(kind, a.as_ref(), "30d").code(), Some(0));
        let united = urlseen(["union", &a, &a, "-o", &union]).output();
        assert_eq!(united.code(), Some(0), "{united:?}");
        let explained = || {
            let run = urlseen(["explain", "https://example.com/1", "--storage", &union]);
            run.output().text().to_owned()
        };
        assert!(explained().contains("it passes again when the generation "), "{}", explained());
        // The run learns the time from the clock.
        let run =
            urlseen(["filter", "--storage", &union]).stdin("https://example.com/9\n".to_owned());
        assert_eq!(run.output().code(), Some(0));
        assert!(explained().contains(words), "{}", explained());
    }
}
