//! `urlseen filter --storage`: it records unseen lines in the storage folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use redis::Commands;
use rustix::process::Signal;
use tempfile::TempDir;

use super::live::Live;
use crate::util::binary::{Output, Run, urlseen};
use crate::util::redis::RedisServer;
use crate::util::wait::{SOON, poll, wait_until};

fn filter(folder: &Path, arguments: &[&str]) -> Run {
    let run = urlseen(["filter", "--storage"]).arg(folder);
    arguments.iter().fold(run, Run::arg)
}

#[track_caller]
fn done(output: &Output) -> String {
    assert_eq!(output.code(), Some(0), "{output:?}");
    output.text().to_owned()
}

fn lines(numbers: impl Iterator<Item = u32>) -> String {
    numbers.map(|number| format!("http://example.com/{number}\n")).collect()
}

#[test]
fn the_next_run_has_seen_the_lines_of_earlier_runs() {
    let folder = TempDir::new().unwrap();
    let run = |input: String| done(&filter(folder.path(), &[]).stdin(input).output());
    assert_eq!(run(lines(0..1000)), lines(0..1000));
    assert_eq!(run(lines(500..1500)), lines(1000..1500));
    assert_eq!(run(lines(0..1500)), "");
    let inverted = filter(folder.path(), &["--invert"]).stdin(lines(1490..1510)).output();
    assert_eq!(done(&inverted), lines(1490..1500));
    assert_eq!(
        run(lines(1500..1510)),
        "",
        "the inverted run recorded these lines, although it did not print them"
    );
}

#[test]
fn parameters_of_an_existing_folder_are_optional_and_must_be_the_same() {
    let folder = TempDir::new().unwrap();
    let size = ["--kind", "native", "--capacity", "1000", "--error-rate", "1e-9"];
    let made = [&size[..], &["--algorithm", "scrapy-2.6", "--seed", "3"]].concat();
    done(&filter(folder.path(), &made).stdin(lines(0..10)).output());
    assert_eq!(done(&filter(folder.path(), &[]).stdin(lines(0..11)).output()), lines(10..11));
    assert_eq!(done(&filter(folder.path(), &made).stdin(lines(0..12)).output()), lines(11..12));
    for (other, words) in [
        (["--capacity", "2000"], ["1000", "2000"]),
        (["--error-rate", "1e-6"], ["1e-9", "1e-6"]),
        (["--algorithm", "scrapy"], ["scrapy-2.6", "scrapy"]),
        (["--seed", "4"], ["3", "4"]),
    ] {
        let output = filter(folder.path(), &other).stdin(lines(0..1)).output();
        assert_eq!((output.code(), output.text()), (Some(2), ""), "{output:?}");
        for words in words {
            assert!(output.stderr.contains(words), "no {words:?} in {}", output.stderr);
        }
    }
}

#[test]
fn a_folder_records_the_rules_by_which_urls_are_the_same() {
    let home = TempDir::new().unwrap();
    let rules = |name: &str, parameter: &str| {
        let path = home.path().join(name);
        std::fs::write(&path, format!("[[same]]\ndrop_params = ['{parameter}']\n")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (sid, page) = (rules("sid.toml", "sid"), rules("page.toml", "page"));
    let folder = home.path().join("seen");
    let links = |numbers: std::ops::Range<u32>| -> String {
        numbers.map(|number| format!("http://example.com/?sid={number}\n")).collect()
    };
    let run = |arguments: &[&str], input: String| filter(&folder, arguments).stdin(input).output();
    assert_eq!(done(&run(&["--rules", &sid], links(0..9))), links(0..1));
    assert_eq!(done(&run(&[], links(9..12))), "", "the folder has the rules");
    assert_eq!(done(&run(&["--rules", &sid], links(9..12))), "");
    let other = run(&["--rules", &page], links(0..1));
    assert_eq!((other.code(), other.text()), (Some(2), ""), "{other:?}");
    for word in ["sid", "page"] {
        assert!(other.stderr.contains(word), "no {word:?} in {}", other.stderr);
    }
}

#[test]
fn bad_rules_are_refused_with_file_line_and_reason() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("rules.toml");
    std::fs::write(&path, "[[same]]\nfold = ['slash']\n").unwrap();
    for command in ["filter", "fingerprint"] {
        let output = urlseen([command, "--rules"]).arg(&path).stdin("http://a/\n").output();
        assert_eq!((output.code(), output.text()), (Some(2), ""), "{output:?}");
        for word in ["--rules", "rules.toml:1", "slash", "trailing-slash"] {
            assert!(output.stderr.contains(word), "no {word:?} in {}", output.stderr);
        }
    }
}

/// The capacity of a filter that grows is only its first size, so it may change.
#[test]
fn a_folder_with_a_filter_that_grows_keeps_its_kind() {
    let folder = TempDir::new().unwrap();
    let made = ["--capacity", "10", "--grow-to", "2000"];
    done(&filter(folder.path(), &made).stdin(lines(0..1000)).output());
    for (first, same) in [
        (1000, &[][..]),
        (1001, &["--capacity", "500"]),
        (1002, &["--grow-to", "2k"]),
        (1003, &["--kind", "two-choice"]),
    ] {
        let output = filter(folder.path(), same).stdin(lines(0..=first)).output();
        assert_eq!(done(&output), lines(first..=first), "{same:?}");
        assert_eq!(output.stderr, "", "{same:?}");
    }
    for (other, words) in [
        (["--grow-to", "3000"], ["filter.grow_to", "2000", "3000"]),
        (["--kind", "native"], ["filter.kind", "two-choice", "native"]),
    ] {
        let output = filter(folder.path(), &other).stdin(lines(0..1)).output();
        assert_eq!((output.code(), output.text()), (Some(2), ""), "{output:?}");
        for words in words {
            assert!(output.stderr.contains(words), "no {words:?} in {}", output.stderr);
        }
    }
    let native = TempDir::new().unwrap();
    done(&filter(native.path(), &["--kind", "native"]).stdin(lines(0..1)).output());
    let output = filter(native.path(), &["--grow-to", "3000"]).stdin(lines(0..1)).output();
    assert_eq!((output.code(), output.text()), (Some(2), ""), "{output:?}");
    let said = "urlseen: a filter of the kind native has no --grow-to: leave it out\n";
    assert_eq!(output.stderr, said);
}

#[test]
fn a_folder_in_use_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().to_str().unwrap();
    let mut first = Live::start(&["filter", "--storage", path], Stdio::piped());
    let stdin = first.stdin();
    wait_until(SOON, "folder", || folder.path().join("header").exists());
    let output = filter(folder.path(), &[]).stdin(lines(0..1)).output();
    assert_eq!((output.code(), output.text()), (Some(3), ""), "{output:?}");
    assert!(output.stderr.contains("is in use"), "{output:?}");
    drop(stdin);
    first.ends_well();
}

/// Point 12 of ARCHITECTURE.md: the command logs lines after it has printed them. After a kill in
/// between, the next run prints the last lines again, and no line is lost.
#[test]
fn a_kill_repeats_at_most_the_last_lines() {
    const LINES: u32 = 100_000;
    let folder = TempDir::new().unwrap();
    let input = folder.path().join("input");
    std::fs::write(&input, lines(0..LINES)).unwrap();
    let state = folder.path().join("storage");
    let made = ["--capacity", "200000", "--error-rate", "1e-12"];
    let mut printed: Vec<String> = Vec::new();
    let mut kills = 0;
    loop {
        let mut run = filter(&state, &made).arg(&input).start();
        poll(Duration::from_millis(20 + 10 * kills), || (!run.is_running()).then_some(()));
        let is_over = !run.is_running();
        if !is_over {
            run.signal(Signal::KILL);
        }
        let output = run.output(SOON);
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        let mut these: Vec<String> = text.lines().map(str::to_owned).collect();
        if !text.is_empty() && !text.ends_with('\n') {
            these.pop();
        }
        // The lines that this run printed again are the last lines of the earlier output.
        let first = these.first().and_then(|first| printed.iter().position(|it| it == first));
        let again = first.map_or(0, |first| printed.len() - first);
        println!("{} lines, {again} of them again", these.len());
        let both = again.min(these.len());
        assert_eq!(these[..both], printed[printed.len() - again..][..both]);
        printed.extend(these.into_iter().skip(again));
        if is_over {
            assert_eq!(output.code(), Some(0), "{output:?}");
            break;
        }
        kills += 1;
    }
    assert!(kills > 0, "the run was never killed while it worked");
    assert!(
        printed.iter().map(|line| format!("{line}\n")).eq(lines(0..LINES).split_inclusive('\n'))
    );
}

/// Crawl whose storage folder is also used by `urlseen filter`.
struct Shared {
    server: RedisServer,
    folder: TempDir,
}

impl Shared {
    /// Pushes lines as items, and runs the daemon. Returns the number of unseen items.
    fn crawl(&self, numbers: std::ops::Range<u32>) -> u64 {
        let items: Vec<String> = lines(numbers).lines().map(str::to_owned).collect();
        let () = self.server.connection().rpush("demo:discovered", items).unwrap();
        let output = urlseen(["run", "--drain", "--json", "--set"])
            .arg(format!("redis.url={}", self.server.url()))
            .arg("--set")
            .arg(format!("storage.dir={}", self.folder.path().display()))
            .output();
        let summary = done(&output);
        serde_json::from_str::<serde_json::Value>(&summary).unwrap()["unseen"].as_u64().unwrap()
    }

    fn pipe(&self, numbers: std::ops::Range<u32>) -> String {
        done(&filter(self.folder.path(), &[]).stdin(lines(numbers)).output())
    }
}

/// Point 12 of ARCHITECTURE.md: keys that `urlseen filter` adds to the folder of a crawl count with
/// any state of Redis.
#[test]
fn a_crawl_has_seen_lines_that_a_pipe_added_to_its_folder() {
    let mut shared = Shared { server: RedisServer::start(), folder: TempDir::new().unwrap() };
    assert_eq!(shared.crawl(0..10), 10);
    assert_eq!(shared.pipe(5..20), lines(10..20));
    assert_eq!(shared.crawl(0..30), 10);
    // Redis will go back to this state, from before the next runs of daemon and pipe.
    shared.server.cli(&["save"]);
    assert_eq!(shared.crawl(30..40), 10);
    assert_eq!(shared.pipe(30..50), lines(40..50));
    shared.server.restart();
    assert_eq!(shared.crawl(0..60), 20, "10 that Redis forgot, and 10 new ones");
    assert_eq!(shared.pipe(0..61), lines(60..61));
}

/// A bit that flips in the middle of the log would otherwise make all later lines new again.
#[test]
fn a_damaged_log_is_refused_until_its_end_is_given_up() {
    let folder = TempDir::new().unwrap();
    let run = |input: String| filter(folder.path(), &[]).stdin(input).output();
    for number in 0..3 {
        done(&run(lines(1000 * number..1000 * number + 1000)));
    }
    let files = || fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
    let is_log = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("log-");
    let log = files().find(is_log).unwrap();
    let mut bytes = fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&log, &bytes).unwrap();
    let storage = |words: &[&str]| urlseen(words).arg("--storage").arg(folder.path());
    let readers = [
        run(lines(0..10)),
        storage(&["check", "http://example.com/1"]).output(),
        storage(&["explain", "http://example.com/1"]).output(),
        storage(&["storage", "adopt"]).output(),
    ];
    for refused in readers {
        assert_ne!(refused.code(), Some(0), "{refused:?}");
        let name = log.file_name().unwrap().to_string_lossy();
        let said = format!("{}{}", refused.text(), refused.stderr);
        assert!(said.contains(&format!("{name} at byte ")), "{said}");
    }
    assert_eq!(fs::read(&log).unwrap(), bytes);
    let given_up = storage(&["storage", "adopt", "--yes"]).output();
    assert!(given_up.stderr.contains("2 records with at least"), "{given_up:?}");
    assert_eq!(done(&run(lines(0..3000))), lines(1000..3000));
    let is_copy = |path: &PathBuf| fs::read(path).unwrap() == bytes;
    assert!(files().any(|path| is_copy(&path)), "the damaged file is gone");
}
