//! `--expire-after`: lines pass again when their time is over. `catch-up` makes time pass.

use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tempfile::TempDir;

use crate::util::binary::{Output, Run, urlseen};

const LINES: &str = "https://example.com/1\nhttps://example.com/2\n";

fn filter_of(folder: &Path, time: &str) -> Output {
    let run = urlseen(["filter", "--kind", "two-choice", "--expire-after", time, "--storage"]);
    run.arg(folder).stdin(LINES.to_owned()).output()
}

#[test]
fn lines_pass_again_when_their_time_is_over_and_not_before() {
    let folder = TempDir::new().unwrap();
    let printed = || {
        let output = filter_of(folder.path(), "30d");
        assert_eq!(output.code(), Some(0), "{output:?}");
        output.text().to_owned()
    };
    let catch_up = |time: &str| {
        let run = urlseen(["storage", "catch-up", time, "--storage"]).arg(folder.path());
        assert_eq!(run.output().code(), Some(0));
    };
    let explained = |options: &[&str]| {
        let run = urlseen(["explain", "https://example.com/1", "--storage"]).arg(folder.path());
        options.iter().fold(run, Run::arg).output().text().to_owned()
    };
    let begun = SystemTime::now();
    assert_eq!(printed(), LINES);
    let words = "UTC, if the clocks agree at the next start";
    assert!(explained(&[]).contains(words), "{}", explained(&[]));
    let json: Value = serde_json::from_str(&explained(&["--json"])).unwrap();
    let again = json["answer"]["passes_again"].as_str().unwrap();
    let again = humantime::parse_rfc3339(again).unwrap();
    // The two clocks of the machine may run apart a little.
    let day = Duration::from_hours(24);
    assert!(again > begun + 30 * day - day, "{json}");
    assert!(again < SystemTime::now() + 36 * day + day, "{json}");
    for _ in 0..2 {
        // That a line is seen does not lengthen its time.
        catch_up("24d");
        assert_eq!(printed(), "");
        catch_up("12d");
        // Another line begins the generation of the present time.
        let other = urlseen(["filter", "--storage"]).arg(folder.path());
        let other = other.stdin("https://example.com/3\n".to_owned()).output();
        assert_eq!(other.code(), Some(0), "{other:?}");
        assert!(explained(&[]).contains("and has expired"));
        assert_eq!(printed(), LINES);
    }
    let refused = filter_of(folder.path(), "5d");
    assert_eq!(refused.code(), Some(2), "{refused:?}");
    assert!(refused.stderr.contains("30d") && refused.stderr.contains("5d"), "{refused:?}");
}

#[test]
fn a_kind_whose_fingerprints_cannot_expire_is_refused() {
    for kind in ["native", "exact"] {
        let expiring = ["filter", "--kind", kind, "--expire-after", "30d"];
        let refused = urlseen(expiring).stdin(String::new()).output();
        assert_eq!(refused.code(), Some(2), "{refused:?}");
        let words = ["--expire-after", "--kind two-choice"];
        assert!(words.iter().all(|word| refused.stderr.contains(word)), "{refused:?}");
    }
}

/// A union has a snapshot and no log, so only the filter knows when a line passes again.
#[test]
fn the_time_of_a_line_is_known_when_the_log_no_longer_has_it() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let [a, union] = ["a", "union"].map(path);
    assert_eq!(filter_of(a.as_ref(), "30d").code(), Some(0));
    let united = urlseen(["union", &a, &a, "-o", &union]).output();
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
