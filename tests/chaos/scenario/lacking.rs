//! A folder that lacks batches of Redis, and the remedy that the daemon names.

use anyhow::Result;

use crate::round::{Outcome, Round};
use crate::storage::Contents;

/// Number of batches before the copy of the folder, and after it.
const BATCHES: u64 = 6;

impl Round {
    /// Restores an old copy of the folder and keeps nothing else. The daemon must stop. It goes on
    /// after `urlseen storage adopt`, or with the setting to emit again. No item is lost. Items
    /// that the folder lacks are repeated, as the daemon announced.
    pub(super) fn lacking(mut self) -> Result<Outcome> {
        let folder = self.runner.state();
        for way in ["adopt", "emit-again"] {
            self.commit(BATCHES)?;
            self.daemon.kill()?;
            let old = Contents::read(&folder)?;
            self.start_daemon()?;
            self.commit(4 * BATCHES)?;
            self.daemon.kill()?;
            old.put_back(&folder)?;
            self.start_daemon()?;
            if self.refusal()?.is_none() {
                self.note_stop("an old copy of the folder, and it went on")?;
            }
            self.daemon.kill()?;
            if way == "adopt" {
                self.runner.storage_command(way)?;
            } else {
                self.runner.settings.on_rollback = way;
            }
            self.start_daemon()?;
            self.commit(4 * BATCHES)?;
        }
        let mut outcome = self.end()?;
        outcome.verdict.allow_repeats();
        Ok(outcome)
    }
}
