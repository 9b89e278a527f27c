//! Crawl with 16 partitions: two processes of `urlseen run`, two routers, and their faults.

use std::fs;
use std::mem::take;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;
use redis::cmd;
use rustix::process::Signal;

use super::group::Group;
use super::node::until;
use crate::daemon::{LEASE, PROCESSING, SOURCE};
use crate::process::{Process, SOON};
use crate::tally::{Effect, Phase, Tally};

/// Message of a process that was stopped and could not release a lease.
const AWAY: &str = "urlseen: stopped while Redis was away";

/// Returns the number of the process that has a lease. Deletes the lease of a killed process.
const HOLDER: &str = "local lease = redis.call('GET', KEYS[1])
local pid = lease and cjson.decode(string.match(lease, ' (.*)')).pid
if pid == tonumber(ARGV[1]) then redis.call('DEL', KEYS[1]) end
return pid";

/// Number of commits of a partition after which replicas have its state. Three commits are in
/// flight at most, until the replicas have the oldest one.
const REPLICATED: u64 = 4;

/// Arguments of the processes. The last two are routers. Without a folder, a run does not know that
/// the holder of the lease was killed, so it stands by.
const COMMANDS: [&[&str]; 4] = [
    &["run", "--standby", "--set", "partitions.run=0-7"],
    &["run", "--standby", "--set", "partitions.run=8-15"],
    &["route", "--standby"],
    &["route", "--standby"],
];

/// Fault of a process of urlseen.
#[derive(Debug, Clone, Copy)]
enum Fault {
    KillRun,
    KillRouter,
    PauseRun,
    /// The active router is paused with items on their way until the other router takes over.
    ReplaceRouter,
    /// A process is stopped (SIGTERM) and started again.
    Stop,
    /// All connections of urlseen to one server are closed.
    Cut,
}

/// All faults, in the share in which they are drawn.
const FAULTS: [Fault; 8] = [
    Fault::KillRun,
    Fault::KillRun,
    Fault::KillRouter,
    Fault::KillRouter,
    Fault::PauseRun,
    Fault::ReplaceRouter,
    Fault::Stop,
    Fault::Cut,
];

/// Processes of urlseen in one crawl.
pub(super) struct Crawl<'a> {
    group: &'a Group,
    program: &'a Path,
    folder: PathBuf,
    /// Processes in the order of `COMMANDS`.
    processes: Vec<Process>,
    random: Rng,
    sources: Vec<String>,
    tally: Tally,
}

impl<'a> Crawl<'a> {
    /// Starts all processes, and waits for the partition table. The caller must be the thread that
    /// injects the faults, because the kernel kills the processes when this thread ends.
    pub(super) fn start(
        group: &'a Group,
        program: &'a Path,
        folder: &Path,
        seed: u64,
    ) -> Result<Self> {
        let folder = folder.join("crawl");
        fs::create_dir(&folder)?;
        let (random, tally) = (Rng::with_seed(!seed), Tally::default());
        let (url, replicas) = (group.url(), group.replicas());
        let place = if seed.is_multiple_of(2) { "redis" } else { "local" };
        let settings = format!(
            "[redis]\nurl = \"{url}\"\nwait_replicas = {replicas}\n[source]\nbatch = 100\n\
            [partitions]\ncount = 16\n\
            [filter]\nplace = \"{place}\"\ncapacity = 1_000_000\nerror_rate = 1e-9\n\
            [log]\nprogress = \"0s\"\n"
        );
        fs::write(folder.join("config.toml"), settings)?;
        let (processes, sources) = (Vec::new(), Vec::new());
        let mut crawl = Self { group, program, folder, processes, random, sources, tally };
        for index in 0..COMMANDS.len() {
            let process = crawl.process(index)?;
            crawl.processes.push(process);
        }
        let sources = until("partition table", SOON, || sources_of(group));
        crawl.sources = crawl.explained(sources)?;
        Ok(crawl)
    }

    fn process(&self, index: usize) -> Result<Process> {
        Process::start(self.program, COMMANDS[index], &self.folder)
    }

    /// Injects faults until the faults of the servers are done. Then waits until all items are
    /// through, and stops all processes. Returns the faults, and the sources of the partitions.
    pub(super) fn work(mut self, is_done: &Receiver<()>) -> Result<(Tally, Vec<String>)> {
        loop {
            match is_done.recv_timeout(Duration::from_millis(self.random.u64(0..800))) {
                Ok(()) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let fault = FAULTS[self.random.usize(0..FAULTS.len())];
                    let result = self.inject(fault);
                    self.explained(result).with_context(|| format!("{fault:?}"))?;
                }
                // The servers or the producer failed, and tell their own error.
                Err(RecvTimeoutError::Disconnected) => return Ok(self.faults_and_sources()),
            }
        }
        let waited = until("end of all items", 2 * SOON, || {
            Ok((waiting(self.group, &self.sources)? == 0).then_some(()))
        });
        self.explained(waited)?;
        (0..COMMANDS.len()).try_for_each(|index| self.stop(index))?;
        Ok(self.faults_and_sources())
    }

    fn faults_and_sources(&mut self) -> (Tally, Vec<String>) {
        (take(&mut self.tally), take(&mut self.sources))
    }

    /// Fails if a process has ended, with its output, or if something else has failed.
    fn explained<T>(&mut self, result: Result<T>) -> Result<T> {
        for (process, words) in self.processes.iter_mut().zip(COMMANDS) {
            if let Some(status) = process.ended()? {
                bail!("urlseen {}: {status}: {}", words.join(" "), tail(process));
            }
        }
        result
    }

    fn inject(&mut self, fault: Fault) -> Result<()> {
        let run = self.random.usize(0..2);
        let mut effects: &[Effect] = &[];
        match fault {
            Fault::KillRun => {
                effects = &[Effect::DaemonKilled];
                self.kill(run)?;
            }
            Fault::KillRouter => {
                let index = self.active_router().unwrap_or(2);
                self.kill(index)?;
            }
            Fault::PauseRun => {
                self.processes[run].signal(Signal::STOP)?;
                sleep(Duration::from_millis(self.random.u64(100..2500)));
                self.processes[run].signal(Signal::CONT)?;
            }
            Fault::ReplaceRouter => {
                // The list can be without a primary.
                let Ok(old) = self.active_router() else { return Ok(()) };
                self.processes[old].signal(Signal::STOP)?;
                self.drop_leases(self.processes[old].id())?;
                let new = self.processes[5 - old].id();
                until("other router", SOON, || {
                    Ok((holder(self.group, LEASE, 0)? == Some(new)).then_some(()))
                })?;
                self.processes[old].signal(Signal::CONT)?;
            }
            Fault::Stop => {
                let index = self.random.usize(0..COMMANDS.len());
                self.stop(index)?;
                self.processes[index] = self.process(index)?;
            }
            Fault::Cut => {
                effects = &[Effect::Cut];
                let index = self.random.usize(0..self.group.nodes.len());
                // The server can be down.
                drop(self.group.nodes[index].cut());
            }
        }
        self.tally.count(format!("{fault:?}"), Phase::Batch, effects);
        Ok(())
    }

    fn kill(&mut self, index: usize) -> Result<()> {
        self.processes[index].kill()?;
        self.drop_leases(self.processes[index].id())?;
        self.processes[index] = self.process(index)?;
        Ok(())
    }

    /// Stops a process, which must end without an error, or because a server is away.
    fn stop(&mut self, index: usize) -> Result<()> {
        let process = &mut self.processes[index];
        process.signal(Signal::TERM)?;
        let status = process.wait(SOON)?;
        let is_right = status.success() || process.said().contains(AWAY);
        ensure!(is_right, "urlseen {}: {status}: {}", COMMANDS[index].join(" "), tail(process));
        Ok(())
    }

    /// Returns the index of the router that has the lease of the list.
    fn active_router(&self) -> Result<usize> {
        let id = holder(self.group, LEASE, 0)?;
        let found = (2..4).find(|&index| Some(self.processes[index].id()) == id);
        found.context("no router has the lease")
    }

    /// Deletes the leases of a process, so that no other one waits for their end, which takes 15 s.
    fn drop_leases(&self, id: u32) -> Result<()> {
        let of_partitions = self.sources.iter().map(|source| format!("urlseen:{source}:lease"));
        for key in of_partitions.chain([LEASE.to_owned()]) {
            until("lease", SOON, || holder(self.group, &key, id).map(Some))?;
        }
        Ok(())
    }
}

/// Keeps the output of the processes in the folder of the round.
impl Drop for Crawl<'_> {
    fn drop(&mut self) {
        for (number, process) in self.processes.iter().enumerate() {
            fs::write(self.folder.join(format!("{number}.log")), process.said()).ok();
        }
    }
}

/// Returns the number of the process that has a lease. Deletes the lease if `id` has it.
fn holder(group: &Group, key: &str, id: u32) -> Result<Option<u32>> {
    group.ask(key, cmd("EVAL").arg(HOLDER).arg(1).arg(key).arg(id))
}

fn sources_of(group: &Group) -> Result<Option<Vec<String>>> {
    let record = format!("urlseen:{{{SOURCE}}}:crawl");
    let tags: Option<String> = group.ask(&record, cmd("HGET").arg(&record).arg("tags"))?;
    Ok(tags.map(|it| it.split(',').map(|tag| format!("{SOURCE}:{{{tag}}}")).collect()))
}

/// Counts the items that are not yet through. Looks at the lists in the order in which an item
/// passes them, so that none is missed because it moves on meanwhile.
fn waiting(group: &Group, sources: &[String]) -> Result<u64> {
    let claimed = sources.iter().map(|source| format!("urlseen:{source}:processing"));
    let lists = [SOURCE, PROCESSING].map(str::to_owned).into_iter();
    let mut sum = 0;
    for key in lists.chain(sources.iter().cloned()).chain(claimed) {
        sum += group.ask::<u64>(&key, cmd("LLEN").arg(&key))?;
    }
    Ok(sum)
}

/// Returns the sources if replicas have a state of each partition. urlseen refuses a partition
/// whose whole state was lost in a failover.
pub(super) fn replicated(group: &Group) -> Result<Option<Vec<String>>> {
    let Some(sources) = sources_of(group)? else { return Ok(None) };
    for source in &sources {
        let state = format!("urlseen:{source}:state");
        let seq: Option<u64> = group.ask(&state, cmd("HGET").arg(&state).arg("seq"))?;
        if seq.unwrap_or(0) < REPLICATED {
            return Ok(None);
        }
    }
    Ok(Some(sources))
}

/// Returns the items of a kind of list from all partitions.
pub(super) fn found(group: &Group, sources: &[String], list: &str) -> Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    for source in sources {
        let key = source.replace(SOURCE, list);
        let items: Vec<Vec<u8>> = group.ask(&key, cmd("LRANGE").arg(&key).arg(0).arg(-1))?;
        found.extend(items);
    }
    Ok(found)
}

fn tail(process: &Process) -> String {
    let said = process.said();
    said.lines().rev().take(5).collect::<Vec<_>>().join("\n    ")
}
