//! Faults of the storage folder and of the disk below it.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use fastrand::Rng;

use crate::disk::Disk;
use crate::facts::Facts;
use crate::plan::{Kind, Step};
use crate::process::{POLL, SOON, wait_for};
use crate::round::Round;
use crate::storage::{self, Contents, Flipped};
use crate::tally::Phase;

/// Maximum time to wait until the daemon has ended, or has committed all items, while its disk
/// fails.
const PATIENCE: Duration = Duration::from_secs(2);

/// Limit that the number of batches in flight never reaches. The log is ahead of Redis by fewer
/// batches than this.
const IN_FLIGHT: u64 = 16;

/// Copy of the storage folder at an earlier moment.
pub(crate) struct OldFolder {
    contents: Contents,
    seq: u64,
}

impl Round {
    /// Kills the daemon, damages its folder, and starts the daemon again. The daemon must continue,
    /// or report the damage and stop. If it continues, the oracle checks the result.
    pub(super) fn damage(&mut self, step: &Step) -> Result<()> {
        self.kill_daemon(Kind::KillDaemon)?;
        let (folder, random) = (self.runner.state(), &mut self.random);
        let right = Contents::read(&folder)?;
        let flipped = match step.kind {
            Kind::FlipBit => Flipped::at_random(&folder, random)?,
            _ => None,
        };
        let damaged = match &flipped {
            Some(flipped) => Some(flipped.file.clone()),
            None => storage::tear_log(&folder, most_torn(random), random)?,
        };
        self.start_daemon()?;
        let phase = if damaged.is_some() { Phase::Recovery } else { Phase::Idle };
        self.tally.strike(step.kind, phase, &[]);
        let Some(said) = self.refusal()? else {
            return flipped.map_or(Ok(()), |flipped| flipped.mend(&folder, &right));
        };
        let is_named = damaged.is_some_and(|file| said.contains(&file));
        if !is_named && !said.contains(&*folder.to_string_lossy()) {
            self.note_stop(&format!(
                "the folder is damaged, and the daemon named neither it nor the file: {said}"
            ))?;
        }
        self.put_back_and_start(&right, &folder)
    }

    /// Copies the folder while no daemon runs, so that it can be restored later. Keeps an earlier
    /// copy if there is one.
    pub(super) fn remember_folder(&mut self, facts: &Facts) -> Result<()> {
        if self.old_folder.is_none() {
            let contents = Contents::read(&self.runner.state())?;
            self.old_folder = Some(OldFolder { contents, seq: facts.seq() });
        }
        Ok(())
    }

    /// Kills the daemon, and restores an old copy of its folder before the next start.
    pub(super) fn old_folder(&mut self, step: &Step) -> Result<()> {
        self.kill_daemon(Kind::KillDaemon)?;
        let folder = self.runner.state();
        let (right, seq) = (Contents::read(&folder)?, self.facts()?.seq());
        let Some(old) = self.old_folder.take_if(|old| seq > old.seq + IN_FLIGHT) else {
            self.tally.strike(step.kind, Phase::Idle, &[]);
            return self.start_daemon();
        };
        old.contents.put_back(&folder)?;
        self.start_daemon()?;
        self.tally.strike(step.kind, Phase::Recovery, &[]);
        match self.refusal()? {
            Some(said) if said.contains(&*folder.to_string_lossy()) => {}
            said => {
                let said = said.unwrap_or_else(|| "nothing".to_owned());
                let lacking = seq - old.seq;
                self.note_stop(&format!(
                    "an old copy of the folder lacks {lacking} batches, and the daemon said {said}"
                ))?;
                self.daemon.kill()?;
            }
        }
        self.put_back_and_start(&right, &folder)
    }

    /// Fills the disk for some time. The daemon is permitted to stop if it reports the reason.
    pub(super) fn fill_disk(&mut self, step: &Step) -> Result<()> {
        let Some(disk) = &self.disk else {
            self.tally.strike(step.kind, Phase::Idle, &[]);
            return Ok(());
        };
        let phase = self.phase(&self.facts()?);
        disk.fill(step.draw % (64 << 10))?;
        self.outlast(step, phase)?;
        self.disk.as_ref().map_or(Ok(()), Disk::free)?;
        // A daemon that could not write may not have ended yet.
        wait_for("the end of the daemon, or of its work", SOON, || {
            Ok((self.daemon.ended()?.is_some() || self.facts()?.waiting == 0).then_some(()))
        })?;
        self.restart_if_ended()
    }

    /// Starts a daemon whose syncs fail after some time.
    pub(super) fn fail_syncs(&mut self, step: &Step) -> Result<()> {
        self.kill_daemon(Kind::KillDaemon)?;
        let daemon = self.runner.start_with_failing_syncs(1 + step.draw % 8)?;
        self.go_on_with(daemon);
        wait_for("start under strace", SOON, || {
            Ok((self.daemon.is_ready() || self.daemon.ended()?.is_some()).then_some(()))
        })?;
        let phase = self.phase(&self.facts()?);
        self.outlast(step, phase)?;
        self.daemon.kill()?;
        self.start_daemon()
    }

    /// Feeds while the disk fails, and waits until the daemon has ended or has committed all items.
    fn outlast(&mut self, step: &Step, phase: Phase) -> Result<()> {
        self.tally.strike(step.kind, phase, &[]);
        self.feeder.feed(&self.server, crate::daemon::SOURCE, step.feed)?;
        let end = Instant::now() + PATIENCE;
        while self.daemon.ended()?.is_none() && self.facts()?.waiting > 0 && Instant::now() < end {
            std::thread::sleep(POLL);
        }
        if self.daemon.ended()?.is_some()
            && let Some(said) = self.refusal()?
            && !said.contains("cannot be written")
            && !said.contains("os error")
        {
            self.note_stop(&format!("the disk failed, and the daemon said {said}"))?;
        }
        Ok(())
    }

    fn put_back_and_start(&mut self, contents: &Contents, folder: &Path) -> Result<()> {
        contents.put_back(folder)?;
        self.start_daemon()
    }
}

/// Draws the maximum number of bytes to cut off: less than one record, or as much as many records.
fn most_torn(random: &mut Rng) -> u64 {
    1 << random.u32(3..14)
}
