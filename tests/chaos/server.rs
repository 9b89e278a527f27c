//! A Redis server that crashes, and comes back with what its way to keep data has kept.

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

/// How a server keeps its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// Append-only file, flushed before every answer: a crash loses nothing.
    Always,
    /// Append-only file, flushed every second: a crash of the machine loses a second or two.
    EverySecond,
    /// Saved now and then, as Debian installs it: a crash loses all since the last save.
    Saves,
}

/// How much of the end of the append-only file a crash of the machine may take.
const UNFLUSHED: Duration = Duration::from_secs(2);

/// How old a copy may be that is put back: younger than the least time that the daemon's log
/// reaches back.
const COPY_AGE: Duration = Duration::from_secs(45);

/// The server, in a folder of its own.
pub(crate) struct Server {
    folder: PathBuf,
    persistence: Persistence,
    process: Option<Process>,
    /// How long the append-only file was, and when.
    lengths: VecDeque<(Instant, u64)>,
    copies: Vec<Copy>,
}

/// The data as it was once.
struct Copy {
    processing: Instant,
    kept: Kept,
}

enum Kept {
    /// The append-only file up to here.
    Length(u64),
    /// A dump.
    Dump(Vec<u8>),
}

impl Server {
    /// Starts a server in `folder`, which must be empty or one that a server left.
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

    /// Starts it again after a crash, and waits until it answers.
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

    /// Takes what there is for saved, and forgets all copies: nothing goes back behind it.
    pub(crate) fn settle(&mut self) -> Result<()> {
        self.lengths.clear();
        self.copies.clear();
        self.note_length()?;
        self.copy()
    }

    /// Notes how long the append-only file is now; to be called now and then.
    pub(crate) fn note_length(&mut self) -> Result<()> {
        if self.persistence == Persistence::EverySecond {
            self.lengths.push_back((Instant::now(), fs::metadata(self.append_only()?)?.len()));
            while self.lengths.len() > 1 && self.lengths[1].0.elapsed() > UNFLUSHED {
                self.lengths.pop_front();
            }
        }
        Ok(())
    }

    /// Takes a copy of the data, to be put back later.
    pub(crate) fn copy(&mut self) -> Result<()> {
        let kept = if self.persistence == Persistence::Saves {
            Kept::Dump(self.dump()?)
        } else {
            Kept::Length(fs::metadata(self.append_only()?)?.len())
        };
        self.copies.push(Copy { processing: Instant::now(), kept });
        Ok(())
    }

    /// The data as it is saved, of a server that keeps its data so.
    pub(crate) fn dump(&self) -> Result<Vec<u8>> {
        let mut connection = self.connection()?;
        // Refused while another save is under way.
        wait_for("save", SOON, || Ok(redis::cmd("SAVE").exec(&mut connection).ok()))?;
        Ok(fs::read(self.dump_file())?)
    }

    /// Kills it, and puts other data in the place of its own.
    pub(crate) fn put(&mut self, dump: &[u8]) -> Result<()> {
        self.kill()?;
        Ok(fs::write(self.dump_file(), dump)?)
    }

    /// Saves, as Redis does by itself where it is told to.
    pub(crate) fn save(&self) -> Result<()> {
        if self.persistence == Persistence::Saves {
            let mut connection = self.connection()?;
            // Refused while another save is under way.
            wait_for("save", SOON, || Ok(redis::cmd("BGSAVE").exec(&mut connection).ok()))?;
        }
        Ok(())
    }

    /// Kills it; what a crash loses of the data is gone.
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

    /// Kills it, and puts the data back to one of the copies that were taken; says whether there
    /// was one.
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
        // What is of later has never been.
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

    /// Cuts off the transaction that the append-only file ends in the middle of. Redis (7.0) leaves
    /// its beginning in the file where the end is torn in the middle of a command, appends to it,
    /// and carries it out at the start after the next.
    fn repair(&self) -> Result<()> {
        let manifest = self.folder.join("appendonlydir/appendonly.aof.manifest");
        let mut command = Command::new("redis-check-aof");
        command.arg("--fix").arg(manifest).stdin(Stdio::piped());
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        if let Some(mut pipe) = process.stdin.take() {
            // It asks whether to go on only where there is something to cut off.
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

    /// The file of the append-only folder that grows.
    fn append_only(&self) -> Result<PathBuf> {
        let entries = fs::read_dir(self.folder.join("appendonlydir"))?;
        let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        paths.retain(|path| path.to_string_lossy().ends_with(".incr.aof"));
        paths.sort();
        paths.pop().context("the server has no append-only file")
    }
}
