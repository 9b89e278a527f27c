//! `urlseen status --watch`, on a real terminal.

use std::fs;
use std::sync::atomic::Ordering;

use rustix::process::{Pid, Signal, kill_process};

use super::Endpoint;
use crate::util::binary::{Run, urlseen};
use crate::util::wait::{SOON, poll};

/// Opens the second screen of the terminal, and hides the cursor.
const OPEN: &str = "\u{1b}[?1049h\u{1b}[?25l";
/// Shows the cursor, and goes back to the first screen.
const CLOSE: &str = "\u{1b}[?25h\u{1b}[?1049l";
/// Moves to the first line, before each drawing.
const HOME: &str = "\u{1b}[H";

/// Runs the command in a terminal after a shell command, until it has drawn twice. Then sends a
/// signal, and returns everything that the command has written.
fn watch(first: &str, signal: Signal) -> String {
    let endpoint = Endpoint::new();
    let (program, folder) = (env!("CARGO_BIN_EXE_urlseen"), endpoint.folder.path().display());
    let command = format!("{first}exec {program} status --watch --storage {folder}");
    let script = ["--quiet", "--return", "--echo", "never", "--command", &command, "/dev/null"];
    let terminal = Run::of("script", script).start();
    // The command asks for the third time after it has drawn twice.
    let draws = || (endpoint.view.asked.load(Ordering::Relaxed) >= 3).then_some(());
    poll(SOON, draws).unwrap_or_else(|| panic!("it asks once: {}", terminal.stderr()));
    kill_process(child_of(terminal.id()), signal).unwrap();
    let output = terminal.output(SOON);
    assert_eq!(output.code(), Some(0), "{output:?}");
    output.text().to_owned()
}

#[test]
fn watching_draws_again_and_again_and_restores_the_terminal_at_the_end() {
    for signal in [Signal::INT, Signal::TERM] {
        let text = watch("", signal);
        assert!(text.starts_with(OPEN) && text.ends_with(CLOSE), "{text:?}");
        let drawings = text.split(HOME).skip(1).collect::<Vec<_>>();
        assert!(drawings.len() >= 2, "{text:?}");
        for part in ["crawl        a \"crawl\"\u{1b}[K\r\n", "phase        working\u{1b}[K\r\n"] {
            assert!(drawings.iter().all(|drawing| drawing.contains(part)), "{part}: {drawings:?}");
        }
        let speed = "speed                      0   items a second in the last 10 s; of these";
        assert!(!drawings[0].contains(speed) && drawings[1].contains(speed), "{drawings:?}");
        let escapes = text.matches("\u{1b}[").count();
        let known = [OPEN, CLOSE].map(|it| it.matches("\u{1b}[").count()).iter().sum::<usize>();
        let moves = [HOME, "\u{1b}[K", "\u{1b}[J"].map(|it| text.matches(it).count());
        assert_eq!(escapes, known + moves.iter().sum::<usize>(), "there are no colours: {text:?}");
    }
}

/// Returns the lines of the second drawing.
fn second_drawing(text: &str) -> Vec<&str> {
    let drawing = text.split(HOME).nth(2).unwrap();
    drawing.split("\r\n").map(|line| line.split('\u{1b}').next().unwrap()).collect()
}

/// Names of the rows that a low terminal shows, too.
const MOST_IMPORTANT: [&str; 11] = [
    "crawl",
    "phase",
    "source",
    "processing",
    "sink",
    "rejects",
    "waiting",
    "held",
    "speed",
    "filter",
    "items",
];

/// Returns the names at the starts of lines, without those of indented lines.
fn names<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    lines.iter().map(|line| line.split("  ").next().unwrap()).filter(|it| !it.is_empty()).collect()
}

#[test]
fn a_terminal_of_24_lines_shows_the_most_important_ones() {
    let text = watch("", Signal::TERM);
    let lines = second_drawing(&text);
    assert_eq!(lines.len(), 24);
    let rest = ["… 23 more lines in a higher terminal"];
    assert_eq!(names(&lines), [&MOST_IMPORTANT[..], &rest].concat(), "{lines:?}");
}

#[test]
fn a_high_terminal_shows_everything_and_the_newest_drops() {
    let text = watch("stty rows 60 cols 100; ", Signal::TERM);
    let lines = second_drawing(&text);
    let rest = [
        "batches", "asked", "clients", "process", "redis", "batch", "lease", "storage", "archive",
        "dropped",
    ];
    assert_eq!(names(&lines), [&MOST_IMPORTANT[..], &rest].concat(), "{lines:?}");
    let sample = "00:00:00Z  archives: http://a/\\xff.zip";
    let newest = lines.iter().rev().take_while(|line| line.ends_with(sample)).count();
    assert_eq!(newest, 3, "{lines:?}");
}

/// Returns the only child of a process.
fn child_of(process: u32) -> Pid {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap();
    let child = children.trim().parse().unwrap_or_else(|_| panic!("not one child: {children:?}"));
    Pid::from_raw(child).unwrap()
}

#[test]
fn watching_needs_a_terminal() {
    let endpoint = Endpoint::new();
    let output = urlseen(["status", "--watch", "--storage"]).arg(endpoint.folder.path()).output();
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("--watch draws on a terminal"), "{output:?}");
    assert_eq!(output.text(), "");
}
