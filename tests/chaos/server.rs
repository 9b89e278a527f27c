//! Redis server that can crash. It comes back with the data that its persistence kept.

use std::collections::VecDeque;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use redis::{Client, Connection};

use crate::process::{Process, SOON, wait_for};

/// Persistence of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// Append-only file, synced before every answer. A crash loses no data.
    Always,
    /// Append-only file, synced every second. A crash of the machine loses the data of a second or
    /// two.
    EverySecond,
    /// Saves from time to time, as in Debian's configuration. A crash loses all data since the last
    /// save.
    Saves,
}

/// Maximum age of a write that a crash of the machine may lose from the append-only file.
const UNFLUSHED: Duration = Duration::from_secs(2);

/// Maximum age of a copy that is restored. The daemon's log always reaches back further.
const COPY_AGE: Duration = Duration::from_secs(45);

/// Redis server in its own folder.
pub(crate) struct Server {
    folder: PathBuf,
    persistence: Persistence,
    process: Option<Process>,
    /// Earlier lengths of the append-only file, with their times.
    lengths: VecDeque<(Instant, u64)>,
    copies: Vec<Copy>,
}

/// Copy of the data at an earlier moment.
struct Copy {
    processing: Instant,
    kept: Kept,
}

enum Kept {
    /// Length of the append-only file.
    Length(u64),
    /// Dump of the whole data set.
    Dump(Vec<u8>),
}

impl Server {
    /// Starts a server in `folder`, which is empty or has the data of an earlier server.
    pub(crate) fn start(folder: &Path, persistence: Persistence) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let mut server = Self {
            folder: folder.to_owned(),
            persistence,
            process: None,
            lengths: VecDeque::new(),
            copies: Vec::new(),
        };
        server.revive()?;
        Ok(server)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    pub(crate) fn connection(&self) -> Result<Connection> {
        let url = format!("unix://{}", self.socket().display());
        Ok(Client::open(url)?.get_connection_with_timeout(SOON)?)
    }

    /// Starts the server again after a crash, and waits until it answers.
    pub(crate) fn revive(&mut self) -> Result<()> {
        let (append, fsync) = match self.persistence {
            Persistence::Always => ("yes", "always"),
            Persistence::EverySecond => ("yes", "everysec"),
            Persistence::Saves => ("no", "no"),
        };
        let socket = self.socket();
        drop(fs::remove_file(&socket));
        let arguments = ["--port", "0", "--save", "", "--daemonize", "no", "--appendonly", append];
        let arguments = arguments.into_iter().chain([
            "--appendfsync",
            fsync,
            "--auto-aof-rewrite-percentage",
            "0",
            "--unixsocket",
        ]);
        let arguments: Vec<String> =
            arguments.map(str::to_owned).chain([socket.display().to_string()]).collect();
        let mut process = Process::start(Path::new("redis-server"), arguments, &self.folder)?;
        let answers = wait_for("answer of redis-server", SOON, || {
            let status = process.ended()?;
            ensure!(status.is_none(), "redis-server ended: {}", process.said());
            let pong = self.connection().and_then(|mut it| Ok(redis::cmd("PING").exec(&mut it)?));
            Ok(pong.ok())
        });
        answers.with_context(|| process.said())?;
        self.process = Some(process);
        self.note_length()
    }

    /// Treats the present data as saved, and drops all earlier copies. So Redis never comes back
    /// with data from before this moment.
    pub(crate) fn settle(&mut self) -> Result<()> {
        self.lengths.clear();
        self.copies.clear();
        self.note_length()?;
        self.copy()
    }

    /// Records the present length of the append-only file. Call it regularly.
    pub(crate) fn note_length(&mut self) -> Result<()> {
        if self.persistence == Persistence::EverySecond {
            self.lengths.push_back((Instant::now(), fs::metadata(self.append_only()?)?.len()));
            while self.lengths.len() > 1 && self.lengths[1].0.elapsed() > UNFLUSHED {
                self.lengths.pop_front();
            }
        }
        Ok(())
    }

    /// Takes a copy of the data, which can be restored later.
    pub(crate) fn copy(&mut self) -> Result<()> {
        let kept = if self.persistence == Persistence::Saves {
            Kept::Dump(self.dump()?)
        } else {
            Kept::Length(fs::metadata(self.append_only()?)?.len())
        };
        self.copies.push(Copy { processing: Instant::now(), kept });
        Ok(())
    }

    /// Saves the data, and returns the saved file.
    pub(crate) fn dump(&self) -> Result<Vec<u8>> {
        let mut connection = self.connection()?;
        // Redis refuses a save while another save runs.
        wait_for("save", SOON, || Ok(redis::cmd("SAVE").exec(&mut connection).ok()))?;
        Ok(fs::read(self.dump_file())?)
    }

    /// Kills the server, and replaces its data.
    pub(crate) fn put(&mut self, dump: &[u8]) -> Result<()> {
        self.kill()?;
        Ok(fs::write(self.dump_file(), dump)?)
    }

    /// Saves the data, as in an automatic save of Redis.
    pub(crate) fn save(&self) -> Result<()> {
        if self.persistence == Persistence::Saves {
            let mut connection = self.connection()?;
            // Redis refuses a save while another save runs.
            wait_for("save", SOON, || Ok(redis::cmd("BGSAVE").exec(&mut connection).ok()))?;
        }
        Ok(())
    }

    /// Kills the server, and removes the data that a crash would lose.
    pub(crate) fn crash(&mut self, random: &mut Rng) -> Result<()> {
        self.kill()?;
        if self.persistence == Persistence::EverySecond && random.bool() {
            let file = self.append_only()?;
            let end = fs::metadata(&file)?.len();
            let flushed = self.lengths.front().map_or(end, |&(_, length)| length.min(end));
            self.truncate(random.u64(flushed..=end))?;
        }
        Ok(())
    }

    /// Kills the server, and restores one of its copies. Returns true if there was one.
    pub(crate) fn roll_back(&mut self, random: &mut Rng) -> Result<bool> {
        self.kill()?;
        self.copies.retain(|copy| copy.processing.elapsed() < COPY_AGE);
        if self.copies.is_empty() {
            return Ok(false);
        }
        let index = random.usize(0..self.copies.len());
        self.put_back(index)?;
        Ok(true)
    }

    fn put_back(&mut self, index: usize) -> Result<()> {
        match &self.copies[index].kept {
            Kept::Length(length) => self.truncate(*length)?,
            Kept::Dump(dump) => fs::write(self.dump_file(), dump)?,
        }
        // Later copies belong to a history that does not exist any more.
        self.copies.truncate(index + 1);
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> Result<()> {
        OpenOptions::new().write(true).open(self.append_only()?)?.set_len(length)?;
        self.repair()?;
        self.lengths.retain(|&(_, noted)| noted <= length);
        let is_there = |copy: &Copy| !matches!(copy.kept, Kept::Length(kept) if kept > length);
        self.copies.retain(is_there);
        Ok(())
    }

    /// Cuts an incomplete transaction off the end of the append-only file. If the file ends within
    /// a command, Redis 7.0 keeps the incomplete transaction and appends new commands after it.
    /// When Redis starts the second time, it would execute this mixture.
    fn repair(&self) -> Result<()> {
        let manifest = self.folder.join("appendonlydir/appendonly.aof.manifest");
        let mut command = Command::new("redis-check-aof");
        command.arg("--fix").arg(manifest).stdin(Stdio::piped());
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        if let Some(mut pipe) = process.stdin.take() {
            // The tool asks for a confirmation only if it must cut the file.
            drop(pipe.write_all(b"y\n"));
        }
        let output = process.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "redis-check-aof: {said}");
        Ok(())
    }

    fn kill(&mut self) -> Result<()> {
        self.process.take().map_or(Ok(()), |mut process| process.kill())
    }

    fn dump_file(&self) -> PathBuf {
        self.folder.join("dump.rdb")
    }

    /// Returns the path of the file to which Redis appends. It is in the append-only folder.
    fn append_only(&self) -> Result<PathBuf> {
        let entries = fs::read_dir(self.folder.join("appendonlydir"))?;
        let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        paths.retain(|path| path.to_string_lossy().ends_with(".incr.aof"));
        paths.sort();
        paths.pop().context("the server has no append-only file")
    }
}
