//! Scenario in which the last record of the log is incomplete: it is cut off at every byte, one
//! byte after the other.

use anyhow::{Context, Result};

use crate::round::Round;
use crate::storage::Contents;

/// Number of batches before the incomplete one.
const BATCHES: u64 = 6;

impl Round {
    /// Checks two cases. If Redis does not have the batch of this record, the daemon must continue
    /// correctly with any cut. If Redis has this batch and the record is incomplete, the daemon
    /// must report that the folder lacks the batch.
    pub(super) fn torn(&mut self) -> Result<()> {
        self.commit(BATCHES)?;
        let folder = self.runner.state();
        let redis_before = self.server.dump()?;
        let (_, from) = length(&Contents::read(&folder)?)?;
        self.commit(1)?;
        self.daemon.kill()?;
        let (redis_behind, whole) = (self.server.dump()?, Contents::read(&folder)?);
        let (name, to) = length(&whole)?;
        for length in from..=to {
            let torn = whole.with_log_cut(length)?;
            let context = || format!("{name} of {to} bytes cut to {length}");

            self.load(&redis_before)?;
            torn.put_back(&folder)?;
            self.start_daemon()?;
            if let Some(said) = self.refusal()? {
                self.note_stop(&format!("{}, not known to Redis: {said}", context()))?;
                continue;
            }
            self.commit(1)?;
            self.check().with_context(context)?;
            self.daemon.kill()?;

            self.load(&redis_behind)?;
            torn.put_back(&folder)?;
            self.start_daemon()?;
            match (self.refusal()?, length < to) {
                (Some(said), true) if said.contains(&*folder.to_string_lossy()) => {}
                (None, false) => {}
                (said, _) => {
                    let said = said.unwrap_or_else(|| "nothing".to_owned());
                    self.note_stop(&format!("{}, known to Redis, said: {said}", context()))?;
                }
            }
            self.daemon.kill()?;
        }
        self.start_daemon()
    }
}

/// Returns the name and the length of the log's last file.
fn length(contents: &Contents) -> Result<(String, usize)> {
    let (name, length) = contents.log_length().context("the folder has no log")?;
    Ok((name.to_owned(), length))
}
