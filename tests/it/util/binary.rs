//! Tools to run the built program `urlseen`, to its end or in the background.

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

/// Result of a run that has ended.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Output {
    /// Returns the exit status. `None` if a signal ended the run.
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Returns the standard output as text.
    ///
    /// # Panics
    /// If the output is not UTF-8.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("text on standard output")
    }
}

/// Prepared run: arguments, environment, folder and standard input.
///
/// By default, the program runs in a new, empty folder, with empty input and without the `URLSEEN_`
/// variables of the test process.
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

    /// Sets the bytes of standard input.
    pub(crate) fn stdin(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// Runs the program to its end, which must come within a minute.
    ///
    /// # Panics
    /// If the program does not end. The message has the output so far.
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
            // A program may end before it has read everything. Its status then shows the reason.
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

/// Program that runs in the background. It is killed when dropped.
pub(crate) struct Daemon {
    process: Child,
    name: String,
    /// Standard error so far, in whole lines.
    said: Arc<Mutex<String>>,
    /// Thread that reads standard output. `None` after the output was taken.
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: JoinHandle<()>,
    _folder: TempDir,
}

impl Daemon {
    /// Waits for a line on standard error that contains `part`. Returns the first such line since
    /// the start of the program.
    ///
    /// # Panics
    /// If no such line appears within `deadline`. The message has the output.
    #[track_caller]
    pub(crate) fn wait_for_line(&mut self, part: &str, deadline: Duration) -> String {
        let found = poll(deadline, || {
            // The end is checked before the lines are read: if the program has ended, these lines
            // are its whole output.
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

    /// Returns the process id of the program.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Returns standard error so far, as text.
    pub(crate) fn stderr(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a signal to the program, for example `Signal::TERM`.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("a running process of ours");
    }

    /// Returns true if the program has not ended yet.
    pub(crate) fn is_running(&mut self) -> bool {
        self.process.try_wait().expect("a child can be waited for").is_none()
    }

    /// Waits until the program has ended.
    ///
    /// # Panics
    /// If the program does not end within `deadline`. The message has its output.
    #[track_caller]
    pub(crate) fn wait(&mut self, deadline: Duration) -> ExitStatus {
        let status = poll(deadline, || self.process.try_wait().expect("a child of ours"));
        status.unwrap_or_else(|| {
            panic!("{} still runs after {deadline:?}, it said:\n{}", self.name, self.stderr())
        })
    }

    /// Waits until the program has ended, and returns its whole output.
    ///
    /// # Panics
    /// If the program does not end within `deadline`. The message has its output.
    #[track_caller]
    pub(crate) fn output(mut self, deadline: Duration) -> Output {
        let status = self.wait(deadline);
        let stdout = self.stdout.take().expect("the output is taken once");
        // The pipes end with the program, if no child process still holds them.
        poll(SOON, || (stdout.is_finished() && self.stderr.is_finished()).then_some(()))
            .unwrap_or_else(|| panic!("{} left children that hold its output", self.name));
        let (stdout, stderr) = (stdout.join().expect("a reader that ended"), self.stderr());
        Output { status, stdout, stderr }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // This can fail only if the process has ended already.
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
