//! One round: a fresh server and a fresh crawl, faults one after the other, and the oracle's word.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fastrand::Rng;
use redis::{Commands, Connection};
use rustix::process::Signal;

use crate::daemon::{Daemon, KEEPS_STATE, LEASE, REJECTED, Runner, SINK, SOURCE};
use crate::facts::Facts;
use crate::feeder::Feeder;
use crate::oracle::{Oracle, Verdict};
use crate::plan::{Plan, Step};
use crate::process::{POLL, SOON, wait_for};
use crate::proxy::{Proxy, Weather};
use crate::server::Server;
use crate::tally::{Phase, Tally};

/// How long a fault waits for the moment it is meant for.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often a daemon may stop where it should go on, before a round is given up.
const STOPS_MAX: usize = 5;

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

/// A round at work.
pub(crate) struct Round {
    pub(crate) server: Server,
    pub(crate) proxy: Proxy,
    pub(crate) feeder: Feeder,
    pub(crate) runner: Runner,
    pub(crate) daemon: Daemon,
    pub(crate) random: Rng,
    pub(crate) tally: Tally,
    stops: Vec<String>,
}

impl Round {
    /// Runs a plan in `folder`.
    pub(crate) fn run(plan: &Plan, program: &Path, folder: &Path) -> Result<Outcome> {
        let mut round = Self::begin(plan, program, folder)?;
        for (number, step) in plan.steps.iter().enumerate() {
            round.step(step).with_context(|| format!("step {number}, {step:?}"))?;
        }
        round.end().context("the end")
    }

    fn begin(plan: &Plan, program: &Path, folder: &Path) -> Result<Self> {
        let server = Server::start(&folder.join("redis"), plan.persistence)?;
        let proxy = Proxy::start(server.socket())?;
        let feeder = Feeder::new(plan.seed, plan.new_percent, plan.settings.push());
        let runner = Runner {
            program: program.to_owned(),
            folder: folder.to_owned(),
            redis: proxy.address(),
            settings: plan.settings.clone(),
        };
        let daemon = runner.start(&[])?;
        let random = Rng::with_seed(!plan.seed);
        let (tally, stops) = (Tally::default(), Vec::new());
        Ok(Self { server, proxy, feeder, runner, daemon, random, tally, stops })
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
        self.feeder.feed(&self.server, SOURCE, step.feed)?;
        self.server.note_length()?;
        self.wait_for_the_moment(step)?;
        sleep(step.delay);
        let struck = self.strike(step);
        struck?;
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

    /// Starts the daemon again if it has ended, which it should not have.
    fn keep_running(&mut self) -> Result<()> {
        if let Some(status) = self.daemon.ended()? {
            self.note_stop(&format!("{status}: {}", tail(&self.daemon.said())))?;
            self.start_daemon()?;
        }
        Ok(())
    }

    fn note_stop(&mut self, said: &str) -> Result<()> {
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
        if !KEEPS_STATE {
            let () = self.server.connection()?.del(LEASE)?;
        }
        self.daemon = self.runner.start(options)?;
        Ok(())
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
        let entries = fs::read_dir(self.runner.state()).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).any(|path| {
            let is_snapshot = path
                .file_stem()
                .is_some_and(|stem| stem.as_encoded_bytes().starts_with(b"snapshot"));
            is_snapshot && path.extension().is_some_and(|ending| ending == "tmp")
        })
    }

    /// Lets everything be done, and asks the oracle.
    fn end(mut self) -> Result<Outcome> {
        self.proxy.relent();
        self.proxy.set_weather(Weather::default());
        self.keep_running()?;
        wait_for("working daemon", SOON, || {
            self.keep_running()?;
            // Without a state the next start would begin with an empty filter.
            let is_done = KEEPS_STATE || self.facts()?.waiting == 0;
            Ok((self.daemon.is_ready() && is_done).then_some(()))
        })?;
        self.stop_daemon()?;
        self.start_daemon_with(&["--drain"])?;
        let status = self.daemon.wait()?;
        let facts = self.facts()?;
        if !status.success() || facts.waiting > 0 {
            let said = tail(&self.daemon.said());
            self.note_stop(&format!("--drain: {status}, {} waiting: {said}", facts.waiting))?;
        }
        let oracle = Oracle::of(self.feeder.items(), self.feeder.fed());
        let mut connection = self.server.connection()?;
        let sink = list(&mut connection, SINK)?;
        let verdict = oracle.judge(sink, list(&mut connection, REJECTED)?);
        self.tally.rounds = 1;
        self.tally.items += self.feeder.fed();
        self.tally.late_bytes = self.proxy.late();
        Ok(Outcome { verdict, stops: self.stops, tally: self.tally })
    }

    /// Ends the daemon as a service manager would.
    pub(crate) fn stop_daemon(&mut self) -> Result<()> {
        // One that has ended already takes no signal.
        drop(self.daemon.signal(Signal::TERM));
        let status = self.daemon.wait()?;
        if !status.success() {
            self.note_stop(&format!("SIGTERM: {status}: {}", tail(&self.daemon.said())))?;
        }
        Ok(())
    }
}

/// Where daemons of a round in `folder` say what they say.
pub(crate) fn daemon_log(folder: &Path) -> PathBuf {
    folder.join("daemon.log")
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
