//! Claim of a run on the lease of its crawl.

use tracing::info;

use super::RunError;
use urlseen_core::filter::id::RandomId;
use urlseen_core::redis::protocol::{LeaseHolder, Token};
use urlseen_engine::engine::store::Storage;

/// Identity of a run, and its claim on the lease.
#[derive(Debug)]
pub(super) struct Claim {
    run: RandomId,
    /// Earlier runs that the folder lists. All of them have ended. `None` until the folder also
    /// lists this run.
    dead: Option<Vec<RandomId>>,
    /// True if the run has asked for the lease. The run may then hold the lease.
    pub(super) is_made: bool,
    /// Name of the lease's holder in the last log line.
    told: Option<String>,
}

impl Claim {
    /// Makes the claim of a new run, with a random id.
    pub(super) fn new() -> Self {
        Self { run: RandomId::random(), dead: None, is_made: false, told: None }
    }

    /// Makes a token for a connection.
    pub(super) fn token(&self) -> Token {
        Token::new(self.run)
    }

    /// Records the run in the folder, once, and returns the earlier runs that the folder lists. All
    /// earlier runs have ended, because this process holds the lock of the folder. If Redis came
    /// back with older data, any of these runs may hold the lease in that data. The folder lists
    /// this run before Redis does. So a later run with the lock can prove that this run has ended.
    pub(super) async fn announce(
        &mut self,
        storage: Option<&Storage>,
    ) -> Result<&[RandomId], RunError> {
        let dead = match (self.dead.take(), storage) {
            (Some(dead), _) => dead,
            (None, None) => Vec::new(),
            (None, Some(storage)) => {
                let run = self.run;
                let dead = storage.call(move |store| store.kept.folder.announce(run)).await?;
                dead.map_err(RunError::Folder)?
            }
        };
        Ok(self.dead.insert(dead))
    }

    /// Returns the name of the lease's holder. Logs that the run waits, once for each holder.
    pub(super) fn wait_for(&mut self, holder: Option<&LeaseHolder>) -> String {
        let name =
            holder.map_or_else(|| "a program other than urlseen".to_owned(), ToString::to_string);
        if self.told.as_ref() != Some(&name) {
            info!("standing by: waiting for the lease, which {name} holds");
            self.told = Some(name.clone());
        }
        name
    }
}
