//! One round: a new server and a new crawl, faults one after the other, and the verdict of the
//! oracle.

use std::fmt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fastrand::Rng;
use redis::{Commands, Connection};
use rustix::process::Signal;

use crate::daemon::{Daemon, FilterPlace, LEASE, REJECTED, Runner, SINK, SOURCE};
use crate::disk::Disk;
use crate::facts::Facts;
use crate::feeder::Feeder;
use crate::oracle::{Oracle, Verdict};
use crate::plan::{Plan, Step};
use crate::process::{POLL, SOON, wait_for};
use crate::proxy::{Proxy, Weather};
use crate::server::Server;
use crate::storage;
use crate::strike::OldFolder;
use crate::tally::{Phase, Tally};

/// Number of earlier runs that a storage folder records. If a recorded run still has the lease, the
/// next run takes the lease at once, because the recorded run is known to be dead.
const RUNS_KNOWN: usize = 64;

/// Maximum time that a step waits for the required progress before its fault strikes.
const PATIENCE: Duration = Duration::from_secs(2);

/// Maximum number of unexpected stops of a daemon before the round ends.
const STOPS_MAX: usize = 5;

/// Number of items that are fed after the last fault. A rollback can leave Redis empty, and without
/// items the oracle finds no error.
const LAST: u64 = 1_000;

/// Exit status of a run that failed because of a server or a file.
const FAILED: i32 = 3;

/// Result of a whole round.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    /// Outputs of daemons that stopped unexpectedly.
    pub(crate) stops: Vec<String>,
    pub(crate) tally: Tally,
}

impl Outcome {
    pub(crate) fn is_clean(&self) -> bool {
        self.verdict.is_clean() && self.stops.is_empty()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verdict, stops, tally } = self;
        write!(f, "{} items, {} faults counted", tally.items, tally.counted())?;
        if self.is_clean() {
            return write!(f, ", right");
        }
        writeln!(f, ", WRONG")?;
        write!(f, "{verdict}")?;
        stops.iter().try_for_each(|stop| writeln!(f, "  stopped: {stop}"))
    }
}

pub(crate) struct Round {
    pub(crate) server: Server,
    pub(crate) proxy: Proxy,
    pub(crate) feeder: Feeder,
    pub(crate) runner: Runner,
    pub(crate) daemon: Daemon,
    /// Separate disk of the storage folder, if the folder has one.
    pub(crate) disk: Option<Disk>,
    pub(crate) old_folder: Option<OldFolder>,
    pub(crate) random: Rng,
    pub(crate) tally: Tally,
    /// Processes that used the storage folder, oldest first.
    runs: Vec<u32>,
    stops: Vec<String>,
}

impl Round {
    /// Runs a plan in `folder`.
    pub(crate) fn run(plan: &Plan, program: &Path, folder: &Path) -> Result<Outcome> {
        Self::begin(plan, program, folder)?.tell(plan)
    }

    /// Runs the faults, one after the other.
    pub(crate) fn faults(&mut self, steps: &[Step]) -> Result<()> {
        for (number, step) in steps.iter().enumerate() {
            self.step(step).with_context(|| format!("step {number}, {step:?}"))?;
        }
        Ok(())
    }

    fn begin(plan: &Plan, program: &Path, folder: &Path) -> Result<Self> {
        let server = Server::start(&folder.join("redis"), plan.persistence)?;
        let proxy = Proxy::start(server.socket())?;
        let feeder = Feeder::new(plan.seed, plan.new_percent, plan.settings.push());
        let runner = Runner::new(program, folder, proxy.address(), plan.settings.clone());
        let disk = if plan.own_disk { Disk::mount(&runner.state())? } else { None };
        let daemon = runner.start(&[])?;
        let runs = vec![daemon.id()];
        let mut round = Self {
            server,
            proxy,
            feeder,
            runner,
            daemon,
            disk,
            old_folder: None,
            random: Rng::with_seed(!plan.seed),
            tally: Tally::default(),
            runs,
            stops: Vec::new(),
        };
        round.wait_until_ready()?;
        // A Redis without any data of the crawl would mean a new crawl, not older data. So Redis
        // must never come back with data from before this point.
        round.server.settle()?;
        Ok(round)
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        self.keep_running()?;
        if step.save {
            self.server.save()?;
        }
        if step.copy {
            self.server.copy()?;
        }
        self.proxy.set_weather(step.weather);
        let facts = self.facts()?;
        self.runner.note(format_args!(
            "{:?} at batch {}, {} items fed, {} waiting: {step:?}",
            step.kind,
            facts.seq(),
            self.feeder.fed(),
            facts.waiting,
        ))?;
        self.feeder.feed(&self.server, SOURCE, step.feed)?;
        self.server.note_length()?;
        self.wait_for_the_moment(step)?;
        sleep(step.delay);
        self.strike(step)?;
        self.proxy.relent();
        self.proxy.set_weather(Weather::default());
        self.wait_for_progress()
    }

    /// Waits until the daemon has made the progress that the step requires.
    fn wait_for_the_moment(&mut self, step: &Step) -> Result<()> {
        let mut connection = self.server.connection()?;
        let waiting = Facts::read(&mut connection)?.waiting;
        let left = waiting - waiting * step.progress / 1000;
        let end = Instant::now() + PATIENCE;
        while Facts::read(&mut connection)?.waiting > left && Instant::now() < end {
            sleep(POLL);
        }
        Ok(())
    }

    /// Waits until a batch is committed, or until all items are committed.
    fn wait_for_progress(&mut self) -> Result<()> {
        let mut connection = self.server.connection()?;
        let before = Facts::read(&mut connection)?.head;
        wait_for("progress", SOON, || {
            self.keep_running()?;
            let facts = Facts::read(&mut connection)?;
            Ok((facts.waiting == 0 || facts.head != before).then_some(()))
        })
        .with_context(|| format!("the daemon said: {}", tail(&self.daemon.said())))
    }

    /// Waits until the daemon works.
    pub(crate) fn wait_until_ready(&mut self) -> Result<()> {
        wait_for("working daemon", SOON, || {
            self.keep_running()?;
            Ok(self.daemon.is_ready().then_some(()))
        })
    }

    /// Waits until all items are committed.
    pub(crate) fn wait_until_done(&mut self) -> Result<()> {
        wait_for("end of the work", SOON, || {
            self.keep_running()?;
            Ok((self.facts()?.waiting == 0).then_some(()))
        })
    }

    /// Waits until the daemon works or has stopped. If the daemon has stopped, returns its output,
    /// and checks that its exit status shows a failure.
    pub(crate) fn refusal(&mut self) -> Result<Option<String>> {
        let status = wait_for("daemon that works or stops", SOON, || {
            let status = self.daemon.ended()?;
            Ok((status.is_some() || self.daemon.is_ready()).then_some(status))
        })?;
        let Some(status) = status else { return Ok(None) };
        if self.outwaits_lease()? {
            self.start_daemon()?;
            return self.refusal();
        }
        let said = tail(&self.daemon.said());
        if status.code() != Some(FAILED) {
            self.note_stop(&format!("{status}, not {FAILED}: {said}"))?;
        }
        Ok(Some(said))
    }

    /// Starts the daemon again if it has ended, and records its end as an error.
    pub(crate) fn keep_running(&mut self) -> Result<()> {
        if let Some(status) = self.daemon.ended()? {
            if !self.outwaits_lease()? {
                self.note_stop(&format!("{status}: {}", tail(&self.daemon.said())))?;
            }
            self.start_daemon()?;
        }
        Ok(())
    }

    /// Returns true if the daemon stopped because a dead run still has the lease, and the daemon
    /// could not know that this run is dead. In this case, removes the lease, as if its time had
    /// passed. The case arises when Redis comes back with an old lease: the folder no longer
    /// records the run of this lease, or the run had another folder.
    fn outwaits_lease(&self) -> Result<bool> {
        let said = self.daemon.said();
        let holder = said.split_once("is already run by").and_then(|(_, rest)| {
            rest.split_once("(process ")?.1.split_once(' ')?.0.parse::<u32>().ok()
        });
        let Some(holder) = holder else { return Ok(false) };
        // Without a folder, the daemon cannot know which holders are dead.
        let is_local = self.runner.settings.place == FilterPlace::Local;
        let runs_since = self.runs.iter().rev().position(|&run| run == holder);
        let is_known = is_local && runs_since.is_some_and(|runs| runs < RUNS_KNOWN);
        if !is_known {
            self.forget_lease()?;
        }
        Ok(!is_known)
    }

    pub(crate) fn note_stop(&mut self, said: &str) -> Result<()> {
        self.stops.push(said.to_owned());
        if self.stops.len() > STOPS_MAX {
            bail!("the daemon stopped {} times, the last time with {said}", self.stops.len());
        }
        Ok(())
    }

    /// Starts a daemon in place of the one that has ended.
    pub(crate) fn start_daemon(&mut self) -> Result<()> {
        self.start_daemon_with(&[])
    }

    fn start_daemon_with(&mut self, options: &[&str]) -> Result<()> {
        let daemon = self.runner.start(options)?;
        self.go_on_with(daemon);
        Ok(())
    }

    /// Makes `daemon` the current daemon, and returns the daemon before it.
    pub(crate) fn go_on_with(&mut self, daemon: Daemon) -> Daemon {
        self.runs.push(daemon.id());
        std::mem::replace(&mut self.daemon, daemon)
    }

    /// Uses another storage folder from now on. The new folder records no earlier runs.
    pub(crate) fn move_storage(&mut self) {
        self.runner.move_storage();
        self.runs.clear();
    }

    /// Removes the lease, as if its time had passed.
    pub(crate) fn forget_lease(&self) -> Result<()> {
        Ok(self.server.connection()?.del(LEASE)?)
    }

    pub(crate) fn facts(&self) -> Result<Facts> {
        Facts::read(&mut self.server.connection()?)
    }

    /// Returns the kind of work in progress, for this state of Redis.
    pub(crate) fn phase(&self, facts: &Facts) -> Phase {
        if !self.daemon.is_ready() {
            Phase::Recovery
        } else if self.is_writing_snapshot() {
            Phase::Snapshot
        } else if facts.waiting > 0 {
            Phase::Batch
        } else {
            Phase::Idle
        }
    }

    /// Returns true if the daemon is writing a snapshot, or was writing one when it was killed.
    pub(crate) fn is_writing_snapshot(&self) -> bool {
        storage::has_unfinished_snapshot(&self.runner.state())
    }

    /// Starts the daemon again if it has ended. The end is not an error here.
    pub(crate) fn restart_if_ended(&mut self) -> Result<()> {
        if self.daemon.ended()?.is_some() { self.start_daemon() } else { Ok(()) }
    }

    /// Feeds the last items, waits until all items are committed, and asks the oracle.
    pub(crate) fn end(mut self) -> Result<Outcome> {
        self.proxy.relent();
        self.proxy.set_weather(Weather::default());
        self.wait_until_ready()?;
        self.feeder.feed(&self.server, SOURCE, LAST)?;
        self.stop_daemon()?;
        self.start_daemon_with(&["--drain"])?;
        let status = self.daemon.wait()?;
        let facts = self.facts()?;
        if !status.success() || facts.waiting > 0 {
            let said = tail(&self.daemon.said());
            self.note_stop(&format!("--drain: {status}, {} waiting: {said}", facts.waiting))?;
        }
        let verdict = self.verdict()?;
        self.tally.rounds = 1;
        self.tally.items += self.feeder.fed();
        self.tally.late_bytes = self.proxy.late();
        Ok(Outcome { verdict, stops: self.stops, tally: self.tally })
    }

    /// Returns the oracle's verdict on the present content of the sink and of the rejects list.
    fn verdict(&self) -> Result<Verdict> {
        let oracle = Oracle::of(self.feeder.items(), self.feeder.fed());
        let mut connection = self.server.connection()?;
        let sink = list(&mut connection, SINK)?;
        Ok(oracle.judge(sink, list(&mut connection, REJECTED)?))
    }

    /// Stops the daemon with SIGTERM.
    pub(crate) fn stop_daemon(&mut self) -> Result<()> {
        // A daemon that has already ended accepts no signal.
        drop(self.daemon.signal(Signal::TERM));
        let status = self.daemon.wait()?;
        let said = tail(&self.daemon.said());
        // Without a connection, the daemon cannot release the lease, and reports this.
        let is_away = said.contains("stopped while Redis was away");
        if !status.success() && !is_away && !self.outwaits_lease()? {
            self.note_stop(&format!("SIGTERM: {status}: {said}"))?;
        }
        Ok(())
    }
}

/// Reads a list from left to right.
fn list(connection: &mut Connection, key: &str) -> Result<Vec<Vec<u8>>> {
    const CHUNK: isize = 10_000;
    let mut elements = Vec::new();
    loop {
        let from = isize::try_from(elements.len())?;
        let chunk: Vec<Vec<u8>> = connection.lrange(key, from, from + CHUNK - 1)?;
        if chunk.is_empty() {
            return Ok(elements);
        }
        elements.extend(chunk);
    }
}

/// Returns the last lines of an output.
fn tail(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(3)..].join("\n    ")
}
