//! Claim of a run on the lease of its crawl.

use tracing::info;

use super::RunError;
use urlseen_core::filter::id::RandomId;
use urlseen_core::redis::lease::{LeaseHolder, Token};
use urlseen_engine::engine::store::Storage;

/// Identity of a run, and its claim on the lease.
#[derive(Debug)]
pub(super) struct Claim {
    run: RandomId,
    /// Earlier runs that the folder knows, once it was asked. They have ended.
    dead: Option<Vec<RandomId>>,
    /// True if the lease was requested. The run may then hold it.
    pub(super) is_made: bool,
    /// Holder of the lease that the last message named.
    told: Option<String>,
}

impl Claim {
    /// Draws the id of a new run.
    pub(super) fn new() -> Self {
        Self { run: RandomId::random(), dead: None, is_made: false, told: None }
    }

    /// Makes a token for a connection.
    pub(super) fn token(&self) -> Token {
        Token::new(self.run)
    }

    /// Announces the run in the folder, once, and returns the earlier runs. The folder knows the
    /// run before Redis does. So the next run that holds the folder's lock can prove that this run
    /// has ended. All runs that the folder knows have ended. This matters if Redis returns with
    /// older data, because the lease in it may belong to any of them.
    pub(super) async fn announce(
        &mut self,
        storage: Option<&Storage>,
    ) -> Result<&[RandomId], RunError> {
        let dead = match (self.dead.take(), storage) {
            (Some(dead), _) => dead,
            (None, None) => Vec::new(),
            (None, Some(storage)) => {
                let run = self.run.get();
                let runs = storage.call(move |store| store.announce(run)).await?;
                runs.map_err(RunError::Folder)?.into_iter().map(RandomId::new).collect()
            }
        };
        Ok(self.dead.insert(dead))
    }

    /// Returns the name of the lease's holder. Logs once that the run waits for it.
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
