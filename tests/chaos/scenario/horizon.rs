//! Scenario in which Redis comes back with data that is older than all data that the folder is
//! permitted to keep.

use anyhow::Result;

use crate::daemon::SOURCE;
use crate::process::{SOON, wait_for};
use crate::round::{Outcome, Round};

/// Number of items that are fed after the copy of Redis's data. Their fingerprints need more space
/// than the folder is permitted to use.
const ITEMS: u64 = 200_000;
/// Number of items that are fed at once, so that the daemon takes snapshots in between.
const PART: u64 = 10_000;

/// File name of the first snapshot of a folder.
const FIRST_SNAPSHOT: &str = "snapshot-00000000000000000000";

impl Round {
    /// Checks that the daemon stops and reports that it cannot go back so far. With `on_rollback =
    /// "emit-again"`, the daemon must continue and lose no item. It is permitted to repeat items
    /// that Redis still has, because its messages announce such repetitions.
    pub(super) fn horizon(mut self) -> Result<Outcome> {
        self.commit(1)?;
        let redis_before = self.server.dump()?;
        for _ in 0..ITEMS / PART {
            self.feeder.feed(&self.server, SOURCE, PART)?;
            self.wait_until_done()?;
        }
        // To go back so far, the daemon would need its first snapshot. It deletes this snapshot
        // when a later one is finished.
        let first = self.runner.state().join(FIRST_SNAPSHOT);
        wait_for("end of a snapshot", SOON, || Ok((!first.exists()).then_some(())))?;
        self.proxy.open(false);
        self.load(&redis_before)?;
        self.proxy.open(true);
        self.daemon.goes_back();
        match self.refusal()? {
            Some(said) if said.contains("no further back") => {}
            said => {
                let said = said.unwrap_or_else(|| "nothing".to_owned());
                self.note_stop(&format!(
                    "Redis is older than the folder, and the daemon said {said}"
                ))?;
                self.daemon.kill()?;
            }
        }
        self.runner.settings.on_rollback = "emit-again";
        self.start_daemon()?;
        self.commit(10)?;
        let mut outcome = self.end()?;
        outcome.verdict.allow_repeats();
        Ok(outcome)
    }
}
