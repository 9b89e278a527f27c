//! A folder that lacks what Redis knows, and the way on that the daemon names.

use anyhow::Result;

use crate::round::{Outcome, Round};
use crate::storage::Contents;

/// Batches before the copy of the folder, and behind it.
const BATCHES: u64 = 6;

impl Round {
    /// An old copy of the folder is brought back, and nothing else is left: the daemon stops, and
    /// goes on after `urlseen storage adopt`, or where it is told to emit again. Nothing is lost;
    /// what the folder lacks is repeated, as was said.
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
