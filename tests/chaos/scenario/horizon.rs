//! Redis comes back with data from before all that the folder may keep.

use anyhow::Result;

use crate::daemon::SOURCE;
use crate::process::{SOON, wait_for};
use crate::round::{Outcome, Round};

/// Items behind the copy of Redis's data: their fingerprints take more than the folder may.
const ITEMS: u64 = 200_000;
/// So many are fed at once, so that snapshots are taken in between.
const PART: u64 = 10_000;

/// The one that a folder begins with.
const FIRST_SNAPSHOT: &str = "snapshot-00000000000000000000";

impl Round {
    /// The daemon says that it cannot go back so far, and stops; told to emit again, it goes on.
    /// Nothing is lost; what Redis still knows is repeated, as was said.
    pub(super) fn horizon(mut self) -> Result<Outcome> {
        self.commit(1)?;
        let redis_before = self.server.dump()?;
        for _ in 0..ITEMS / PART {
            self.feeder.feed(&self.server, SOURCE, PART)?;
            self.wait_until_done()?;
        }
        // The snapshot that the copy could begin with is dropped once a later one is finished.
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
