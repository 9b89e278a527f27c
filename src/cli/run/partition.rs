//! Partition of a process: one run with its filter, and after each rotation another run.

use std::pin::pin;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tracing::error;
use urlseen_engine::config::{Config, FilterPlace};
use urlseen_engine::engine::query;

use super::process::Process;
use super::rotation::Waiting;
use super::{Ended, Place, Work, begin, full, open, serve};
use crate::admin::{RotationError, RotationQuery};
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
        let Some(mut place) = open(self.args, config, &mut self.stop.clone(), enter).await? else {
            return Ok(None);
        };
        let (mut config, mut board) = (config.clone(), Board::new(config));
        let (asker, mut dispatcher) = query::open(config.forget.max_len);
        let (mut clients, count) = serve(&config, asker).await?;
        let (rotations, mut queries) = mpsc::channel(1);
        // The client of the last rotation gets its answer when the next run has begun.
        let mut done = None;
        loop {
            let (halt, stop) = watch::channel(*self.stop.borrow());
            let threads = self.threads.clone();
            let (mut work, view) =
                begin(self.args, &config, place, threads, dispatcher, board, stop)?;
            let view = Arc::new(view.with_clients(count.clone()));
            self.view.run(config.partition, Arc::clone(&view));
            // The socket is removed before `work` releases the folder's lock. If the filter is in
            // Redis, there is no folder for a socket.
            let socket = match config.filter.place {
                FilterPlace::Local => {
                    Some(self.admin.listen_in(&config.storage.dir, view, rotations.clone())?)
                }
                FilterPlace::Redis => None,
            };
            if let Some((query, result)) = done.take() {
                RotationQuery::reply(query, result);
            }
            let (ending, waiting) =
                self.until_end(index, &config, &mut work, &mut clients, &mut queries, &halt).await;
            drop(socket);
            let waiting = match (&ending, waiting) {
                // Without Redis, the run cannot end in an orderly way. Another run waits for Redis.
                (Ok(Ending::Stopped) | Err(RunError::Away(_) | RunError::Hanging(_)), Some(it)) => {
                    it
                }
                (_, waiting) => {
                    if let Some(Waiting { query, .. }) = waiting {
                        query.reply(Err(RotationError("the daemon ends".to_owned())));
                    }
                    return ended(&config, ending, work).await.map(Some);
                }
            };
            let rest = work.rest().ok_or(RunError::Ended("the storage thread"))?;
            let is_stopped = ending.is_ok();
            (dispatcher, board) = (rest.dispatcher, rest.board);
            let rotated =
                waiting.rotate(rest.folder, rest.head.filter(|_| is_stopped), config).await;
            let folder;
            (folder, config, done) = rotated?;
            place = Place::Folder(Box::new(folder));
        }
    }

    /// Works until the run ends. Tells the run to end if the process is told to stop, or if a
    /// client asks for a rotation. Then it also returns this rotation.
    async fn until_end(
        &self,
        index: usize,
        config: &Config,
        work: &mut Work,
        clients: &mut JoinSet<()>,
        queries: &mut mpsc::Receiver<RotationQuery>,
        halt: &watch::Sender<bool>,
    ) -> (Result<Ending, RunError>, Option<Waiting>) {
        let (mut stop, mut broken) = (self.stop.clone(), self.broken.subscribe());
        let mut waiting = None;
        let mut show = |report: &_| self.show(index, report);
        let mut running = pin!(work.run(self.interval, &mut show));
        let ending = loop {
            tokio::select! {
                ending = &mut running => break ending,
                Some(_) = clients.join_next() => {
                    break Err(RunError::Ended("the server at serve.listen"));
                }
                Ok(_) = broken.wait_for(|it| *it) => {
                    break Err(RunError::Ended("the admin endpoint"));
                }
                Ok(_) = stop.wait_for(|stop| *stop), if !*halt.borrow() => {
                    halt.send_replace(true);
                }
                Some(query) = queries.recv(), if !*halt.borrow() => {
                    waiting = Waiting::new(query, self.args, config);
                    halt.send_replace(waiting.is_some());
                }
            }
        };
        (ending, waiting)
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
