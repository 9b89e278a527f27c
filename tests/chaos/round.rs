//! One round: a fresh server and a fresh crawl, faults one after the other, and the oracle's word.

use std::fmt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
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

/// How many runs a storage folder knows, so that the next one takes their lease at once.
const RUNS_KNOWN: usize = 64;

/// How long a fault waits for the moment it is meant for.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often a daemon may stop where it should go on, before a round is given up.
const STOPS_MAX: usize = 5;

/// The exit status of a run that a server or file made fail.
const FAILED: i32 = 3;

/// How a round ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    /// What daemons said that stopped where they should have gone on.
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

/// A round at work.
pub(crate) struct Round {
    pub(crate) server: Server,
    pub(crate) proxy: Proxy,
    pub(crate) feeder: Feeder,
    pub(crate) runner: Runner,
    pub(crate) daemon: Daemon,
    /// Below the storage folder, where that has one of its own.
    pub(crate) disk: Option<Disk>,
    pub(crate) old_folder: Option<OldFolder>,
    pub(crate) random: Rng,
    pub(crate) tally: Tally,
    /// The processes that worked with the storage folder, oldest first.
    runs: Vec<u32>,
    stops: Vec<String>,
}

impl Round {
    /// Runs a plan in `folder`.
    pub(crate) fn run(plan: &Plan, program: &Path, folder: &Path) -> Result<Outcome> {
        Self::begin(plan, program, folder)?.tell(plan)
    }

    /// Faults, one after the other.
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
        // A Redis that knows nothing of the crawl is another matter than one with older data.
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

    /// Waits until so much is done as the step says.
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

    /// Waits until a batch is committed, or nothing waits any more.
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

    /// Waits until nothing waits any more.
    pub(crate) fn wait_until_done(&mut self) -> Result<()> {
        wait_for("end of the work", SOON, || {
            self.keep_running()?;
            Ok((self.facts()?.waiting == 0).then_some(()))
        })
    }

    /// Waits until the daemon works or has stopped; then what it said. It must say so by its
    /// status.
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

    /// Starts the daemon again if it has ended, which it should not have.
    pub(crate) fn keep_running(&mut self) -> Result<()> {
        if let Some(status) = self.daemon.ended()? {
            if !self.outwaits_lease()? {
                self.note_stop(&format!("{status}: {}", tail(&self.daemon.said())))?;
            }
            self.start_daemon()?;
        }
        Ok(())
    }

    /// Whether the daemon stopped because of the lease of one that is dead, and cannot know that:
    /// Redis came back with the lease of a run that is too long ago for the folder to know, or of
    /// one that had another folder. Then the lease is gone when this returns, as if its time had
    /// passed.
    fn outwaits_lease(&self) -> Result<bool> {
        let said = self.daemon.said();
        let holder = said.split_once("is already run by").and_then(|(_, rest)| {
            rest.split_once("(process ")?.1.split_once(' ')?.0.parse::<u32>().ok()
        });
        let Some(holder) = holder else { return Ok(false) };
        // Where there is no folder, nothing knows who is dead.
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

    /// Starts a daemon in the place of one that has ended.
    pub(crate) fn start_daemon(&mut self) -> Result<()> {
        self.start_daemon_with(&[])
    }

    fn start_daemon_with(&mut self, options: &[&str]) -> Result<()> {
        let daemon = self.runner.start(options)?;
        self.go_on_with(daemon);
        Ok(())
    }

    /// From now on this is the daemon.
    pub(crate) fn go_on_with(&mut self, daemon: Daemon) -> Daemon {
        self.runs.push(daemon.id());
        std::mem::replace(&mut self.daemon, daemon)
    }

    /// From now on the storage folder is another one, which knows of no runs.
    pub(crate) fn move_storage(&mut self) {
        self.runner.move_storage();
        self.runs.clear();
    }

    /// As if the time of the lease had passed.
    pub(crate) fn forget_lease(&self) -> Result<()> {
        Ok(self.server.connection()?.del(LEASE)?)
    }

    pub(crate) fn facts(&self) -> Result<Facts> {
        Facts::read(&mut self.server.connection()?)
    }

    /// What is in progress, given where the crawl stands.
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

    /// Whether a snapshot is being written, or was when the daemon was killed.
    pub(crate) fn is_writing_snapshot(&self) -> bool {
        storage::has_unfinished_snapshot(&self.runner.state())
    }

    /// Starts the daemon again if it has ended, as it may have.
    pub(crate) fn restart_if_ended(&mut self) -> Result<()> {
        if self.daemon.ended()?.is_some() { self.start_daemon() } else { Ok(()) }
    }

    /// Lets everything be done, and asks the oracle.
    pub(crate) fn end(mut self) -> Result<Outcome> {
        self.proxy.relent();
        self.proxy.set_weather(Weather::default());
        self.wait_until_ready()?;
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

    /// What the oracle says of the lists as they are.
    fn verdict(&self) -> Result<Verdict> {
        let oracle = Oracle::of(self.feeder.items(), self.feeder.fed());
        let mut connection = self.server.connection()?;
        let sink = list(&mut connection, SINK)?;
        Ok(oracle.judge(sink, list(&mut connection, REJECTED)?))
    }

    /// Holds the lists to what must be there, in the middle of a round in which all is done.
    pub(crate) fn check(&self) -> Result<()> {
        let verdict = self.verdict()?;
        ensure!(verdict.is_clean(), "{verdict}");
        Ok(())
    }

    /// Ends the daemon as a service manager would.
    pub(crate) fn stop_daemon(&mut self) -> Result<()> {
        // One that has ended already takes no signal.
        drop(self.daemon.signal(Signal::TERM));
        let status = self.daemon.wait()?;
        let said = tail(&self.daemon.said());
        // Without a connection it cannot release the lease, and says so.
        let is_away = said.contains("stopped while Redis was away");
        if !status.success() && !is_away && !self.outwaits_lease()? {
            self.note_stop(&format!("SIGTERM: {status}: {said}"))?;
        }
        Ok(())
    }
}

/// A list from left to right.
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

/// The last lines.
fn tail(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(3)..].join("\n    ")
}
