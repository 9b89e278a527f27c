//! Scenario with two histories of one crawl. They have the same number of batches, and differ only
//! in the later batches. The daemon must not confuse the two.

use anyhow::{Result, ensure};

use crate::daemon::SOURCE;
use crate::process::{SOON, wait_for};
use crate::round::Round;
use crate::storage::Contents;

/// Number of batches before the histories begin to differ, and number of later batches in each
/// history.
const BATCHES: u64 = 6;

impl Round {
    /// Switches the daemon from one history to the other, once while it runs and once at its start.
    /// Both times the daemon must notice the switch and stop, although the histories have the same
    /// number of batches.
    pub(super) fn histories(&mut self) -> Result<()> {
        self.commit(BATCHES)?;
        self.stop_daemon()?;
        let folder = self.runner.state();
        let (redis_before, folder_before) = (self.server.dump()?, Contents::read(&folder)?);

        self.start_daemon()?;
        self.commit(BATCHES)?;
        self.daemon.kill()?;
        let (redis_one, folder_one) = (self.server.dump()?, Contents::read(&folder)?);
        let seq_one = self.facts()?.seq();

        self.load(&redis_before)?;
        folder_before.put_back(&folder)?;
        self.start_daemon()?;
        self.commit(BATCHES)?;
        let seq_other = self.facts()?.seq();
        ensure!(seq_one == seq_other, "{seq_one} batches and {seq_other}: not the same number");

        // Switches the history while the daemon runs.
        self.proxy.open(false);
        self.load(&redis_one)?;
        self.feeder.feed(&self.server, SOURCE, 20 * self.runner.settings.batch)?;
        self.proxy.open(true);
        let ended = wait_for("daemon that stops or works on", SOON, || {
            let ended = self.daemon.ended()?.is_some();
            Ok((ended || self.facts()?.waiting == 0).then_some(ended))
        })?;
        if !ended || self.refusal()?.is_none() {
            // If the daemon misses the switch, the oracle finds the errors later.
            self.note_stop(
                "Redis changed to another history while the daemon ran, and the daemon continued",
            )?;
            self.daemon.kill()?;
            return self.start_daemon();
        }

        // Switches the history at the start: the folder has one history, and Redis has the other.
        self.start_daemon()?;
        if self.refusal()?.is_none() {
            self.note_stop("the daemon started with the folder of another history, and continued")?;
            return self.wait_until_done();
        }
        folder_one.put_back(&folder)?;
        self.start_daemon()?;
        self.wait_until_done()?;
        self.commit(BATCHES)
    }

    /// Loads other data into Redis. The feeder continues from there.
    pub(super) fn load(&mut self, dump: &[u8]) -> Result<()> {
        self.server.put(dump)?;
        self.server.revive()?;
        self.feeder.resume(&self.server)?;
        self.forget_lease()
    }
}
