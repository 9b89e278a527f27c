//! Redis comes back with data from before all that the folder may keep.

use anyhow::Result;

use crate::daemon::SOURCE;
use crate::process::{SOON, wait_for};
use crate::round::{Outcome, Round};

/// Items after the copy of the data of Redis. Their fingerprints take more than the folder may
/// keep.
const ITEMS: u64 = 200_000;
/// Number of items that are fed at once, so that the daemon takes snapshots in between.
const PART: u64 = 10_000;

/// First snapshot of a folder.
const FIRST_SNAPSHOT: &str = "snapshot-00000000000000000000";

impl Round {
    /// Checks that the daemon reports that it cannot go back so far, and stops. With the setting to
    /// emit again it goes on. No item is lost. Items that Redis still knows are repeated, as the
    /// daemon announced.
    pub(super) fn horizon(mut self) -> Result<Outcome> {
        self.commit(1)?;
        let redis_before = self.server.dump()?;
        for _ in 0..ITEMS / PART {
            self.feeder.feed(&self.server, SOURCE, PART)?;
            self.wait_until_done()?;
        }
        // The snapshot from which the copy could be recovered is dropped once a later one is
        // finished.
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
                self.note_stop(&format!("Redis is older than the folder, and it said {said}"))?;
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
