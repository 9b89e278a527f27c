//! Child processes of a round, and their output.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Time between two checks of a condition.
pub(crate) const POLL: Duration = Duration::from_micros(500);

/// Time limit for events that should happen at once, even on a busy machine.
pub(crate) const SOON: Duration = Duration::from_mins(1);

/// Waits until `look` returns a value, and returns this value. Fails after `deadline`.
pub(crate) fn wait_for<T>(
    what: &str,
    deadline: Duration,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let end = Instant::now() + deadline;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if Instant::now() >= end {
            bail!("no {what} within {} s", deadline.as_secs());
        }
        thread::sleep(POLL);
    }
}

/// Child process. When this value is dropped, the process and its group are killed. When this
/// program ends, the kernel kills the process.
pub(crate) struct Process {
    child: Child,
    /// Standard output and error so far, in whole lines.
    said: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

impl Process {
    /// Starts `program` in `folder`. The caller must be the thread that lives longest, because the
    /// kernel kills the child when that thread ends.
    pub(crate) fn start(
        program: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        folder: &Path,
    ) -> Result<Self> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program).args(arguments);
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"URLSEEN_") {
                command.env_remove(name);
            }
        }
        let mut child = command
            .current_dir(folder)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("setpriv of util-linux cannot be run")?;
        let said = Arc::<Mutex<String>>::default();
        let mut readers = Vec::new();
        if let Some(pipe) = child.stdout.take() {
            readers.push(collect(pipe, Arc::clone(&said)));
        }
        if let Some(pipe) = child.stderr.take() {
            readers.push(collect(pipe, Arc::clone(&said)));
        }
        Ok(Self { child, said, readers })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the output of the child so far.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the exit status, if the child has ended. In this case, the child's output is
    /// complete.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        let status = self.child.try_wait().context("a child cannot be waited for")?;
        if status.is_some() {
            for reader in self.readers.drain(..) {
                drop(reader.join());
            }
        }
        Ok(status)
    }

    /// Waits until the child has ended.
    pub(crate) fn wait(&mut self, deadline: Duration) -> Result<ExitStatus> {
        wait_for("end of a process", deadline, || self.ended())
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(Pid::from_child(&self.child), signal).context("a child takes no signal")
    }

    /// Kills the child and its children, as in a crash of the machine, and waits until they have
    /// ended.
    pub(crate) fn kill(&mut self) -> Result<()> {
        if self.child.try_wait()?.is_none() {
            kill_process_group(Pid::from_child(&self.child), Signal::KILL)
                .context("a child cannot be killed")?;
        }
        self.child.wait().context("a child cannot be waited for")?;
        for reader in self.readers.drain(..) {
            drop(reader.join());
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.kill());
    }
}

/// Appends the output of `pipe` to `said`, line by line, until it ends.
fn collect(pipe: impl Read + Send + 'static, said: Arc<Mutex<String>>) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = Vec::new();
        while pipe.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
            said.push_str(&String::from_utf8_lossy(&line));
            line.clear();
        }
    })
}
