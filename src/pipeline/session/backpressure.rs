//! What commits wait for: lists that are as long as the config lets them be.

use std::time::Duration;

use tokio::time::Instant;
use tracing::{info, warn};

use super::{Pending, Session};
use crate::pipeline::Parts;
use crate::pipeline::phase::Backpressure;
use urlseen_engine::config::{Config, RejectsFull};

/// How often a full sink or rejects list is looked at again.
pub(super) const BACKPRESSURE_POLL: Duration = Duration::from_millis(50);

/// How long nothing more is said of waiting once it was said.
const QUIET: Duration = Duration::from_secs(10);

impl Session<'_> {
    /// What the next batch has to wait for, if anything.
    pub(super) fn backpressure(&self) -> Option<Backpressure> {
        let Config { sink, rejects: list, .. } = &self.pipeline.parts.config;
        let queue = &self.queue;
        let next = queue.get(self.sent)?;
        let sent = || (0..self.sent).filter_map(|index| queue.get(index));
        let onward: u64 = sent().map(|prepared| prepared.batch.onward_len() as u64).sum();
        if sink.max_len > 0
            && next.batch.onward_len() > 0
            && self.sink_length + onward >= sink.max_len
        {
            return Some(Backpressure::Sink);
        }
        let rejects: u64 = sent().map(|prepared| prepared.rejects.len() as u64).sum();
        let after = self.rejected_length + rejects + next.rejects.len() as u64;
        if list.when_full == RejectsFull::Wait && !next.rejects.is_empty() && after > list.max_len {
            return Some(Backpressure::Rejects);
        }
        None
    }

    /// Says so when commits begin to wait, and when they go on. Behind slow crawlers that happens
    /// many times a second, and is said now and then.
    pub(super) fn tell_backpressure(&mut self, backpressure: Option<Backpressure>) {
        // While commits are under way, the lists are not known to be as long as that yet.
        let is_sure = backpressure.is_none() || self.sent == 0;
        let has_changed = backpressure != self.told_backpressure && is_sure;
        self.backpressure = backpressure;
        let is_new = |told: Instant| told.elapsed() < QUIET;
        if !has_changed || backpressure.is_some() && self.backpressure_told.is_some_and(is_new) {
            return;
        }
        if backpressure.is_some() {
            self.backpressure_told = Some(Instant::now());
        }
        self.told_backpressure = backpressure;
        let Parts { protocol, config, .. } = &self.pipeline.parts;
        let keys = protocol.keys();
        match backpressure {
            Some(Backpressure::Sink) => info!(
                "waiting: {} holds {} items, sink.max_len is {}",
                keys.sink, self.sink_length, config.sink.max_len
            ),
            Some(Backpressure::Rejects) => warn!(
                "waiting: {} holds {} items that could not be read, rejects.max_len is {}. Look \
                 at them and delete them, or set rejects.when_full = \"drop-oldest\"",
                keys.rejected, self.rejected_length, config.rejects.max_len
            ),
            None => info!("there is room again: the work continues"),
        }
    }

    /// Asks how long the lists are that commits wait for.
    pub(super) fn look_again(&mut self) {
        if self.line.is_asking(&Pending::RejectedLength) {
            return;
        }
        let protocol = &self.pipeline.parts.protocol;
        let (sink, rejected) = (protocol.sink_length(), protocol.rejected_length());
        self.line.ask(Pending::SinkLength, &sink);
        self.line.ask(Pending::RejectedLength, &rejected);
    }
}
