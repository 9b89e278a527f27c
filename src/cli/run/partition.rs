//! Partition of a process: one run with its filter.

use std::sync::Arc;

use tokio::task::JoinSet;
use tracing::error;
use urlseen_engine::config::{Config, FilterPlace};
use urlseen_engine::engine::query;

use super::process::Process;
use super::{Ended, Work, begin, full, open, serve};
use crate::pipeline::{Board, Ending, RunError};

impl Process<'_> {
    /// Runs a partition until its end. Returns `None` if the process was told to stop during
    /// standby.
    pub(super) async fn work(
        &self,
        index: usize,
        config: &Config,
    ) -> anyhow::Result<Option<Ended>> {
        let enter = |phase| self.view.enter(config.partition, phase);
        let Some(place) = open(self.args, config, &mut self.stop.clone(), enter).await? else {
            return Ok(None);
        };
        let (asker, dispatcher) = query::open(config.forget.max_len);
        let (mut clients, count) = serve(config, asker).await?;
        let (threads, board) = (self.threads.clone(), Board::new(config));
        let (mut work, view) =
            begin(self.args, config, place, threads, dispatcher, board, self.stop.clone())?;
        let view = Arc::new(view.with_clients(count));
        self.view.run(config.partition, Arc::clone(&view));
        // The socket is removed before `work` releases the folder's lock. If the filter is in
        // Redis, there is no folder for a socket.
        let socket = match config.filter.place {
            FilterPlace::Local => Some(self.admin.listen_in(&config.storage.dir, view)?),
            FilterPlace::Redis => None,
        };
        let ending = self.until_end(index, &mut work, &mut clients).await;
        drop(socket);
        ended(config, ending, work).await.map(Some)
    }

    /// Works until the run ends.
    async fn until_end(
        &self,
        index: usize,
        work: &mut Work,
        clients: &mut JoinSet<()>,
    ) -> Result<Ending, RunError> {
        let mut broken = self.broken.subscribe();
        let mut show = |report: &_| self.show(index, report);
        tokio::select! {
            ending = work.run(self.interval, &mut show) => ending,
            Some(_) = clients.join_next() => Err(RunError::Ended("the server at serve.listen")),
            Ok(_) = broken.wait_for(|it| *it) => Err(RunError::Ended("the admin endpoint")),
        }
    }
}

/// Returns the result of a partition whose run has ended.
async fn ended(
    config: &Config,
    ending: Result<Ending, RunError>,
    mut work: Work,
) -> anyhow::Result<Ended> {
    if let Err(failure @ RunError::Ended(_)) = &ending {
        work.give_up(failure).await;
    }
    let (ending, report) = (ending?, work.report());
    if ending == Ending::Full {
        error!("{}", full(config, report.filter.keys, work.lacks_room())?);
    }
    Ok(Ended { ending, report, rules: work.by_rule() })
}
