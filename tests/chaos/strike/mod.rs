//! Faults of a round, one function for each.

mod folder;
mod pair;

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::daemon::{PROCESSING, SOURCE};
use crate::plan::{Kind, Step};
use crate::process::POLL;
use crate::round::Round;
use crate::tally::{Effect, Phase};
pub(crate) use folder::OldFolder;

/// Maximum time that a fault waits for its occasion, such as a snapshot that is being written.
const PATIENCE: Duration = Duration::from_millis(500);

impl Round {
    /// Injects the fault of a step, and restarts all processes that it has killed.
    pub(crate) fn strike(&mut self, step: &Step) -> Result<()> {
        match step.kind {
            Kind::KillDaemon => self.kill_and_start(step.kind),
            Kind::KillInRecovery => self.kill_in_recovery(step),
            Kind::KillInSnapshot => self.kill_in_snapshot(step.kind),
            Kind::StopDaemon => {
                let phase = self.phase(&self.facts()?);
                self.tally.strike(step.kind, phase, &[]);
                self.stop_daemon()?;
                self.start_daemon()
            }
            Kind::PauseDaemon => self.pause_daemon(step),
            Kind::CrashRedis | Kind::RollBackRunning => {
                self.crash(step.kind, false)?;
                self.kill_while_it_goes_back(step)
            }
            Kind::CrashBoth | Kind::RollBackDown => {
                self.crash(step.kind, true)?;
                self.start_daemon()
            }
            Kind::Cut | Kind::Stall | Kind::Late => self.disturb(step),
            Kind::Meddle => self.meddle(step),
            Kind::FlipBit | Kind::TearLog => self.damage(step),
            Kind::OldFolder => self.old_folder(step),
            Kind::SecondDaemon => self.second_daemon(step),
            Kind::TakeOver => self.take_over(step),
            Kind::Freeze => self.freeze(step),
            Kind::DiskFull => self.fill_disk(step),
            Kind::SyncFails => self.fail_syncs(step),
        }
    }

    fn kill_daemon(&mut self, kind: Kind) -> Result<()> {
        self.daemon.kill()?;
        let facts = self.facts()?;
        self.remember_folder(&facts)?;
        let phase = self.phase(&facts);
        let effects: &[Effect] = if phase == Phase::Snapshot && self.runner.settings.grows() {
            &[Effect::DaemonKilled, Effect::GrowingSnapshotCut]
        } else {
            &[Effect::DaemonKilled]
        };
        self.tally.strike(kind, phase, effects);
        Ok(())
    }

    fn kill_and_start(&mut self, kind: Kind) -> Result<()> {
        self.kill_daemon(kind)?;
        self.start_daemon()
    }

    fn kill_in_recovery(&mut self, step: &Step) -> Result<()> {
        self.kill_and_start(Kind::KillDaemon)?;
        for turn in 0..=step.draw % 3 {
            sleep(Duration::from_micros((step.draw >> (8 + 8 * turn)) % 20_000));
            self.kill_and_start(step.kind)?;
        }
        Ok(())
    }

    fn kill_in_snapshot(&mut self, kind: Kind) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        while !self.is_writing_snapshot() && self.facts()?.waiting > 0 && Instant::now() < end {
            sleep(POLL / 5);
        }
        self.kill_and_start(kind)
    }

    /// In one of four cases, kills the daemon soon after Redis has come back with older data. So
    /// some of these kills come while the filter follows Redis.
    fn kill_while_it_goes_back(&mut self, step: &Step) -> Result<()> {
        if !step.draw.is_multiple_of(4) {
            return Ok(());
        }
        sleep(Duration::from_micros((step.draw >> 8) % 60_000));
        self.kill_and_start(Kind::KillInRecovery)
    }

    fn pause_daemon(&mut self, step: &Step) -> Result<()> {
        self.daemon.signal(Signal::STOP)?;
        let phase = self.phase(&self.facts()?);
        sleep(Duration::from_millis(1 + step.draw % 300));
        self.daemon.signal(Signal::CONT)?;
        self.tally.strike(step.kind, phase, &[]);
        Ok(())
    }

    /// Kills Redis, and also the daemon if `with_daemon` is true. Redis comes back with the data
    /// that it kept, or with older data.
    fn crash(&mut self, kind: Kind, with_daemon: bool) -> Result<()> {
        let before = self.facts()?;
        let daemon_first = with_daemon && (kind == Kind::RollBackDown || self.random.bool());
        if daemon_first {
            self.daemon.kill()?;
        }
        self.proxy.open(false);
        let phase = self.phase(&before);
        if matches!(kind, Kind::RollBackRunning | Kind::RollBackDown) {
            self.server.roll_back(&mut self.random)?;
        } else {
            self.server.crash(&mut self.random)?;
        }
        if with_daemon {
            self.daemon.kill()?;
        }
        self.server.revive()?;
        let has_forgotten_items = self.feeder.resume(&self.server)?;
        let mut effects = vec![Effect::RedisKilled];
        if with_daemon {
            effects.push(Effect::DaemonKilled);
        }
        if has_forgotten_items || self.facts()?.seq() < before.seq() {
            effects.push(Effect::RolledBack);
            self.daemon.goes_back();
            // Redis has lost batches. So the batch number of the folder's copy can no longer tell
            // whether the copy is older than Redis.
            self.old_folder = None;
        }
        self.proxy.open(true);
        self.tally.strike(kind, phase, &effects);
        Ok(())
    }

    fn disturb(&mut self, step: &Step) -> Result<()> {
        let struck = self.proxy.struck();
        self.proxy.prepare(step.network.context("a fault of the network")?);
        let end = Instant::now() + PATIENCE;
        while self.proxy.struck() == struck && self.facts()?.waiting > 0 && Instant::now() < end {
            sleep(POLL);
        }
        self.proxy.relent();
        let has_struck = self.proxy.struck() > struck;
        let phase = if has_struck { self.phase(&self.facts()?) } else { Phase::Idle };
        let effects: &[Effect] = if step.kind == Kind::Stall { &[] } else { &[Effect::Cut] };
        self.tally.strike(step.kind, phase, effects);
        Ok(())
    }

    fn meddle(&mut self, step: &Step) -> Result<()> {
        let phase = self.phase(&self.facts()?);
        self.feeder.feed(&self.server, PROCESSING, 1 + step.draw % 3)?;
        // An idle daemon checks the claimed items only when it claims, so one item is fed.
        self.feeder.feed(&self.server, SOURCE, 1)?;
        self.tally.strike(step.kind, phase, &[]);
        Ok(())
    }
}
