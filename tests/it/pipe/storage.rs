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
