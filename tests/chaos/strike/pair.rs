//! Faults with two daemons.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use redis::Commands;
use rustix::process::Signal;

use crate::daemon::{FilterPlace, LEASE, SOURCE};
use crate::plan::Step;
use crate::process::{SOON, wait_for};
use crate::round::Round;
use crate::storage::Contents;
use crate::tally::{Effect, Phase};

/// Time after which a lease has ended for certain.
const LEASE_ENDS: Duration = Duration::from_secs(25);

impl Round {
    /// Starts a second daemon with the same folder. It must stop, and must not disturb the first.
    pub(super) fn second_daemon(&mut self, step: &Step) -> Result<()> {
        self.wait_until_ready()?;
        let phase = self.phase(&self.facts()?);
        let mut second = self.runner.start(&[])?;
        let status = second.wait()?;
        self.tally.strike(step.kind, phase, &[]);
        if status.code() != Some(3) || !second.said().contains(&self.daemon.id().to_string()) {
            self.note_stop(&format!("a second daemon: {status}: {}", second.said()))?;
        }
        Ok(())
    }

    /// Lets a standby take over from a daemon that is killed or stopped.
    pub(super) fn take_over(&mut self, step: &Step) -> Result<()> {
        self.wait_until_ready()?;
        let mut second = self.runner.start(&["--standby"])?;
        wait_for("daemon standing by", SOON, || {
            ensure!(second.ended()?.is_none(), "the standby ended: {}", second.said());
            Ok(second.is_standing_by().then_some(()))
        })?;
        if step.draw.is_multiple_of(4) {
            self.stop_daemon()?;
            self.tally.strike(step.kind, Phase::Batch, &[]);
        } else {
            self.daemon.kill()?;
            let phase = self.phase(&self.facts()?);
            self.tally.strike(step.kind, phase, &[Effect::DaemonKilled]);
            if self.runner.settings.place == FilterPlace::Redis {
                // Only the end of the lease shows that the holder is dead.
                self.forget_lease()?;
            }
        }
        self.go_on_with(second);
        Ok(())
    }

    /// Pauses the daemon until its lease has ended, and then lets it continue. In half of the
    /// cases, another daemon with a copy of the folder takes over in between.
    pub(super) fn freeze(&mut self, step: &Step) -> Result<()> {
        self.wait_until_ready()?;
        self.daemon.signal(Signal::STOP)?;
        let phase = self.phase(&self.facts()?);
        self.tally.strike(step.kind, phase, &[]);
        let mut connection = self.server.connection()?;
        wait_for("end of the lease", LEASE_ENDS, || {
            Ok((!connection.exists::<_, bool>(LEASE)?).then_some(()))
        })?;
        if step.draw.is_multiple_of(2) {
            return self.daemon.signal(Signal::CONT);
        }
        let contents = Contents::read(&self.runner.state())?;
        self.move_storage();
        contents.put_back(&self.runner.state())?;
        let second = self.runner.start(&[])?;
        let mut first = self.go_on_with(second);
        self.feeder.feed(&self.server, SOURCE, step.feed)?;
        wait_for("working second daemon", SOON, || {
            self.keep_running()?;
            Ok(self.daemon.is_ready().then_some(()))
        })?;
        first.signal(Signal::CONT)?;
        // The daemon stops, or waits if it was started as a standby. In both cases it names the
        // holder of the lease.
        let holder = format!("(process {} on ", self.daemon.id());
        wait_for("message of the first daemon about the second", SOON, || {
            Ok((first.ended()?.is_some() || first.said().contains(&holder)).then_some(()))
        })
        .with_context(|| first.said())?;
        let said = first.said();
        if !said.contains(&holder) || first.ended()?.is_some_and(|it| it.code() != Some(3)) {
            self.note_stop(&format!("the daemon continued after it had lost its lease: {said}"))?;
        }
        // The new folder is not on the small disk any more.
        self.disk = None;
        Ok(())
    }
}
