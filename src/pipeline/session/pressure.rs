//! Backpressure: commits wait while a list has reached its maximum length.

use std::time::Duration;

use redis::Cmd;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::Session;
use crate::config::{Config, RejectsFull};
use crate::pipeline::{Parts, Pipeline};
use crate::report::Backpressure;

/// Time between two checks of a full sink or rejects list.
const POLL: Duration = Duration::from_millis(50);

/// Time during which no further message about waiting is logged.
const QUIET: Duration = Duration::from_secs(10);

/// Lengths of the sink and the rejects list, and the list that commits wait for.
#[derive(Debug)]
pub(super) struct Pressure {
    /// Number of items in the sink, as Redis last reported it.
    pub(super) sink: u64,
    /// Number of items on the rejects list, as Redis last reported it.
    pub(super) rejected: u64,
    /// List that the next commit waits for.
    pub(super) by: Option<Backpressure>,
    /// True if another check of the lists is planned.
    is_polling: bool,
    /// List that the last log line named. `None` at the start, and if the last line said that the
    /// work continues.
    told: Option<Backpressure>,
    /// Time of the last log line which says that commits wait.
    told_at: Option<Instant>,
}

impl Pressure {
    /// Starts with lists of these lengths.
    pub(super) fn new(sink: u64, rejected: u64) -> Self {
        Self { sink, rejected, by: None, is_polling: false, told: None, told_at: None }
    }

    /// Logs when commits begin to wait, and when they continue. With slow crawlers this happens
    /// many times a second, so only some of these events are logged.
    fn tell(&mut self, parts: &Parts) {
        let is_quiet = |told: Instant| told.elapsed() < QUIET;
        if self.by == self.told || self.by.is_some() && self.told_at.is_some_and(is_quiet) {
            return;
        }
        if self.by.is_some() {
            self.told_at = Some(Instant::now());
        }
        self.told = self.by;
        let Parts { protocol, config, .. } = parts;
        let keys = protocol.keys();
        match self.by {
            Some(Backpressure::Sink) => info!(
                "waiting: {} holds {} items, and sink.max_len is {}",
                keys.sink, self.sink, config.sink.max_len
            ),
            Some(Backpressure::Rejects) => warn!(
                "waiting: {} holds {} items that could not be read, and rejects.max_len is {}. \
                 Inspect and delete these items (urlseen rejects), or set rejects.when_full = \
                 \"drop-oldest\"",
                keys.rejected, self.rejected, config.rejects.max_len
            ),
            // The wait for replicas has its own log lines.
            Some(Backpressure::Replicas) => {}
            None => info!("there is room again: the work continues"),
        }
    }
}

impl Session<'_> {
    /// Returns true if the next batch must wait for a list.
    pub(super) fn is_held_up(&mut self) -> bool {
        self.pressure.by = self.backpressure();
        // While commits are under way, the final lengths of the lists are not known, so a wait is
        // not logged yet.
        if self.pressure.by.is_none() || self.sent == self.replicas.waiting() {
            self.pressure.tell(&self.pipeline.parts);
        }
        let is_held_up = self.pressure.by.is_some();
        if is_held_up && !std::mem::replace(&mut self.pressure.is_polling, true) {
            self.expect(sleep(POLL), |session, ()| {
                session.pressure.is_polling = false;
                session.look_again();
                Ok(())
            });
        }
        is_held_up
    }

    fn backpressure(&self) -> Option<Backpressure> {
        let Pipeline { parts, queue, .. } = &*self.pipeline;
        let Config { sink, rejects: list, .. } = &parts.config;
        let next = queue.get(self.sent)?;
        // The reported lengths contain the items of executed commits.
        let executed = self.replicas.waiting();
        let sent = || (executed..self.sent).filter_map(|index| queue.get(index));
        let onward: u64 = sent().map(|prepared| prepared.batch.onward_len() as u64).sum();
        if sink.max_len > 0
            && next.batch.onward_len() > 0
            && self.pressure.sink + onward >= sink.max_len
        {
            return Some(Backpressure::Sink);
        }
        let rejects: u64 = sent().map(|prepared| prepared.rejects.len() as u64).sum();
        let after = self.pressure.rejected + rejects + next.rejects.len() as u64;
        if list.when_full == RejectsFull::Wait && !next.rejects.is_empty() && after > list.max_len {
            return Some(Backpressure::Rejects);
        }
        None
    }

    /// Asks for the lengths of the lists that commits wait for.
    pub(super) fn look_again(&mut self) {
        let protocol = &self.pipeline.parts.protocol;
        let (sink, rejected) = (protocol.sink_length(), protocol.rejected_length());
        self.ask_for_pressure("length of the sink", &sink, |it| &mut it.sink);
        self.ask_for_pressure("length of the rejects", &rejected, |it| &mut it.rejected);
    }

    fn ask_for_pressure(
        &mut self,
        name: &'static str,
        command: &Cmd,
        length: fn(&mut Pressure) -> &mut u64,
    ) {
        self.ask_even_if_refused(name, command, move |session, reply| {
            // If Redis refuses to tell the length for which a commit waits, the commit is sent: its
            // own refusal ends the run, and says which key is wrong.
            if session.pressure.by.is_some() {
                *length(&mut session.pressure) = 0;
            }
            *length(&mut session.pressure) = session.pipeline.parts.protocol.length(reply?)?;
            Ok(())
        });
    }
}
