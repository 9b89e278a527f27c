//! The built `urlseen` program, run to its end or in the background.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::dies_with_us;
use super::wait::{SOON, poll};

/// Result of a run to the end.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Output {
    /// Exit status. `None` if a signal ended it.
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Standard output as text.
    ///
    /// # Panics
    /// If it is not UTF-8.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("text on standard output")
    }
}

/// A run to prepare: its arguments, environment, folder and standard input.
///
/// By default it runs in an empty folder of its own, reads nothing, and sees no `URLSEEN_` variable
/// of the tests' environment.
pub(crate) struct Run {
    command: Command,
    name: String,
    input: Option<Vec<u8>>,
    folder: TempDir,
}

/// Prepares a run of the built `urlseen` with these arguments.
pub(crate) fn urlseen(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Run {
    Run::of(env!("CARGO_BIN_EXE_urlseen"), arguments)
}

impl Run {
    /// Prepares a run of any program.
    pub(crate) fn of(
        program: impl AsRef<Path>,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Self {
        let folder = TempDir::with_prefix("urlseen-run-").expect("a temporary folder");
        let mut command = dies_with_us(&program);
        command.args(arguments).current_dir(folder.path());
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"URLSEEN_") {
                command.env_remove(name);
            }
        }
        let name = program.as_ref().file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { command, name, input: None, folder }
    }

    /// Adds one argument to the command.
    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Sets a variable of the environment.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Sets the folder to run in.
    pub(crate) fn dir(mut self, folder: impl AsRef<Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Sets the bytes for standard input.
    pub(crate) fn stdin(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// Runs to the end, which must come within a minute.
    ///
    /// # Panics
    /// If the end does not come, with the output so far.
    pub(crate) fn output(self) -> Output {
        self.start().output(Duration::from_mins(1))
    }

    /// Starts the program in the background.
    pub(crate) fn start(mut self) -> Daemon {
        let input = if self.input.is_some() { Stdio::piped() } else { Stdio::null() };
        let mut process = self
            .command
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("setpriv of util-linux is on every Debian");
        if let (Some(mut pipe), Some(input)) = (process.stdin.take(), self.input) {
            // A program that ends before it has read everything reports that by its status.
            thread::spawn(move || drop(pipe.write_all(&input)));
        }
        let mut pipe = process.stdout.take().expect("standard output is piped");
        let stdout = Some(thread::spawn(move || {
            let mut bytes = Vec::new();
            pipe.read_to_end(&mut bytes).map(|_| bytes).expect("a readable pipe")
        }));
        let said = Arc::<Mutex<String>>::default();
        let pipe = process.stderr.take().expect("standard error is piped");
        let stderr = thread::spawn({
            let said = Arc::clone(&said);
            move || collect(pipe, &said)
        });
        Daemon { process, name: self.name, said, stdout, stderr, _folder: self.folder }
    }
}

/// Program that runs in the background, killed when dropped.
pub(crate) struct Daemon {
    process: Child,
    name: String,
    /// Standard error so far, whole lines.
    said: Arc<Mutex<String>>,
    /// `None` once the output is taken.
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: JoinHandle<()>,
    _folder: TempDir,
}

impl Daemon {
    /// First line on standard error that contains `part`, from the start of the program.
    ///
    /// # Panics
    /// If there is none within `deadline`, or the program ends without it; with its output.
    #[track_caller]
    pub(crate) fn wait_for_line(&mut self, part: &str, deadline: Duration) -> String {
        let found = poll(deadline, || {
            // In this order: the output of an ended program is complete once its pipe is closed.
            let ended = self.stderr.is_finished();
            let line = self.stderr().lines().find(|line| line.contains(part)).map(str::to_owned);
            if line.is_some() || ended { Some(line) } else { None }
        });
        match found {
            Some(Some(line)) => line,
            Some(None) => panic!("{} ended before it said {part:?}:\n{}", self.name, self.stderr()),
            None => panic!("{} said no {part:?} in {deadline:?}:\n{}", self.name, self.stderr()),
        }
    }

    /// Returns the id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Standard error so far, as text.
    pub(crate) fn stderr(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a signal: `Signal::TERM`, `Signal::INT`, `Signal::KILL`, `Signal::STOP`, …
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("a running process of ours");
    }

    /// Returns true if it has not ended yet.
    pub(crate) fn is_running(&mut self) -> bool {
        self.process.try_wait().expect("a child can be waited for").is_none()
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If the end does not come within `deadline`, with its output.
    #[track_caller]
    pub(crate) fn wait(&mut self, deadline: Duration) -> ExitStatus {
        let status = poll(deadline, || self.process.try_wait().expect("a child of ours"));
        status.unwrap_or_else(|| {
            panic!("{} still runs after {deadline:?}, it said:\n{}", self.name, self.stderr())
        })
    }

    /// Waits for its end, and returns its whole output.
    ///
    /// # Panics
    /// If the end does not come within `deadline`, with its output.
    #[track_caller]
    pub(crate) fn output(mut self, deadline: Duration) -> Output {
        let status = self.wait(deadline);
        let stdout = self.stdout.take().expect("the output is taken once");
        // The pipes end with the program, unless it left children that hold them.
        poll(SOON, || (stdout.is_finished() && self.stderr.is_finished()).then_some(()))
            .unwrap_or_else(|| panic!("{} left children that hold its output", self.name));
        let (stdout, stderr) = (stdout.join().expect("a reader that ended"), self.stderr());
        Output { status, stdout, stderr }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Fails only for a process that has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Appends the text of `pipe` to `said`, line by line, until it ends.
fn collect(pipe: impl Read, said: &Mutex<String>) {
    let mut pipe = BufReader::new(pipe);
    let mut line = Vec::new();
    while pipe.read_until(b'\n', &mut line).expect("a readable pipe") > 0 {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.push_str(&String::from_utf8_lossy(&line));
        line.clear();
    }
}
