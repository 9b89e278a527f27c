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

#[test]
fn watching_draws_again_and_again_and_restores_the_terminal_at_the_end() {
    for signal in [Signal::INT, Signal::TERM] {
        let endpoint = Endpoint::new();
        let (program, folder) = (env!("CARGO_BIN_EXE_urlseen"), endpoint.folder.path().display());
        let command = format!("exec {program} status --watch --storage {folder}");
        let script = ["--quiet", "--return", "--echo", "never", "--command", &command, "/dev/null"];
        let terminal = Run::of("script", script).start();
        // The command asks for the third time after it has drawn twice.
        let draws = || (endpoint.view.asked.load(Ordering::Relaxed) >= 3).then_some(());
        poll(SOON, draws).unwrap_or_else(|| panic!("it asks once: {}", terminal.stderr()));
        kill_process(child_of(terminal.id()), signal).unwrap();
        let output = terminal.output(SOON);
        assert_eq!(output.code(), Some(0), "{output:?}");
        let text = output.text();
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
