//! Daemon under test: its start, its output and its end.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use anyhow::Result;
use fastrand::Rng;
use rustix::process::Signal;

use crate::process::{Process, SOON};

/// Text that the daemon prints each time its filter has reached the state of Redis and its work
/// starts.
const READY: &str = "this daemon has taken the lease";
/// Text that the daemon prints when it waits for the lease or the lock.
const STANDING_BY: &str = "standing by";

/// Keys of the crawl in Redis.
pub(crate) const SOURCE: &str = "demo:discovered";
pub(crate) const SINK: &str = "demo:unseen";
pub(crate) const REJECTED: &str = "demo:rejected";
pub(crate) const PROCESSING: &str = "urlseen:{demo:discovered}:processing";
pub(crate) const STATE: &str = "urlseen:{demo:discovered}:state";
pub(crate) const LEASE: &str = "urlseen:{demo:discovered}:lease";

/// Place where the filter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FilterPlace {
    /// in the daemon's memory and a storage folder
    Local,
    /// in Redis, with no folder at all
    Redis,
}

/// Settings of filters in Redis. Each filter is so large that it practically never reports a new
/// URL as seen.
const LAYOUTS: [&[&str]; 4] = [
    NATIVE,
    &["filter.kind=pyrebloom", "filter.error_rate=1e-12"],
    &["filter.kind=scrapy-redis-bloomfilter", "filter.bit=25", "filter.hash_number=14"],
    SET,
];

const NATIVE: &[&str] = &["filter.kind=native", "filter.error_rate=1e-12"];

/// Filter that begins with a few slots, and grows in most batches.
const GROWING: &[&str] =
    &["filter.kind=two-choice", "filter.capacity=1", "filter.error_rate=1e-12"];

/// Kind of filter that has no capacity.
const SET: &[&str] = &["filter.kind=scrapy-redis"];

/// Configuration of the daemon: all values that differ between rounds.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) batch: u64,
    pub(crate) threads: u8,
    /// Value of `source.take_from`.
    pub(crate) take_from: &'static str,
    pub(crate) capacity: u64,
    pub(crate) fsync: &'static str,
    pub(crate) snapshot_bytes: u64,
    pub(crate) on_rollback: &'static str,
    pub(crate) place: FilterPlace,
    /// Kind of the filter, with its error rate or its size.
    pub(crate) kind: &'static [&'static str],
    /// Size of the cache of seen keys, for a filter in Redis.
    pub(crate) recent: u64,
}

impl Settings {
    /// Draws the settings at random. The capacity is set later, from the number of items.
    pub(crate) fn draw(random: &mut Rng, place: FilterPlace) -> Self {
        Self {
            place,
            kind: LAYOUTS[0],
            recent: 1,
            batch: [1, 3, 20, 100, 400, 1000][random.usize(0..6)],
            threads: random.u8(1..=3),
            take_from: ["left", "right"][random.usize(0..2)],
            capacity: 0,
            fsync: ["always", "interval", "never"][random.usize(0..3)],
            snapshot_bytes: 1 << random.u32(12..18),
            on_rollback: "stop",
        }
        .with_kind(random)
    }

    /// Draws the kind of the filter, and the settings that only a filter in Redis has.
    fn with_kind(mut self, random: &mut Rng) -> Self {
        match self.place {
            FilterPlace::Local => self.kind = [NATIVE, GROWING][random.usize(0..2)],
            FilterPlace::Redis => {
                self.kind = LAYOUTS[random.usize(0..LAYOUTS.len())];
                self.recent = [1, 100, 1 << 20][random.usize(0..3)];
            }
        }
        self
    }

    /// Returns true if the filter grows. Then some of its shards grow at any time.
    pub(crate) fn grows(&self) -> bool {
        self.kind == GROWING
    }

    /// Returns a short description of the filter.
    pub(crate) fn kept(&self) -> String {
        match self.place {
            FilterPlace::Local => format!("{}, fsync {}", self.kind[0], self.fsync),
            FilterPlace::Redis => format!("{}, {} remembered", self.kind[0], self.recent),
        }
    }

    /// Returns the Redis command with which the feeder pushes to the source.
    pub(crate) fn push(&self) -> &'static str {
        match self.take_from {
            "left" => "RPUSH",
            _ => "LPUSH",
        }
    }

    fn lines(&self, redis: SocketAddr, state: &Path) -> Vec<String> {
        let mut lines = vec![
            format!("redis.url=redis://{redis}/0"),
            format!("source.batch={}", self.batch),
            format!("source.take_from={}", self.take_from),
            format!("filter.threads={}", self.threads),
            format!("storage.dir={}", state.display()),
            format!("storage.fsync={}", self.fsync),
            format!("storage.snapshot_bytes={}", self.snapshot_bytes),
            format!("storage.on_rollback={}", self.on_rollback),
        ];
        lines.extend(self.kind.iter().map(ToString::to_string));
        if self.kind != SET && !self.grows() {
            lines.push(format!("filter.capacity={}", self.capacity));
        }
        if self.place == FilterPlace::Redis {
            lines.push("filter.place=redis".to_owned());
            lines.push(format!("filter.recent={}", self.recent));
        }
        lines
    }
}

/// Starter of daemons. All of them have the same folder and the same settings.
pub(crate) struct Runner {
    pub(crate) program: PathBuf,
    /// Folder with the log of the daemons' outputs, and with the storage folder.
    pub(crate) folder: PathBuf,
    pub(crate) redis: SocketAddr,
    pub(crate) settings: Settings,
    /// Number of times that another storage folder replaced the one before.
    moves: u32,
}

impl Runner {
    pub(crate) fn new(
        program: &Path,
        folder: &Path,
        redis: SocketAddr,
        settings: Settings,
    ) -> Self {
        let (program, folder) = (program.to_owned(), folder.to_owned());
        Self { program, folder, redis, settings, moves: 0 }
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.join(format!("state-{}", self.moves))
    }

    /// Uses another storage folder from now on.
    pub(crate) fn move_storage(&mut self) {
        self.moves += 1;
    }

    /// Starts a daemon. The function does not wait until the daemon is ready.
    pub(crate) fn start(&self, options: &[&str]) -> Result<Daemon> {
        let mut arguments = vec!["run".to_owned()];
        arguments.extend(options.iter().map(ToString::to_string));
        arguments.extend(self.set());
        Ok(self.daemon(Process::start(&self.program, arguments, &self.folder)?))
    }

    /// Starts a daemon. All its syncs to the disk fail, beginning with sync number `first`.
    pub(crate) fn start_with_failing_syncs(&self, first: u64) -> Result<Daemon> {
        // `-D` detaches the tracer, so that the daemon, and not strace, is the child of this
        // program.
        let tracer = ["-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e"];
        let mut arguments: Vec<String> = tracer.map(str::to_owned).to_vec();
        arguments.push(format!("inject=fsync,fdatasync:error=EIO:when={first}+"));
        arguments.extend([self.program.display().to_string(), "run".to_owned()]);
        arguments.extend(self.set());
        Ok(self.daemon(Process::start(Path::new("strace"), arguments, &self.folder)?))
    }

    /// Writes a line to the log with the outputs of the daemons.
    pub(crate) fn note(&self, line: fmt::Arguments<'_>) -> Result<()> {
        let mut log = OpenOptions::new().create(true).append(true).open(self.log())?;
        Ok(writeln!(log, "=== {line}")?)
    }

    /// Returns the path of the log with the outputs of all daemons.
    pub(crate) fn log(&self) -> PathBuf {
        log_in(&self.folder)
    }

    fn set(&self) -> impl Iterator<Item = String> {
        let lines = self.settings.lines(self.redis, &self.state());
        lines.into_iter().flat_map(|line| ["--set".to_owned(), line])
    }

    fn daemon(&self, process: Process) -> Daemon {
        let log = self.log();
        Daemon { process, log, is_told: false, readies_before: 0 }
    }
}

/// Returns the path of the daemons' log for the round in `folder`. The log has the outputs of all
/// daemons.
fn log_in(folder: &Path) -> PathBuf {
    folder.join("daemon.log")
}

/// Running daemon. After its end, `daemon.log` has its output.
pub(crate) struct Daemon {
    process: Process,
    log: PathBuf,
    is_told: bool,
    /// Number of `READY` texts in the output at the moment when Redis last came back with older
    /// data.
    readies_before: usize,
}

impl Daemon {
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Returns true if the daemon has started to work since Redis last came back with older data.
    pub(crate) fn is_ready(&self) -> bool {
        self.readies() > self.readies_before
    }

    /// Records that Redis comes back with older data. The daemon counts as ready again when its
    /// filter has reached that older state.
    pub(crate) fn goes_back(&mut self) {
        self.readies_before = self.readies();
    }

    pub(crate) fn is_standing_by(&self) -> bool {
        self.process.said().contains(STANDING_BY)
    }

    fn readies(&self) -> usize {
        self.process.said().matches(READY).count()
    }

    pub(crate) fn said(&self) -> String {
        self.process.said()
    }

    /// Returns the exit status, if the daemon has ended.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        let status = self.process.ended()?;
        if status.is_some() {
            self.tell()?;
        }
        Ok(status)
    }

    /// Waits until the daemon has ended.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        let status = self.process.wait(SOON)?;
        self.tell()?;
        Ok(status)
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        self.process.signal(signal)
    }

    /// Kills the daemon at once (SIGKILL).
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.process.kill()?;
        self.tell()
    }

    /// Writes the daemon's output to the log.
    fn tell(&mut self) -> Result<()> {
        if self.is_told {
            return Ok(());
        }
        self.is_told = true;
        let mut log = OpenOptions::new().create(true).append(true).open(&self.log)?;
        writeln!(log, "--- process {}\n{}", self.process.id(), self.process.said())?;
        Ok(())
    }
}
