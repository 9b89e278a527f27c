//! Scenario in which the folder lacks batches that Redis has committed. It tries each remedy that
//! the daemon names.

use anyhow::Result;

use crate::round::{Outcome, Round};
use crate::storage::Contents;

/// Number of batches before the copy of the folder, and after it.
const BATCHES: u64 = 6;

impl Round {
    /// Replaces the folder with an old copy. The daemon must stop. After `urlseen storage adopt`,
    /// or with `on_rollback = "emit-again"`, the daemon must continue. In both cases, the daemon
    /// must lose no item. It is permitted to repeat items that are not in the old copy, because its
    /// messages announce such repetitions.
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
                self.note_stop("the daemon had an old copy of the folder, and continued")?;
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
