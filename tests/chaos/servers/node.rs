//! One Redis server or Sentinel, and its process.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use redis::{Client, Cmd, Connection, FromRedisValue};
use rustix::process::Signal;

use crate::process::{Process, SOON, wait_for};

/// Time limit for the connection to a server, and for its answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Waits until `look` returns a value. Until then, its errors count as no value.
pub(super) fn until<T>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let mut last = None;
    let found = wait_for(what, limit, || {
        let found = look().unwrap_or_else(|error| {
            last = Some(error);
            None
        });
        if found.is_none() {
            sleep(Duration::from_millis(20));
        }
        Ok(found)
    });
    match last {
        Some(last) => found.with_context(|| format!("last error: {last:#}")),
        None => found,
    }
}

/// Makes a command of Redis from words that are separated by spaces.
pub(super) fn words(line: &str) -> Cmd {
    let mut made = Cmd::new();
    made.arg(line.split(' ').collect::<Vec<_>>());
    made
}

/// Redis server or Sentinel, in its own folder.
pub(super) struct Node {
    pub(super) folder: PathBuf,
    pub(super) port: u16,
    arguments: Vec<String>,
    /// The process, and true while it is paused.
    process: Mutex<Option<(Process, bool)>>,
}

impl Node {
    /// Describes a server, and does not start it.
    pub(super) fn new(folder: PathBuf, address: &str, port: u16, arguments: &str) -> Self {
        let line = format!(
            "{arguments} --port {port} --bind {address} --bind-source-addr {address} \
            --unixsocket {}",
            folder.join("socket").display()
        );
        let arguments = line.split_whitespace().map(str::to_owned).collect();
        Self { folder, port, arguments, process: Mutex::default() }
    }

    pub(super) fn start(&self, more: &[String]) -> Result<()> {
        fs::create_dir_all(&self.folder)?;
        let arguments = self.arguments.iter().chain(more);
        let process = Process::start(Path::new("redis-server"), arguments, &self.folder)?;
        *self.process() = Some((process, false));
        until("answer of redis-server", SOON, || self.run::<String>(&words("PING")).map(Some))?;
        Ok(())
    }

    fn process(&self) -> MutexGuard<'_, Option<(Process, bool)>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn kill(&self) {
        *self.process() = None;
    }

    pub(super) fn pause(&self, is_paused: bool) -> Result<()> {
        let mut process = self.process();
        let (process, state) = process.as_mut().context("the server does not run")?;
        *state = is_paused;
        process.signal(if is_paused { Signal::STOP } else { Signal::CONT })
    }

    pub(super) fn runs(&self) -> bool {
        matches!(*self.process(), Some((_, false)))
    }

    /// Connects to the server. A server that was killed or paused is an error at once.
    pub(super) fn connection(&self) -> Result<Connection> {
        ensure!(self.runs(), "the server at port {} does not run", self.port);
        let url = format!("unix://{}", self.folder.join("socket").display());
        let connection = Client::open(url)?.get_connection_with_timeout(PATIENCE)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        Ok(connection)
    }

    pub(super) fn run<T: FromRedisValue>(&self, command: &Cmd) -> Result<T> {
        Ok(command.query(&mut self.connection()?)?)
    }

    pub(super) fn info(&self) -> Result<String> {
        self.run(&words("INFO replication"))
    }

    /// Returns what the server knows of the cluster: for each node, its number, address, flags,
    /// primary, the times of messages, epoch, link and slots.
    pub(super) fn cluster(&self) -> Result<Vec<Vec<String>>> {
        let text: String = self.run(&words("CLUSTER NODES"))?;
        Ok(text.lines().map(|it| it.split(' ').map(str::to_owned).collect()).collect())
    }

    /// Returns what a server of a cluster knows of itself.
    pub(super) fn own(&self) -> Result<Vec<String>> {
        let own = self.cluster()?.into_iter().find(|it| it[2].contains("myself"));
        own.context("a server knows itself")
    }

    /// Closes the connections of urlseen.
    pub(super) fn cut(&self) -> Result<()> {
        let clients: String = self.run(&words("CLIENT LIST"))?;
        for client in clients.lines().filter(|it| it.contains(" name=urlseen ")) {
            let id = client.split(' ').next().unwrap_or_default().replace('=', " ");
            self.run::<u64>(&words(&format!("CLIENT KILL {id}")))?;
        }
        Ok(())
    }
}
