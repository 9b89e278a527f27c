//! `urlseen filter --storage`: it records unseen lines in the storage folder.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::util::binary::{Run, urlseen};
use crate::util::wait::{SOON, poll};

fn filter(folder: &Path, arguments: &[&str]) -> Run {
    let run = urlseen(["filter", "--storage"]).arg(folder);
    arguments.iter().fold(run, Run::arg)
}

fn lines(numbers: impl Iterator<Item = u32>) -> String {
    numbers.map(|number| format!("http://example.com/{number}\n")).collect()
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
