//! Sending commits, and what they may hold.

use super::{Pending, Session};
use crate::crawl::protocol::{Commit, Order};
use crate::pipeline::Parts;
use crate::pipeline::queue::Prepared;
use urlseen_engine::config::RejectsFull;
use urlseen_engine::item::Items;
use urlseen_engine::item::batch::{Batch, Claimed};

/// Commits sent and not answered.
const IN_FLIGHT_MAX: usize = 3;

impl Session<'_> {
    /// Sends what is judged and logged to be committed, unless it has to wait.
    pub(super) fn send_commits(&mut self) {
        let in_flight = if self.pipeline.suspicion.is_aroused() { 1 } else { IN_FLIGHT_MAX };
        while self.control.is_none() && self.sent < in_flight && self.link.has_room() {
            let backpressure = self.backpressure();
            self.tell_backpressure(backpressure);
            if backpressure.is_some() {
                return;
            }
            let Parts { protocol, config, .. } = &self.pipeline.parts;
            let Some(prepared) = self.queue().get(self.sent) else { return };
            let rejects_max = match config.rejects.when_full {
                RejectsFull::Wait => 0,
                RejectsFull::DropOldest => config.rejects.max_len,
            };
            let Prepared { batch, rejects, .. } = prepared;
            let (token, processing) = (&self.token, self.processing);
            let commit = protocol.commit(Order { token, batch, rejects, processing, rejects_max });
            let items = batch.items().len() as u64;
            self.processing -= items;
            self.ahead -= items;
            self.sent += 1;
            match commit {
                Commit::Script(script) => {
                    self.ask(Pending::Commit { is_transaction: false }, &script);
                }
                Commit::Transaction { push, script } => {
                    self.pending.push_back(Pending::Commit { is_transaction: true });
                    self.link.send_transaction(&push, &script);
                }
            }
        }
    }

    /// Queues what was read to be judged, with the bound on what is sent of each item.
    pub(super) fn take_items(&mut self, items: Items) {
        let queue = self.queue();
        let is_next = queue.batches() == 0
            && self.pipeline.works.in_progress() == 0
            && self.backlog.is_empty();
        let is_condemned = is_next && self.pipeline.suspicion.condemns(queue.head());
        let most = if is_condemned { 0 } else { self.pipeline.limits.word };
        let parts = self.window.split(items);
        self.backlog
            .extend(parts.into_iter().map(|items| Batch::<Claimed>::new(items).bounded(most)));
    }
}
